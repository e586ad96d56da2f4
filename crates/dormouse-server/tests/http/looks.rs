//! A GET never changes anything, whatever the route.

use std::sync::{Arc, Mutex};

use dormouse_core::backend::{Backend, Request, Sink};
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::{Options, Server, openapi};
use serde_json::{Value, json};

use crate::client::Client;

/// An engine, and the requests that are no looks.
struct Watched {
    engine: Engine,
    changes: Mutex<Vec<String>>,
}

impl Backend for Watched {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let changes = batch.iter().filter(|request| !is_look(&request.command));
        let changes = changes.map(|request| format!("{:?}", request.command));
        self.changes.lock().unwrap().extend(changes);
        self.engine.submit(batch, sink)
    }
}

fn is_look(command: &Command) -> bool {
    matches!(
        command,
        Command::Get(_)
            | Command::TopicsOf(_)
            | Command::Peek(_)
            | Command::List(_)
            | Command::Topics(_)
            | Command::Stats(_)
            | Command::Forecast(_)
            | Command::Locks(_)
            | Command::GetSchedule(_)
            | Command::Schedules(_)
    )
}

/// All paths of the document that have this method, with names of things that exist.
fn paths(method: &str, id: &str) -> Vec<String> {
    let document = serde_json::to_value(openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let paths = paths.iter().filter(|(_, methods)| methods.get(method).is_some());
    let fill = |path: &String| {
        let path = path.replace("{topic}", "t").replace("{id}", id).replace("{key}", "k");
        let query = match path.as_str() {
            "/v1/topics/t/jobs" => "?state=ready",
            "/v1/forecast" => "?topic=t",
            "/v1/pulse" => "?once=true&topics=t",
            "/v1/topics/t/schedules/{name}/ticks" => "?limit=1",
            _ => "",
        };
        format!("{}{query}", path.replace("{name}", "n"))
    };
    paths.map(|(path, _)| fill(path)).collect()
}

#[tokio::test]
async fn a_get_changes_nothing() {
    let engine = Engine::memory(EngineOptions::default());
    let backend = Arc::new(Watched { engine, changes: Mutex::default() });
    let http = Some("127.0.0.1:0".parse().unwrap());
    let options = Options { http, ..Options::default() };
    let server = Server::start(Arc::clone(&backend) as Arc<dyn Backend>, options).await.unwrap();
    let addr = server.http_addr().unwrap();
    let mut client = Client::connect(addr).await;
    let put = client.post("/v1/topics/t/jobs", json!({"key": "k", "body": 1})).await.expect(201);
    let id = put["id"].as_str().unwrap().to_owned();
    client.json("PUT", "/v1/topics/t/schedules/n", json!({"every": "1h"})).await.expect(201);
    client.post("/v1/locks/n/acquire", json!({"owner": "me"})).await.ok();
    assert!(backend.changes.lock().unwrap().len() >= 3, "changes are seen");
    backend.changes.lock().unwrap().clear();
    let job = client.get(&format!("/v1/jobs/{id}")).await.ok();
    let all = paths("get", &id);
    assert!(all.len() >= 20, "{all:?}");
    let mut looked = 0;
    for path in all.iter().filter(|path| !path.starts_with("/v1/events")) {
        for method in ["GET", "HEAD"] {
            let mut client = Client::connect(addr).await;
            client.send(method, path, "", b"").await;
            let answer = client.receive(method == "GET").await.unwrap();
            assert!(answer.status < 500, "{method} {path}: {answer:?}");
            looked += usize::from(answer.status < 300);
        }
        let changes = std::mem::take(&mut *backend.changes.lock().unwrap());
        assert!(changes.is_empty(), "GET {path} did {changes:?}");
    }
    // Those that want parameters which are not known here are few.
    assert!(looked + 8 >= 2 * all.len(), "{looked} of {}", 2 * all.len());
    assert_eq!(client.get(&format!("/v1/jobs/{id}")).await.ok(), job);
    // Paths that only change something have no GET.
    for path in paths("post", &id).iter().filter(|path| !all.contains(path)) {
        let path = path.split('?').next().unwrap();
        let status = client.get(path).await.status;
        assert!(
            status == 405 || all.iter().any(|known| known.split('?').next() == Some(path)),
            "{path}: {status}"
        );
    }
}

#[tokio::test]
async fn whoami_tells_rights_and_the_server() {
    let rig = crate::rig::Rig::with_tokens(&[
        ("look", &["viewer:a*", "metrics:*"]),
        ("ops", &["operator:*"]),
    ])
    .await;
    rig.client().await.get("/v1/whoami").await.problem(401, "unauthorized");
    let look: Value = rig.client_of("look").await.get("/v1/whoami").await.ok();
    assert_eq!((&look["name"], &look["open"]), (&json!("look"), &json!(false)));
    assert_eq!(look["read_only"], true);
    assert_eq!(look["scopes"], json!(["viewer:a*", "metrics:*"]));
    assert_eq!(look["verbs"]["everywhere"], json!(["metrics"]));
    let somewhere = json!(["get", "list", "stats", "forecast", "events", "metrics"]);
    assert_eq!(look["verbs"]["somewhere"], somewhere);
    assert_eq!(look["server"]["ui"], json!({"mode": "on"}));
    let ops = rig.client_of("ops").await.get("/v1/whoami").await.ok();
    assert_eq!(ops["read_only"], false);
    let rig = crate::rig::Rig::new().await;
    let open = rig.client().await.get("/v1/whoami").await.ok();
    assert_eq!((&open["name"], &open["open"]), (&json!("everybody"), &json!(true)));
}

#[tokio::test]
async fn changes_by_operators_are_kept() {
    let rig = crate::rig::Rig::with_tokens(&[
        ("ops", &["operator:*"]),
        ("shop", &["producer:*", "consumer:*"]),
    ])
    .await;
    let mut shop = rig.client_of("shop").await;
    let id = shop.post("/v1/topics/t/jobs", json!({})).await.expect(201)["id"].clone();
    shop.delete(&format!("/v1/jobs/{}", id.as_str().unwrap())).await.ok();
    let mut ops = rig.client_of("ops").await;
    ops.post("/v1/topics/t/pause", json!({})).await.ok();
    ops.post("/v1/jobs/77/run", json!({})).await.problem(404, "not_found");
    let mut console = rig.client_of("ops").await.with("x-dormouse-ui", "1");
    console.post("/v1/topics/t/resume", json!({})).await.ok();
    shop.get("/v1/audit").await.problem(403, "forbidden");
    let page = ops.get("/v1/audit?limit=2").await.ok();
    let entry = |at: usize| {
        let entry = &page["entries"][at];
        let names = ["number", "token", "call", "target", "status", "ui", "protocol", "peer"];
        names.map(|name| entry[name].clone())
    };
    assert_eq!(
        entry(0).to_vec(),
        [
            json!("3"),
            json!("ops"),
            json!("POST /v1/topics/{topic}/resume"),
            json!("/v1/topics/t/resume"),
            json!(200),
            json!(true),
            json!("http"),
            json!("127.0.0.1")
        ]
    );
    assert_eq!((&entry(1)[4], &entry(1)[5]), (&json!(404), &json!(false)));
    assert_eq!(page["cursor"], "2");
    let rest = ops.get("/v1/audit?cursor=2").await.ok();
    assert_eq!(rest["entries"].as_array().unwrap().len(), 1);
    assert!(rest.get("cursor").is_none());
    ops.get("/v1/audit?limit=0").await.problem(422, "invalid");
    ops.get("/v1/audit?cursor=x").await.problem(400, "invalid");
}

#[tokio::test]
async fn connections_are_listed_with_their_tokens() {
    let rig = crate::rig::Rig::with_tokens(&[("ops", &["operator:*"]), ("a", &["put:*"])]).await;
    let mut other = rig.client_of("a").await;
    other.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let mut ops = rig.client_of("ops").await;
    let all = ops.get("/v1/connections").await.ok();
    assert_eq!(all["count"], 2);
    let tokens: Vec<&Value> =
        all["connections"].as_array().unwrap().iter().map(|one| &one["token"]).collect();
    assert_eq!(tokens, ["a", "ops"]);
    assert_eq!(all["connections"][0]["protocol"], "http");
    let first = ops.get("/v1/connections?limit=1").await.ok();
    let cursor = first["cursor"].as_str().unwrap();
    let second = ops.get(&format!("/v1/connections?limit=1&cursor={cursor}")).await.ok();
    assert_eq!(second["connections"][0]["token"], "ops");
    assert!(second.get("cursor").is_none());
    other.get("/v1/connections").await.problem(403, "forbidden");
    // A token that is refused is nobody's.
    drop(other.with("authorization", "Bearer wrong").get("/v1/whoami").await);
}

#[tokio::test]
async fn consumers_of_a_topic_are_those_who_wait_on_it() {
    let tokens =
        [("ops", &["operator:*", "put:*"][..]), ("a", &["consumer:*"]), ("eu", &["operator:eu.*"])];
    let rig = crate::rig::Rig::with_tokens(&tokens).await;
    let mut ops = rig.client_of("ops").await;
    assert_eq!(ops.get("/v1/topics/t/consumers").await.ok(), json!({"consumers": []}));
    let mut worker = rig.client_of("a").await;
    let reserve = worker.post("/v1/reserve", json!({"topics": ["t", "u"], "wait": "1m"}));
    let look = async {
        loop {
            let page = ops.get("/v1/topics/t/consumers").await.ok();
            if page["consumers"] != json!([]) {
                break page;
            }
        }
    };
    tokio::pin!(reserve);
    let page = tokio::select! {
        page = look => page,
        answer = &mut reserve => panic!("{answer:?}"),
    };
    let one = &page["consumers"][0];
    assert_eq!(
        [&one["name"], &one["protocol"], &one["waiting"], &one["address"]],
        [&json!("a"), &json!("http"), &json!(1), &json!("127.0.0.1")]
    );
    assert!(one["since"].is_string() || one["since"].is_number(), "{one}");
    assert_eq!(page.get("cursor"), None);
    ops.get("/v1/topics/u/consumers?limit=1").await.ok();
    ops.get("/v1/topics/u/consumers?limit=0").await.problem(422, "invalid");
    ops.get("/v1/topics/u/consumers?cursor=x").await.problem(400, "invalid");
    rig.client_of("eu").await.get("/v1/topics/t/consumers").await.problem(403, "forbidden");
    assert_eq!(ops.get("/v1/topics/v/consumers").await.ok(), json!({"consumers": []}));
    // It waits no more.
    ops.post("/v1/topics/u/jobs", json!({})).await.expect(201);
    reserve.await.ok();
    assert_eq!(ops.get("/v1/topics/t/consumers").await.ok(), json!({"consumers": []}));
}
