//! What is in force for one node, for a terminal.

use std::fmt;
use std::fmt::Formatter;

use serde_json::Value;

use crate::config::shown::{Shown, ShownMethod, ShownPlan, ShownPolicy, Sourced};

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is =
            if self.missing.is_empty() { "nothing is missing" } else { "something is missing" };
        writeln!(f, "{}: {is}", self.node)?;
        list(f, "missing", &self.missing)?;
        list(f, "chosen by", &self.precedence)?;
        if let Some(policy) = &self.policy {
            policy_text(f, policy)?;
        }
        if let Some(plan) = &self.plan {
            plan_text(f, plan)?;
        }
        self.release_text(f)?;
        list(f, "problems of what was read", &self.problems)?;
        writeln!(f, "not looked at\n  {}", self.not_looked_at)
    }
}

impl Shown {
    fn release_text(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(classes) = self.release.values().next() else { return Ok(()) };
        writeln!(f, "released, by proof and by the pod's volumes")?;
        let header = classes.iter().map(|(class, _)| *class);
        writeln!(f, "{}", row("", header))?;
        for (grade, cells) in &self.release {
            let cells = cells.iter().map(|(_, is_released)| if *is_released { "yes" } else { "-" });
            writeln!(f, "{}", row(grade, cells))?;
        }
        writeln!(
            f,
            "  Never: pods of DaemonSets, of files on the node, and that tolerate the \
                     out-of-service taint."
        )
    }
}

fn row<'a>(head: &str, cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:<18}")).collect();
    format!("  {head:<18} {}", cells.join(" ")).trim_end().to_owned()
}

fn list(f: &mut Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    if !lines.is_empty() {
        writeln!(f, "{title}")?;
    }
    lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
}

fn policy_text(f: &mut Formatter<'_>, policy: &ShownPolicy) -> fmt::Result {
    writeln!(f, "policy {}, mode {}", policy.origin, word(&policy.mode))?;
    for (name, Sourced { value, from }) in &policy.numbers {
        writeln!(f, "  {name:<20} {:<10} {from}", word(value))?;
    }
    writeln!(f, "thresholds")?;
    for threshold in &policy.thresholds {
        let period = match threshold.period.as_str() {
            "0s" => String::new(),
            period => format!(" for {period}"),
        };
        writeln!(f, "  {}{period}  {}", threshold.symptom, threshold.from)?;
        for (number, remedy_step) in (1_usize..).zip(&threshold.ladder) {
            let cleans = if remedy_step.clean_resource { "; its success releases" } else { "" };
            let (name, remedy, period) =
                (&remedy_step.name, &remedy_step.remedy, &remedy_step.period);
            writeln!(f, "    remedy{number} {name}: {remedy}, then {period}{cleans}")?;
        }
    }
    Ok(())
}

fn plan_text(f: &mut Formatter<'_>, plan: &ShownPlan) -> fmt::Result {
    writeln!(f, "plan {}", plan.sources.join(", "))?;
    for (step, stages) in &plan.steps {
        for stage in stages {
            let run = match stage.run {
                "all" => "all of",
                _ => "the first that succeeds of",
            };
            writeln!(f, "  {step}: {}: {run} {}", stage.name, stage.methods.join(", "))?;
        }
    }
    plan.methods.iter().try_for_each(|method| method_text(f, method))?;
    for grant in &plan.grants {
        let json = serde_json::to_string(grant).unwrap_or_default();
        writeln!(f, "  grant {json}")?;
    }
    Ok(())
}

fn method_text(f: &mut Formatter<'_>, method: &ShownMethod) -> fmt::Result {
    write!(f, "  method {}: {}", method.name, method.does)?;
    if !method.device.is_empty() {
        write!(f, ", device {}", method.device)?;
    }
    for (is_so, words) in [
        (method.must_success, "must succeed"),
        (method.sole_feed, "the only feed"),
        (method.trust_wiring, "its wiring is trusted"),
    ] {
        if is_so {
            write!(f, ", {words}")?;
        }
    }
    if !method.storage_drivers.is_empty() {
        write!(f, ", cuts volumes of {}", method.storage_drivers.join(", "))?;
    }
    writeln!(f)?;
    let plug = method.plug.iter().map(|plug| ("plug", plug));
    let parameters = method.parameters.iter().map(|(name, value)| (name.as_str(), value));
    for (name, Sourced { value, from }) in plug.chain(parameters) {
        writeln!(f, "    {name} = {}  {from}", word(value))?;
    }
    for (name, place) in &method.credentials {
        writeln!(f, "    credential {name}: {place}")?;
    }
    if let Some(Sourced { value, from }) = &method.witness {
        writeln!(f, "    witness: {}  {from}", word(value))?;
    }
    method.bound.iter().try_for_each(|bound| writeln!(f, "    bound by {bound}"))
}

/// A value without JSON's quotes.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
