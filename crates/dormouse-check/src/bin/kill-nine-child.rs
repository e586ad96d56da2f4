//! The process that tests/process_kill_nine.rs kills.

use std::process::ExitCode;

use dormouse_check::harness::process::child::{Task, run};

fn main() -> ExitCode {
    let task = std::env::args().nth(1).and_then(|text| serde_json::from_str::<Task>(&text).ok());
    let Some(task) = task else {
        eprintln!(
            "kill-nine-child: started by tests/process_kill_nine.rs with a task, not by hand"
        );
        return ExitCode::from(2);
    };
    ExitCode::from(u8::try_from(run(&task)).unwrap_or(1))
}
