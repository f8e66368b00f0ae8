//! The binary `node-remedy`: reads arguments, runs one command, turns errors into words.

use std::process::ExitCode;

use clap::Parser as _;
use node_remedy::Cli;
use node_remedy_device_cli::output;
use node_remedy_device_cli::output::Unread;
use node_remedy_sandbox::compile;

/// A command that was mistyped (EX_USAGE of sysexits.h). Not 2, as is clap's habit: that is
/// what `fence … status` says of a machine that is off.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    // A child of `run`, which compiles a plugin from outside and holds nothing else.
    if arguments.get(1).is_some_and(|first| first == compile::CHILD_ARGUMENT) {
        return compile::child_main();
    }
    if let Some(done) = node_remedy::as_agent(&arguments) {
        return ended(done);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => {
            // Where nobody reads, there is nobody to tell that nobody reads.
            let _ = told.print();
            return if told.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    ended(node_remedy::carry_out(cli))
}

fn ended(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) if error.is::<Unread>() => ExitCode::from(Unread::EXIT),
        Err(error) => {
            output::complain(format_args!("node-remedy: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
