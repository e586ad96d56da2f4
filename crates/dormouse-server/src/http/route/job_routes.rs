//! A verb for one job has two routes: the job is named by its id, or by its topic and key.

/// Emits both routes of a verb and their descriptions. Each checks that the caller may do this to
/// the job, and calls the verb's function.
macro_rules! job_routes {
    (
        $method:ident $function:ident($($argument:ident: $extractor:ident),*) if $verb:expr;
        #[doc = $id_text:tt]
        $by_id:ident = $id_path:tt;
        #[doc = $key_text:tt]
        $by_key:ident = $key_path:tt;
        params($($query:tt)*), $($description:tt)*
    ) => {
        $crate::http::route::job_routes::job_routes!(
            @one $method $function($($argument: $extractor),*) if $verb;
            $id_text $by_id $id_path
            params($crate::http::path::IdPath $($query)*), $($description)*
        );
        $crate::http::route::job_routes::job_routes!(
            @one $method $function($($argument: $extractor),*) if $verb;
            $key_text $by_key $key_path
            params($crate::http::path::KeyPath $($query)*), $($description)*
        );
    };
    (
        @one $method:ident $function:ident($($argument:ident: $extractor:ident),*) if $verb:expr;
        $text:tt $route:ident $path:tt $($description:tt)*
    ) => {
        #[doc = $text]
        #[utoipa::path($method, path = $path, tag = "jobs", $($description)*)]
        pub(super) async fn $route(
            axum::extract::State(app): axum::extract::State<$crate::http::App>,
            caller: $crate::http::caller::Caller,
            $crate::http::path::InJob(target): $crate::http::path::InJob,
            $($argument: $extractor),*
        ) -> $crate::http::response::HttpResult {
            caller.check_target(&app, $verb, &target).await?;
            $function(&app, target, $($argument),*).await
        }
    };
}
pub(super) use job_routes;
