//! `plugin run`: a component in a file, called on a real device exactly as `fence` calls a built-in method:
//! granted the address that was typed and nothing else. Shows what was said on the way, keeps it as a
//! transcript, and plays one again without any device.

pub mod args;
pub mod replay;
pub mod told;
pub mod transcript;

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use node_remedy_api::configuration::Configuration;
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_loader::limits::limits;
use node_remedy_sandbox::{Entropy, NoEntropy, PluginLimits, SystemEntropy};
use node_remedy_store::store::Plugins;
use serde_json::json;

use crate::args::{FenceAction, Output, here};
use crate::fence::session::DeviceSession;
use crate::fence::{FenceRequest, act};
use crate::files::read_text;
use crate::output::{complain, outln};
use crate::plugin::file::load;
use crate::plugin::run::transcript::Transcript;

pub use args::{RunArgs, check_fits};

/// Carries it out.
pub(super) fn run(plugins: &Plugins, args: &RunArgs) -> anyhow::Result<ExitCode> {
    match (&args.replay, args.action) {
        (Some(file), _) => crate::plugin::run::replay::replay(plugins, args, file),
        (None, Some(action)) => here(on_device(plugins, args, action)),
        (None, None) => bail!("no action: say one, such as status"),
    }
}

async fn on_device(
    plugins: &Plugins,
    args: &RunArgs,
    action: FenceAction,
) -> anyhow::Result<ExitCode> {
    let limits = args.fence_plugin.as_deref().map_or(Ok(PluginLimits::default()), limits_in)?;
    let (_, plugin) = load(plugins, &args.file, &limits)
        .context("within the limits of a plugin from outside, or of the file of --fence-plugin")?;
    if args.record.is_some() {
        check_fits(plugin.manifest())?;
    }
    let executor = plugins.threads(1).context("failed to start a thread")?;
    let mut hand = DeviceSession::set_up(executor, plugin.clone(), &args.device).await?;
    let drawn = Arc::new(Drawn::default());
    hand.tell_all(drawn.clone());
    let command = &format!("plugin run {}", args.file.display());
    let asked = FenceRequest { command, action, device: &args.device };
    let done = act(&mut hand, &asked).await;
    match args.output {
        Output::Json => {
            let mut document = done.document(action);
            if let Some(document) = document.as_object_mut() {
                let calls: Vec<_> = hand
                    .told()
                    .iter()
                    .map(|one| crate::plugin::run::told::document(one, plugin.limits().fuel))
                    .collect();
                document.insert("calls".to_owned(), json!(calls));
            }
            outln!("{document}");
        }
        Output::Text => {
            done.print(&plugin.manifest().name)?;
            for (number, one) in (1..).zip(hand.told()) {
                crate::plugin::run::told::print(number, one, &plugin)?;
            }
        }
    }
    if let Some(file) = &args.record {
        let transcript = Transcript::of(&plugin, &args.device.plug, &hand, &drawn.seeds())?;
        transcript.write(file)?;
        let calls = hand.told().len();
        complain(format_args!("{calls} calls are in {}", file.display()));
    }
    Ok(ExitCode::from(done.code(action)))
}

/// The limits of the FencePlugin in a file.
fn limits_in(file: &Path) -> anyhow::Result<PluginLimits> {
    let name = file.display().to_string();
    let text =
        read_text(file, DOCUMENT_BYTES_MAX).with_context(|| format!("failed to read {name}"))?;
    let read = Configuration::from_files([(name.as_str(), text.as_str())]);
    if read.problems.has_errors() {
        bail!("{}", read.problems);
    }
    let source = read.plugins.first().with_context(|| format!("{name}: found no FencePlugin"))?;
    Ok(limits(source.spec.limits.as_ref()))
}

/// The system's randomness, and what was drawn of it.
#[derive(Default)]
struct Drawn(Mutex<Vec<[u8; 32]>>);

impl Drawn {
    fn seeds(&self) -> Vec<[u8; 32]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Entropy for Drawn {
    fn seed(&self) -> Result<[u8; 32], NoEntropy> {
        let seed = SystemEntropy.seed()?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
        Ok(seed)
    }
}
