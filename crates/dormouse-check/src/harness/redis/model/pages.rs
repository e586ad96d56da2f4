//! Lists: all pages of both, because cursors are opaque.

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{JobView, List};

use crate::harness::redis::model::lockstep::{World, brief};
use crate::oracle::answers::judge_pages;

impl World<'_> {
    /// All pages of a list.
    pub(crate) fn list(&mut self, server: usize, list: List) -> Result<(), String> {
        self.log.push(format!("server {server}: {}", brief(&Command::List(list.clone()))));
        self.steps += 1;
        let rules = pages(&list, |list| {
            let ticket = Ticket::next();
            self.oracle.step(ticket, Command::List(list))?;
            let mut answers = self.oracle.answers();
            let at = answers.iter().position(|(answered, _)| *answered == ticket);
            at.map(|at| answers.remove(at).1).ok_or_else(|| "the rules do not answer".to_owned())
        })?;
        let redis = pages(&list, |list| self.subject.ask(server, Command::List(list)))?;
        judge_pages(&self.names, list.state, rules, redis).map_err(|why| format!("{list:?}: {why}"))
    }
}

fn pages(
    list: &List,
    mut ask: impl FnMut(List) -> Result<Answer, String>,
) -> Result<Vec<Vec<JobView>>, String> {
    let (mut pages, mut cursor) = (Vec::new(), list.cursor.clone());
    loop {
        match ask(List { cursor: cursor.take(), ..list.clone() })? {
            Ok(Reply::Page(page)) => {
                pages.push(page.jobs);
                cursor = page.cursor;
            }
            other => return Err(format!("{list:?} is answered {other:?}")),
        }
        if cursor.is_none() {
            return Ok(pages);
        }
    }
}
