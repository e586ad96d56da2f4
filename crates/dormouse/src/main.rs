//! The binary: server and command line of the Dormouse delay queue.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
