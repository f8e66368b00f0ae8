//! A reboot that somebody interrupts goes on: a machine must not stay off because of a key. Not here: what
//! is sent ([`crate::fence::session`]).

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::complain;

/// How a program ends that was interrupted.
const EXIT_INTERRUPTED: i32 = 130;

/// From here on, for as long as this process lives, a first interrupt is answered and no more; the second
/// one ends it, and says what to run.
pub(super) fn hold_interrupts(command: &str) -> anyhow::Result<()> {
    let listen = |kind| signal(kind).context("failed to listen for interrupts");
    let mut signals = [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?];
    let command = command.to_owned();
    tokio::spawn(async move {
        next(&mut signals).await;
        complain(format_args!(
            "node-remedy: the machine is being rebooted and is switched on before this ends; interrupt \
             once more to leave it as it is"
        ));
        next(&mut signals).await;
        complain(format_args!(
            "node-remedy: THE MACHINE MAY BE OFF: look at it, and run: {command}"
        ));
        std::process::exit(EXIT_INTERRUPTED);
    });
    Ok(())
}

async fn next([interrupt, terminate]: &mut [Signal; 2]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
