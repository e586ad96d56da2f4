//! For whom leases and locks count.

use std::sync::Arc;

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::holder::HolderId;
use dormouse_core::refusal::THIS_TOKEN;

/// All clients with one token, as the backend counts their leases and locks. The token's name
/// keeps its number when the tokens are read again, so a new secret is no new share.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    id: HolderId,
    name: Arc<str>,
}

impl Holder {
    pub(crate) fn new(name: &Arc<str>) -> Option<Holder> {
        HolderId::next().map(|id| Holder { id, name: Arc::clone(name) })
    }

    pub(crate) fn id(&self) -> HolderId {
        self.id
    }

    /// Writes the token's name into an answer that is about its share: the backend does not know
    /// it.
    pub(crate) fn name_in(&self, answer: &mut Answer) {
        match answer {
            Err(error) => self.name_in_error(error),
            Ok(Reply::Extended(items)) => {
                items.iter_mut().filter_map(|item| item.as_mut().err()).for_each(|error| {
                    self.name_in_error(error);
                });
            }
            Ok(_) => {}
        }
    }

    fn name_in_error(&self, error: &mut Error) {
        if error.code != Code::Busy {
            return;
        }
        if let Some(rest) = error.text.strip_prefix(THIS_TOKEN) {
            error.text = format!("token `{}`{rest}", self.name).into();
        }
    }
}
