//! The binary `node-remedy`: reads arguments, runs one command, turns errors into words.

use std::process::ExitCode;

use clap::Parser as _;
use node_remedy::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::carry_out(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("node-remedy: {error:#}");
            ExitCode::FAILURE
        }
    }
}
