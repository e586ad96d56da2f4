//! Runs schemathesis against a real server: every answer must be documented, and none may be a
//! server error.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::step::{Invocation, build_binary, target_dir};

const VERSION: &str = "schemathesis==4.32.5";
/// The default number of requests per operation.
pub(crate) const EXAMPLES_DEFAULT: u64 = 20;
/// A larger number would take days.
pub(crate) const EXAMPLES_MAX: u64 = 1_000_000;
/// Endless streams: they have tests of their own.
const ENDLESS: [&str; 2] = ["/v1/events", "/v1/pulse"];
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,allow_header_conformance";

/// A request can set a topic's limit to 0; a put is then rightly answered with 507.
const CONFIG: &str = "[checks.not_a_server_error]\n\
    expected-statuses = ['1xx', '2xx', '3xx', '4xx', '507']\n";

/// Installs schemathesis below `target`, starts a server and tries every operation.
pub(crate) fn run(root: &Path, examples: u64) -> Result<(), String> {
    let target = target_dir(root);
    let tools = target.join("schemathesis");
    if !tools.join("schemathesis").is_dir() {
        let place = tools.display().to_string();
        let pip = ["python3", "-m", "pip", "install", "--quiet", "--target", &place, VERSION];
        let pip = Invocation::new(pip);
        pip.run(root).map_err(|reason| format!("`{pip}` failed ({reason}); it needs PyPI"))?;
    }
    let program = build_binary(root)?;
    let data = target.join("schemathesis-data");
    // Data of an earlier run would only make this one slower.
    let _ = std::fs::remove_dir_all(&data);
    let config = target.join("schemathesis.toml");
    std::fs::write(&config, CONFIG).map_err(|error| format!("{}: {error}", config.display()))?;
    let server = Server::start(&program, &data)?;
    let schema = format!("{}/openapi.json", server.url);
    let examples = examples.to_string();
    let words = [
        "env",
        &format!("PYTHONPATH={}", tools.display()),
        "python3",
        "-m",
        "schemathesis.cli",
        "--config-file",
        &config.display().to_string(),
        "run",
        &schema,
        "--checks",
        CHECKS,
        "--exclude-path",
        ENDLESS[0],
        "--exclude-path",
        ENDLESS[1],
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        &examples,
        "--warnings",
        "off",
    ];
    Invocation::new(words).run(root)
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path, data: &Path) -> Result<Server, String> {
        let mut child = Command::new(program)
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the server does not start: {error}"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let url = line.trim().strip_prefix("http listening on ").map(str::to_owned);
        let mut server = Server { child, url: String::new() };
        server.url = url.ok_or_else(|| format!("the server said {line:?}"))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
