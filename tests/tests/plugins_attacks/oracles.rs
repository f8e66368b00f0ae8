//! Attacks 64 and 65: what the host does with a secret that a plugin guesses at. A plugin that may not read one could find
//! out each letter by itself if an answer, or a wait, depended on it.

use anyhow::Result;
use node_remedy_sandbox::{AdminGrant, Ended};

use super::alone::alone;
use super::canary;
use super::host::{Host, Try, attempt, case, fleet};
use super::victims::{Device, echo};

const OWN: &str = "10.9.0.7";
const GUESSES: usize = 100_000;

#[test]
fn neither_an_answer_nor_a_wait_tells_of_a_secret() -> Result<()> {
    alone("oracles::neither_an_answer_nor_a_wait_tells_of_a_secret", async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        checkpoints(&host).await?;
        echoes(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

fn deed(name: &str) -> Try {
    attempt(name).with("address", OWN).under(fleet())
}

async fn checkpoints(host: &Host) -> Result<()> {
    let guess = deed("guess-by-checkpoint").with("sought", &turned_over(canary::ACCOUNT));
    let how = "the right password and a wrong one as checkpoints, 100,000 times in one call";
    host.attack(
        case(64, "checkpoint as an oracle", how),
        async || {
            let guess = guess.clone().number(GUESSES);
            let says = format!("0 of {GUESSES} guesses told apart");
            let (report, said) = host.must(&guess, Ended::Returned, &says).await?;
            anyhow::ensure!(report.checkpoint.is_none(), "a secret is kept");
            Ok(said)
        },
        async || {
            let honest = deed("checkpoint").number(100);
            let (report, said) = host.must(&honest, Ended::Returned, "kept").await?;
            anyhow::ensure!(report.checkpoint.is_some(), "nothing is kept");
            Ok(said)
        },
    )
    .await
}

async fn echoes(host: &Host) -> Result<()> {
    let _echo = echo("10.9.0.7:23").await?;
    let grant = AdminGrant { ports: vec![23..=23, 623..=623], ..fleet() };
    let guess = deed("guess-by-echo").with("line", OWN).under(grant.clone());
    let how = "a device that echoes, the host's secret first; then guesses that begin right, and wrong ones";
    host.attack(
        case(65, "echo as an oracle", how),
        async || {
            let own = canary::ACCOUNT;
            let begun = [1, 4, 8, 14].map(|length| own.get(..length).unwrap_or_default());
            // As long, and wrong from the first letter on.
            let both = begun.map(|right| format!("{right},{}", "=".repeat(right.len())));
            let guess = guess.clone().with("body", &both.join(","));
            host.says(&guess, Ended::Returned, "hidden true, 1 kinds of answers").await
        },
        async || {
            let talk = attempt("stream").with("line", OWN).with("body", "on").under(grant.clone());
            let (_, said) = host.must(&talk, Ended::Returned, "outcome on: on").await?;
            Ok(format!("where no secret was written, nothing waits: {said}"))
        },
    )
    .await
}

/// A secret as the attacker is told it: with each bit turned over.
fn turned_over(secret: &str) -> String {
    let turned = secret.bytes().map(|byte| format!("{:02x}", byte ^ 0xff));
    turned.collect::<Vec<_>>().concat()
}
