//! `audit verify`: whether an audit log is as it was written.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use node_remedy_device_cli::output::outln;
use node_remedy_record::hash_chain::verify;
use node_remedy_record::sentences::count_of;

/// `audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that no line was changed, taken out or put in; names the first that was
    Verify {
        /// The files in the order in which they were written, the oldest first
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Exits 0 if the files are whole, 1 with the first broken line if not.
pub fn audit(command: &AuditCommand) -> anyhow::Result<ExitCode> {
    let AuditCommand::Verify { files } = command;
    let whole = verify(files)?;
    outln!("whole: {}, the last one is sha256:{}", count_of(whole.lines, "line"), whole.last);
    if whole.goes_on {
        outln!("it goes on after a line of another file that was not given");
    }
    if whole.torn > 0 {
        outln!("{} that a process died within", count_of(whole.torn, "line"));
    }
    Ok(ExitCode::SUCCESS)
}
