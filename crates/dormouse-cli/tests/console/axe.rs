//! What axe-core objects to: nothing. `axe.sh` beside this file fetches it and runs this test.

use dormouse_check::browser::{Browser, key};
use serde_json::json;

use crate::console::{DIALOGS, SCREENS, address, fill, open, serve, show};

const RUN: &str = "const done = arguments[arguments.length - 1]; \
    const nodes = (one) => one.nodes.map((node) => node.html).slice(0, 3).join(' | '); \
    const text = (one) => `${one.id}: ${nodes(one)}`; \
    axe.run(document, {resultTypes: ['violations']}).then( \
      (found) => done(found.violations.map(text)), (error) => done([String(error)]))";

#[test]
#[ignore = "needs axe-core from npm: `cargo xtask clients` runs it"]
fn axe_finds_no_violation() {
    let path = std::env::var("DORMOUSE_AXE").expect("DORMOUSE_AXE names axe.min.js");
    let axe = std::fs::read_to_string(path).unwrap();
    let server = serve(&[]);
    fill(server.addr);
    let base = address(server.addr);
    let browser = Browser::start();
    let mut found = Vec::new();
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)] {
        browser.show_as(width, 900, scheme);
        let screens = SCREENS.iter().map(|&(name, hash, title)| (name, hash, title, &[][..]));
        for (name, hash, title, buttons) in screens.chain(DIALOGS.iter().copied()) {
            show(&browser, &base, hash, title);
            if !buttons.is_empty() {
                open(&browser, buttons);
            }
            browser.run(&format!("if (!window.axe) {{ {axe} }} return null"), &[]);
            let violations = browser.run_async(RUN, &[]);
            if violations != json!([]) {
                found.push(format!("{name} {scheme} {width}: {violations}"));
            }
            browser.press(key::ESCAPE);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
