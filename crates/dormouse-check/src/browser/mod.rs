//! A browser for tests: Debian's Chromium without a screen, driven over WebDriver.
//!
//! `chromedriver` starts the browser and speaks JSON over HTTP on loopback. Every session has a
//! profile of its own, which goes with it.

mod wire;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use wire::Wire;

const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMEDRIVER: &str = "/usr/bin/chromedriver";
/// Nothing on a page takes that long unless it never comes; machines may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// No sandbox: tests may run as root. The rest keeps the browser from calling home.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Keys as WebDriver names them.
pub mod key {
    /// Confirms, opens.
    pub const ENTER: &str = "\u{e007}";
    /// Closes.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The next control.
    pub const TAB: &str = "\u{e004}";
    /// Presses the control that has the focus.
    pub const SPACE: &str = " ";
    /// Held while the next keys are pressed.
    pub const SHIFT: &str = "\u{e008}";
}

/// One browser with its windows; it ends when this is dropped.
pub struct Browser {
    driver: Child,
    wire: Wire,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a driver on a free port, and a browser.
    ///
    /// # Panics
    /// If Chromium or its driver cannot be started: `cargo xtask install` installs them.
    pub fn start() -> Browser {
        let mut driver = Command::new(CHROMEDRIVER)
            .args(["--port=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{CHROMEDRIVER}: {error}; try `cargo xtask install`"));
        let port = port_of(&mut driver);
        let profile = TempDir::new().expect("a directory for the browser's profile");
        let flags = FLAGS.iter().map(|flag| json!(flag));
        let directory = format!("--user-data-dir={}", profile.path().display());
        let args: Vec<Value> = flags.chain([json!(directory)]).collect();
        let logs = json!({"browser": "ALL", "performance": "ALL"});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": logs,
            "goog:chromeOptions": {"binary": CHROMIUM, "args": args},
        }}});
        let wire = Wire { port };
        let answer = wire.call("POST", "/session", Some(&wanted));
        let id = answer["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}"));
        Browser { driver, wire, session: format!("/session/{id}"), _profile: profile }
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.wire.call("POST", &format!("{}/{command}", self.session), Some(body))
    }

    fn get(&self, command: &str) -> Value {
        self.wire.call("GET", &format!("{}/{command}", self.session), None)
    }

    /// A command of Chromium's own protocol.
    pub fn cdp(&self, command: &str, params: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Opens an address, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// The size of the window in CSS pixels, and the scheme that the system asks for.
    pub fn show_as(&self, width: u32, height: u32, scheme: &str) {
        let is_mobile = width < 500;
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile});
        self.cdp("Emulation.setDeviceMetricsOverride", &size);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.cdp("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// The value of the body of a function; `arguments` are `args`.
    pub fn run(&self, script: &str, args: &[Value]) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": args}))
    }

    /// Like `run`, for a body that calls the last of its arguments with the value.
    pub fn run_async(&self, script: &str, args: &[Value]) -> Value {
        self.post("execute/async", &json!({"script": script, "args": args}))
    }

    /// Waits until an expression is true, and gives its value.
    ///
    /// # Panics
    /// If it stays false; the text of the page tells what was there instead.
    pub fn wait_for(&self, expression: &str) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        let script = format!("return ({expression})");
        loop {
            let value = self.run(&script, &[]);
            let is_true = !matches!(&value, Value::Null | Value::Bool(false)) && value != json!("");
            if is_true && value != json!(0) {
                return value;
            }
            if Instant::now() > deadline {
                let page = self.run("return document.body.innerText", &[]);
                let log = self.log();
                let log = &log[..log.len().min(8)];
                panic!("it never was: {expression}\nthe page says: {page}\nlog: {log:?}");
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until the page shows a text.
    pub fn wait_for_text(&self, text: &str) {
        self.wait_for(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Presses and releases each key, one after the other; `SHIFT` is held until the end.
    pub fn press(&self, keys: &str) {
        let mut actions = Vec::new();
        let mut held = Vec::new();
        for key in keys.chars().map(String::from) {
            actions.push(json!({"type": "keyDown", "value": key}));
            if key == key::SHIFT {
                held.push(key);
            } else {
                actions.push(json!({"type": "keyUp", "value": key}));
            }
        }
        actions.extend(held.iter().map(|key| json!({"type": "keyUp", "value": key})));
        self.post(
            "actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// Writes what the window shows to a file, as PNG.
    pub fn screenshot(&self, path: &Path) {
        let picture = self.get("screenshot");
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(picture.as_str().unwrap_or_default())
            .expect("a picture in base64");
        std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// What the console of the page printed since the last look: errors, refusals of the policy.
    pub fn log(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "browser"}));
        let text = |entry: &Value| format!("{} {}", entry["level"], entry["message"]);
        entries.as_array().into_iter().flatten().map(text).collect()
    }

    /// The addresses that were asked for since the last look.
    pub fn requests(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "performance"}));
        let url = |entry: &Value| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let event = &event["message"];
            let is_request = event["method"] == "Network.requestWillBeSent";
            let url = event["params"]["request"]["url"].as_str()?;
            is_request.then(|| url.to_owned())
        };
        entries.as_array().into_iter().flatten().filter_map(url).collect()
    }

    /// Opens one more tab and goes there; the name is for `switch`.
    pub fn new_tab(&self) -> String {
        let handle = self.post("window/new", &json!({"type": "tab"}))["handle"].clone();
        let handle = handle.as_str().expect("a handle of the new tab").to_owned();
        self.switch(&handle);
        handle
    }

    /// Goes to another tab.
    pub fn switch(&self, tab: &str) {
        self.post("window", &json!({"handle": tab}));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.wire.end(&self.session);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port on which the driver says that it listens.
fn port_of(driver: &mut Child) -> u16 {
    let stdout = driver.stdout.take().expect("the driver's stdout is a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let line = lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("started successfully on port")));
    let line = line.and_then(Result::ok).expect("the driver says its port");
    // What it says later is read, too: it must not wait for a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let digits = line.rsplit("port ").next().unwrap_or_default().trim_end_matches('.');
    digits.parse().unwrap_or_else(|_| panic!("no port in {line:?}"))
}
