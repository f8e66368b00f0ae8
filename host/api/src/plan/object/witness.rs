//! Methods that prove another one's off: which may, and that nobody else is asked for nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reader, missing};
use crate::document::Path;
use crate::fenceconfiguration::FenceConfigurationSpec;
use crate::plan::plugins::{ActionSet, only_watches};
use crate::plan::source::{Does, Draft};

impl Reader<'_> {
    /// A witness is another plugin's, and read by nobody but for what it proves; whatever else has no
    /// action does nothing.
    pub(super) fn witnesses(
        &mut self,
        spec: &FenceConfigurationSpec,
        drafts: &BTreeMap<&str, Option<Draft>>,
        base: &Path,
    ) {
        let draft = |name: &str| drafts.get(name).and_then(Option::as_ref);
        let called: BTreeSet<&str> =
            spec.methods.iter().filter_map(|method| method.witness.as_deref()).collect();
        for (index, method) in spec.methods.iter().enumerate() {
            let path = base.field("methods").index(index);
            let Some(own) = draft(&method.name) else { continue };
            let Does::Plugin(plugin) = &own.does else {
                if method.witness.is_some() {
                    let sentence = "found a witness of a built-in method, expected none";
                    self.error(&path.field("witness"), sentence.to_owned());
                }
                continue;
            };
            let is_read = own.asked == ActionSet::default() && !only_watches(plugin);
            if is_read && !called.contains(method.name.as_str()) {
                let sentence = "found nothing, expected off, on, reboot or reset; or that it is \
                                another method's witness";
                self.error(&path.field("action"), sentence.to_owned());
            }
            let Some(name) = &method.witness else { continue };
            let path = path.field("witness");
            if !own.asked.off {
                let sentence = format!(
                    "found {name} for a method that switches nothing off, expected action off or reboot"
                );
                self.error(&path, sentence);
            }
            let Some(witness) = draft(name) else {
                if !drafts.contains_key(name.as_str()) {
                    self.error(&path, missing(name, "method", drafts.keys().copied()));
                }
                continue;
            };
            let why = match &witness.does {
                Does::Plugin(other) if other == plugin => format!("of the plugin {plugin}, too"),
                Does::Plugin(other) if only_watches(other) => "which reads no power".to_owned(),
                Does::Plugin(_) if witness.asked != ActionSet::default() => {
                    "which has an action".to_owned()
                }
                Does::Plugin(_) => continue,
                Does::Builtin(_) | Does::Instance => "which is built in".to_owned(),
            };
            self.error(
                &path,
                format!(
                    "found {name}, {why}, expected a method without an action, of another plugin \
                     that reads the machine's power"
                ),
            );
        }
    }
}
