//! The models of `host/world` against the real control plane: the same scripts on both, and the
//! same answers and facts.

mod deletes;
mod evictions;
mod facts;
mod model;
mod nodes;
mod play;
mod real;
mod requests;
mod script;
mod side;
mod trace;
mod volumes;

use anyhow::{Result, ensure};
use futures::future::join_all;
use node_remedy_tests::control_plane::Kubernetes;

use self::model::Model;
use self::play::{Raced, Transcript, play};
use self::real::{Cluster, Real};
use self::script::Script;
use self::side::Company;

/// Plays scripts side by side on a real control plane of each release and one after the other on the models. Fails
/// with all differences of all releases.
async fn compare(name: &str, company: Company, scripts: Vec<Script>) -> Result<()> {
    let mut failures = Vec::new();
    for release in Kubernetes::ALL {
        let compared = compare_with(release, name, company, &scripts).await;
        let failed = |failure| format!("on Kubernetes {release:?}: {failure:#}");
        failures.extend(compared.err().map(failed));
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

async fn compare_with(
    release: Kubernetes,
    name: &str,
    company: Company,
    scripts: &[Script],
) -> Result<()> {
    let cluster = Cluster::start(release, name, company).await?;
    let on_real = join_all(scripts.iter().map(|script| on_real(&cluster, script))).await;
    let mut differences = Vec::new();
    for (script, real) in scripts.iter().zip(on_real) {
        let model = play(script, &mut Model::new(script, company)).await;
        if let Ok(Transcript { answers, facts }) = &real {
            println!(
                "{release:?} {}: {} answers, {} facts",
                script.name,
                answers.len(),
                facts.len()
            );
        }
        differences.extend(difference(script.name, real, model));
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

/// Plays a script on a real control plane. One that ends in [`Raced`] is played again under another name, with fresh nodes, at
/// most twice.
async fn on_real(cluster: &Cluster, script: &Script) -> Result<Transcript> {
    let play = async |script: &Script| play(script, &mut Real::new(cluster, script)).await;
    let mut played = play(script).await;
    for name in ["second-try", "third-try"] {
        match &played {
            Err(error) if error.is::<Raced>() => {
                println!("{}: {error:#}; played again as {name}", script.name);
            }
            Ok(_) | Err(_) => break,
        }
        played = play(&Script { name, ..script.clone() }).await;
    }
    played
}

/// What is not the same, line by line: `-` only the real one, `+` only the model.
fn difference(name: &str, real: Result<Transcript>, model: Result<Transcript>) -> Option<String> {
    let (real, model) = match (real, model) {
        (Ok(real), Ok(model)) if real == model => return None,
        (Ok(real), Ok(model)) => (real, model),
        (real, model) => {
            let failures = [real.err(), model.err()].into_iter().flatten();
            let failures: Vec<String> = failures.map(|failure| format!("{failure:#}")).collect();
            return Some(format!("── {name}: {}", failures.join("\n")));
        }
    };
    let both = |one: &[String], other: &[String]| {
        let mut lines = Vec::new();
        for place in 0..one.len().max(other.len()) {
            match (one.get(place), other.get(place)) {
                (Some(one), Some(other)) if one == other => lines.push(format!("  {one}")),
                (one, other) => {
                    lines.extend(one.map(|line| format!("- {line}")));
                    lines.extend(other.map(|line| format!("+ {line}")));
                }
            }
        }
        lines.join("\n")
    };
    let answers = both(&real.answers, &model.answers);
    Some(format!("── {name}\n{answers}\n{}", both(&real.facts, &model.facts)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_answered_alike() -> Result<()> {
    let scripts = requests::scripts().into_iter().chain(deletes::scripts());
    let scripts = scripts.chain(evictions::scripts());
    compare("models-requests", Company::Nobody, scripts.collect()).await
}

/// These wait for minutes: a test for each release, so that they can do so side by side.
async fn lost_nodes(release: Kubernetes) -> Result<()> {
    let scripts: Vec<Script> = nodes::scripts().into_iter().chain(volumes::scripts()).collect();
    compare_with(release, "models-nodes", Company::Bystander, &scripts).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_nodes_have_the_same_consequences() -> Result<()> {
    lost_nodes(Kubernetes::V1_37).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_nodes_have_the_same_consequences_in_the_release_before() -> Result<()> {
    lost_nodes(Kubernetes::V1_36).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_every_node_has_the_same_consequences() -> Result<()> {
    compare("models-all-nodes", Company::Nobody, vec![nodes::all_nodes()]).await
}
