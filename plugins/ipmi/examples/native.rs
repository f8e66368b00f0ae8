//! The plugin without its sandbox, on a real BMC: `native ADDRESS USER PASSWORD ACTION [REPEAT]`.
//!
//! For trying out and for measuring only: here the password is in the plugin's own process. With
//! REPEAT the call is made so many times and the median is printed.

use std::process::ExitCode;

use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{Action, FenceMethod, Host, Request};

const DEADLINE_MS: u32 = 60_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, user, password, action, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: native ADDRESS:PORT USER PASSWORD status|off|on|reset|monitor [REPEAT]");
        return ExitCode::FAILURE;
    };
    let action = match action.as_str() {
        "off" => Action::Off,
        "on" => Action::On,
        "reset" => Action::Reset,
        "monitor" => Action::Monitor,
        _ => Action::Status,
    };
    let repeat = rest.first().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut took_us = Vec::new();
    for seed in 0..repeat {
        let host = TestHost::real_time(u64::from(DEADLINE_MS))
            .seed(seed)
            .credential("account", Some(user), password.as_bytes())
            .socket("bmc", address);
        let result = Ipmi.run(&Request::new(action, DEADLINE_MS), &host);
        took_us.push(host.elapsed().as_micros());
        match result {
            Ok(outcome) if seed == 0 => println!("{outcome:#?} in {} ms", host.elapsed_ms()),
            Ok(_) => {}
            Err(failure) => {
                println!("{:?}: {} in {} ms", failure.kind, failure.detail, host.elapsed_ms());
                return ExitCode::FAILURE;
            }
        }
    }
    took_us.sort_unstable();
    if let (Some(median), true) = (took_us.get(took_us.len() / 2), repeat > 1) {
        println!("median of {repeat}: {median} µs");
    }
    ExitCode::SUCCESS
}
