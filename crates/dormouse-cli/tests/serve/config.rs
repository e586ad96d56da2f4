//! `dormouse config`.

use crate::process::run;

#[test]
fn the_example_is_checked_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dormouse.toml");
    let example = run(&["config", "example"]);
    assert_eq!(example.code, Some(0));
    std::fs::write(&path, &example.stdout).unwrap();
    let path = path.to_str().unwrap();
    let checked = run(&["config", "check", path, "--drain", "1m"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let has = |words: &[&str]| {
        let is = |line: &str| line.split_whitespace().collect::<Vec<_>>() == words;
        assert!(checked.stdout.lines().any(is), "{words:?}: {checked:?}");
    };
    has(&["KEY", "VALUE", "FROM"]);
    has(&["drain", "\"60s\"", "--drain"]);
    let line = 1 + example.stdout.lines().position(|line| line.starts_with("log =")).unwrap();
    has(&["log", "\"info\"", &format!("{path}:{line}")]);
}

#[test]
fn a_mistake_is_wrong_usage() {
    let checked = run(&["config", "check", "/nowhere/dormouse.toml"]);
    assert_eq!(checked.code, Some(2));
    assert!(checked.stderr.contains("cannot read /nowhere/dormouse.toml"), "{checked:?}");
    let checked = run(&["config", "check", "--durability", "relaxed=0"]);
    assert_eq!(checked.code, Some(2));
    assert!(checked.stderr.contains("1 to 60000 ms"), "{checked:?}");
    let url = "redis://u:secret@127.0.0.1:99999";
    let checked = run(&["config", "check", "--backend", "redis", "--redis-url", url]);
    assert_eq!(checked.code, Some(2));
    assert!(checked.stderr.contains("--redis-url: "), "{checked:?}");
    assert!(checked.stderr.contains("from 1 to 65535"), "{checked:?}");
    assert!(!checked.stderr.contains("secret"), "{checked:?}");
}
