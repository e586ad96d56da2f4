//! whoami: the caller's rights, and what the server is.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::response::{HttpResult, ok};
use crate::units::At;

/// The caller, and the server.
#[derive(Serialize, ToSchema)]
#[schema(as = Whoami)]
pub(crate) struct WhoamiOut<'a> {
    /// The name of the token; `everybody` where there are none.
    name: &'a str,
    /// No token is configured: everybody may do everything.
    open: bool,
    /// No verb of the token changes anything.
    read_only: bool,
    scopes: Vec<String>,
    verbs: VerbsOut,
    server: ServerOut<'a>,
}

/// The verbs that a token allows.
#[derive(Serialize, ToSchema)]
#[schema(as = GrantedVerbs)]
pub(crate) struct VerbsOut {
    /// On all topics.
    everywhere: Vec<&'static str>,
    /// On at least one topic.
    somewhere: Vec<&'static str>,
}

/// The server.
#[derive(Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct ServerOut<'a> {
    version: &'static str,
    /// Where jobs are kept: `disk`, `memory` or `redis`.
    backend: &'a str,
    /// What an answer survives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    durability: Option<&'a str>,
    started_at: At,
    /// The present time of its clock.
    now: At,
    ui: UiOut<'a>,
}

/// The web console.
#[derive(Serialize, ToSchema)]
#[schema(as = Ui)]
pub(crate) struct UiOut<'a> {
    /// `on`, `view` or `off`.
    mode: &'static str,
    /// The name of the installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<&'a str>,
    /// Its colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    color: Option<&'static str>,
}

/// Read the caller's rights, and what the server is. It needs no right, only a token where there
/// are some.
#[utoipa::path(
    get,
    path = "/v1/whoami",
    tag = "server",
    responses((status = 200, description = "The caller", body = WhoamiOut<'static>), Problems)
)]
pub(super) async fn whoami(State(app): State<App>, caller: Caller, params: Params) -> HttpResult {
    params.finish()?;
    let grant = caller.grant();
    let words = |is_had: &dyn Fn(Verb) -> bool| {
        Verb::ALL.into_iter().filter(|&verb| is_had(verb)).map(Verb::as_str).collect()
    };
    let changes = |verb: &Verb| !verb.is_read() && grant.may_somewhere(*verb);
    ok(&WhoamiOut {
        name: grant.name(),
        open: app.access.is_open(),
        read_only: !Verb::ALL.iter().any(changes),
        scopes: grant.scopes(),
        verbs: VerbsOut {
            everywhere: words(&|verb| grant.covers_all(verb)),
            somewhere: words(&|verb| grant.may_somewhere(verb)),
        },
        server: ServerOut {
            version: env!("CARGO_PKG_VERSION"),
            backend: &app.about.backend,
            durability: app.about.durability.as_deref(),
            started_at: At(app.started_at),
            now: At(app.now_ms().await?),
            ui: UiOut {
                mode: app.ui.mode.as_str(),
                name: app.ui.name.as_ref().map(|name| name.as_str()),
                color: app.ui.color.map(|color| color.as_str()),
            },
        },
    })
}
