//! Subcommands that end or extend leases by their tokens, many in one request.

use std::io::Read as _;

use dormouse_core::limits::BATCH_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Global;
use crate::client::{Reply, Request};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

/// The leases that a subcommand is about.
#[derive(clap::Args)]
pub(crate) struct Tokens {
    /// The tokens returned by reserve; - reads them from stdin
    #[arg(value_name = "TOKEN", required = true)]
    tokens: Vec<String>,
}

/// The result of one item of a batch.
#[derive(Deserialize)]
pub(crate) struct ItemResult {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) token: Option<String>,
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) detail: Option<String>,
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
    #[serde(default)]
    pub(crate) retryable: Option<bool>,
    /// The jobs that were put with an ack.
    #[serde(default)]
    put: Vec<PutResult>,
}

#[derive(Deserialize)]
struct PutResult {
    id: String,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Box<RawValue>>,
}

impl ItemResult {
    /// An item that the server could not read.
    pub(crate) fn invalid(detail: &str) -> ItemResult {
        let (code, detail) = ("invalid".to_owned(), Some(detail.to_owned()));
        let retryable = Some(false);
        ItemResult {
            id: None,
            token: None,
            code,
            detail,
            expires_at: None,
            retryable,
            put: Vec::new(),
        }
    }

    /// Only failures carry `retryable`.
    pub(crate) fn is_failure(&self) -> bool {
        self.retryable.is_some()
    }
}

impl Tokens {
    /// Sends `verb` for all of them, with the given fields.
    pub(crate) async fn send(
        self,
        global: &Global,
        verb: &str,
        fields: Map<String, Value>,
    ) -> Result<(), Failure> {
        let tokens = expand(self.tokens)?;
        let client = global.client()?;
        let path = format!("/v1/{verb}");
        if let [token] = tokens.as_slice() {
            let request = Request::post(path).json(&with(&fields, "token", json!(token)));
            let reply = client.call(request).await?;
            return print_one(global, token, &reply);
        }
        let mut results = Vec::new();
        for chunk in tokens.chunks(BATCH_MAX) {
            let request = Request::post(&path).json(&with(&fields, "tokens", json!(chunk)));
            results.extend(client.call(request).await?.parse::<Results>()?.results);
        }
        print_many(global, &tokens, &results)
    }
}

fn with(fields: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut all = fields.clone();
    all.insert(name.to_owned(), value);
    all
}

/// Replaces `-` by the words of stdin.
fn expand(arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut tokens = Vec::new();
    for argument in arguments {
        if argument == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::new(format!("cannot read stdin: {error}")))?;
            tokens.extend(text.split_whitespace().map(str::to_owned));
        } else {
            tokens.push(argument);
        }
    }
    if tokens.is_empty() {
        return Err(Failure::usage("there is no token on stdin"));
    }
    Ok(tokens)
}

fn print_one(global: &Global, token: &str, reply: &Reply) -> Result<(), Failure> {
    if global.output == Output::Json {
        return output::print_json(&reply.body);
    }
    let result: ItemResult = reply.parse()?;
    output::print(table(&[(token.to_owned(), result)]).as_bytes())
}

fn print_many(global: &Global, tokens: &[String], raw: &[Box<RawValue>]) -> Result<(), Failure> {
    let parse = |raw: &RawValue| {
        serde_json::from_str::<ItemResult>(raw.get())
            .map_err(|error| Failure::new(format!("a result makes no sense here: {error}")))
    };
    let mut results = Vec::new();
    for (token, raw) in tokens.iter().zip(raw) {
        let result = parse(raw)?;
        results.push((result.token.clone().unwrap_or_else(|| token.clone()), result));
    }
    if global.output == Output::Json {
        output::print_json(&serde_json::to_vec(&json!({"results": raw})).unwrap_or_default())?;
    } else {
        output::print(table(&results).as_bytes())?;
    }
    match failed(results.iter().map(|(_, result)| result)) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

fn table(results: &[(String, ItemResult)]) -> String {
    let has_expiry = results.iter().any(|(_, result)| result.expires_at.is_some());
    let has_puts = results.iter().any(|(_, result)| !result.put.is_empty());
    let has_detail = results.iter().any(|(_, result)| result.detail.is_some());
    let mut header = vec!["token", "code"];
    header.extend(has_expiry.then_some("expires_at"));
    header.extend(has_puts.then_some("put"));
    header.extend(has_detail.then_some("detail"));
    let row = |(token, result): &(String, ItemResult)| {
        let mut row = vec![token.clone(), result.code.clone()];
        row.extend(has_expiry.then(|| result.expires_at.clone().unwrap_or_default()));
        row.extend(has_puts.then(|| ids(&result.put)));
        row.extend(has_detail.then(|| result.detail.clone().unwrap_or_default()));
        row
    };
    output::table(&header, &results.iter().map(row).collect::<Vec<_>>())
}

fn ids(puts: &[PutResult]) -> String {
    let ids: Vec<&str> = puts.iter().map(|put| put.id.as_str()).collect();
    ids.join(" ")
}

/// One failure for many items, with their exit code if they agree on one.
pub(crate) fn failed<'a>(results: impl Iterator<Item = &'a ItemResult> + Clone) -> Option<Failure> {
    let all = results.clone().count();
    let mut exits = results.filter(|one| one.is_failure()).map(|one| Exit::of_code(&one.code));
    let first = exits.next()?;
    let rest: Vec<Exit> = exits.collect();
    let exit = if rest.iter().all(|&exit| exit == first) { first } else { Exit::Error };
    Some(Failure::with(exit, format!("{} of {all} failed", rest.len() + 1)))
}
