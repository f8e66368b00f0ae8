//! The one door to everything that is done with this repository: `cargo xtask COMMAND`.
//!
//! It starts other programs, tells what they do and how long it takes, and keeps their output in
//! `target/logs`. It deliberately contains nothing that node-remedy itself needs.

mod arguments;
mod bench;
mod check;
mod codegen;
mod demo;
mod failures;
mod guarantees;
mod languages;
mod levels;
mod new_method;
mod plugins;
mod prerequisites;
mod progress;
mod root;
mod setup;
mod sim;
mod source;
mod stamp;
mod table;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

struct Subcommand {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(&[&str]) -> Result<()>,
}

/// In the order in which a newcomer needs them.
const COMMANDS: [Subcommand; 10] = [
    Subcommand {
        name: "demo",
        summary: "three runs of a cluster, simulated, each with its report; needs only Rust",
        help: demo::HELP,
        run: demo::run,
    },
    Subcommand {
        name: "test",
        summary: "sets up what the tests need and runs them, all or some levels",
        help: levels::HELP,
        run: levels::run,
    },
    Subcommand {
        name: "sim",
        summary: "plays runs drawn from seeds, in which everything goes wrong",
        help: sim::HELP,
        run: sim::run,
    },
    Subcommand {
        name: "new-method",
        summary: "makes the folder of a fence method that builds and passes its tests",
        help: new_method::HELP,
        run: new_method::run,
    },
    Subcommand {
        name: "guarantees",
        summary: "each promise with the tests that hold it",
        help: guarantees::HELP,
        run: guarantees::run,
    },
    Subcommand {
        name: "setup",
        summary: "installs what the tests need and says what it could not get",
        help: setup::HELP,
        run: setup::run,
    },
    Subcommand {
        name: "check",
        summary: "format, lints, tidiness, generated files, packages",
        help: check::HELP,
        run: check::run,
    },
    Subcommand {
        name: "plugins",
        summary: "builds the fence plugins and compiles them ahead",
        help: plugins::HELP,
        run: plugins::run,
    },
    Subcommand {
        name: "codegen",
        summary: "writes the generated files, or checks them",
        help: codegen::HELP,
        run: codegen::run,
    },
    Subcommand {
        name: "bench",
        summary: "measures, and prints tables of medians",
        help: bench::HELP,
        run: bench::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", overview());
        return Ok(());
    };
    if is_help(name) || *name == "help" {
        print!("{}", overview());
        return Ok(());
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == *name) else {
        bail!("there is no command {name:?}; see `cargo xtask --help`");
    };
    if rest.iter().any(|argument| is_help(argument)) {
        println!("cargo xtask {}: {}\n\n{}", command.name, command.summary, command.help);
        return Ok(());
    }
    (command.run)(rest)
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h")
}

fn overview() -> String {
    let lines: Vec<_> = COMMANDS
        .iter()
        .map(|command| format!("  {:<8} {}", command.name, command.summary))
        .collect();
    format!(
        "cargo xtask COMMAND [OPTIONS]\n\n{}\n\nExamples:\n  cargo xtask demo\n  \
         cargo xtask test unit\n  cargo xtask test --help\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_help_with_an_example_and_stands_in_the_overview() {
        for command in &COMMANDS {
            let example = format!("cargo xtask {}", command.name);
            assert!(command.help.contains(&example), "{}", command.name);
            assert!(overview().contains(command.summary), "{}", command.name);
        }
    }

    #[test]
    fn an_unknown_command_is_refused_by_name() {
        assert!(run(&["tets"]).unwrap_err().to_string().contains("tets"));
        assert!(run(&["setup", "--fast"]).unwrap_err().to_string().contains("--fast"));
    }
}
