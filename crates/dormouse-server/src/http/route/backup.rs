//! backup: a consistent copy of the store, made on the server.

use std::sync::Arc;

use axum::extract::State;
use dormouse_core::error::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Verb;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems, StateProblems};
use crate::http::caller::Caller;
use crate::http::params::Params;
use crate::http::payload::Unread;
use crate::http::response::{HttpResult, ok};
use crate::units::{At, wall_ms};

/// The largest number of bytes in a backup's name.
const NAME_BYTES_MAX: usize = 100;

/// The name of the backup.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBackup)]
pub(crate) struct BackupForm {
    /// The name of its directory; default: `backup-` and the time.
    #[schema(min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
    name: Option<String>,
}

/// A backup that was made.
#[derive(Serialize, ToSchema)]
#[schema(as = Backup)]
pub(crate) struct BackupOut {
    name: String,
    /// Its directory on the server.
    path: String,
    files: u64,
    bytes: u64,
}

/// Make a backup.
#[utoipa::path(
    post,
    path = "/v1/backups",
    tag = "server",
    request_body = Option<BackupForm>,
    responses(
        (status = 200, description = "The backup", body = BackupOut),
        Problems, StateProblems, BodyProblems
    )
)]
pub(super) async fn backup(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check_verb(Verb::Backup)?;
    params.finish()?;
    let form: BackupForm = body.json(&app).await?;
    let name = form.name.unwrap_or_else(name_of_now);
    check_name(&name)?;
    let Some(make) = app.backup.as_ref().map(Arc::clone) else {
        return Err(Error::invalid("this backend has no files to back up").into());
    };
    let wanted = name.clone();
    let made = tokio::task::spawn_blocking(move || make(&wanted)).await;
    let made = made.map_err(|_| Error::unavailable("the backup broke off; see the log"))??;
    let path = made.path.display().to_string();
    ok(&BackupOut { name, path, files: made.files, bytes: made.bytes })
}

/// `backup-20270101T080000Z`.
fn name_of_now() -> String {
    let now = At(wall_ms()).to_string();
    let seconds = now.split('.').next().unwrap_or_default();
    let digits: String = seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("backup-{digits}Z")
}

/// The name becomes that of a directory, so it must not lead elsewhere.
fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with(['.', '-']);
    fits.then_some(()).ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        Error::invalid(format!(
            "name {shown:?} cannot be a backup's; give 1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 . _ \
             - that do not start with . or -"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["monday", "2027-01-01", "a.b", "_x", &name_of_now()] {
            check_name(name).unwrap();
        }
        for name in ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "-rf", "a b", "é", ".hidden"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name(&"a".repeat(101)).is_err());
    }
}
