//! A switch in memory: ports with ifIndex 10001 to 10008, which are up and give power.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_snmp::Value;
use node_remedy_plugin_snmp::testing::{Account, Agent, Change};
use node_remedy_plugin_snmp_switch::SnmpSwitch;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, Failure, FenceMethod, Outcome, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 30_000;

/// The ifIndex of a port.
pub(crate) fn index(port: u32) -> u32 {
    10_000 + port
}

pub(crate) fn admin(port: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1, 2, 2, 1, 7][..], &[index(port)]].concat()
}

pub(crate) fn oper(port: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1, 2, 2, 1, 8][..], &[index(port)]].concat()
}

pub(crate) fn name(port: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1][..], &[index(port)]].concat()
}

pub(crate) fn alias(port: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18][..], &[index(port)]].concat()
}

pub(crate) fn descr(port: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1, 2, 2, 1, 2][..], &[index(port)]].concat()
}

pub(crate) fn poe(column: u32, port: u32) -> Vec<u32> {
    vec![1, 3, 6, 1, 2, 1, 105, 1, 1, 1, column, 1, port]
}

/// `oper_follows_ms`: how long after the admin status the other one changes; `None`: never.
pub(crate) fn switch(oper_follows_ms: Option<u64>) -> Agent {
    let mut agent = Agent::new();
    let account = Account { auth: None, privacy: None, may_write: false };
    agent.put_account("looker", account);
    for port in 1..=8 {
        agent.put_text(&name(port), &format!("Gi1/0/{port}"));
        agent.put_text(&alias(port), &format!("node{port}"));
        agent.put_text(&descr(port), &format!("GigabitEthernet1/0/{port}"));
        agent.put_number(&admin(port), 1);
        agent.put_number(&oper(port), 1);
        agent.put_number(&poe(3, port), 1);
        agent.put_number(&poe(6, port), 3);
        agent.put_rule(
            &admin(port),
            Box::new(move |to| {
                let told = Change { after_ms: 0, oid: admin(port), to };
                let shown =
                    oper_follows_ms.map(|after_ms| Change { after_ms, oid: oper(port), to });
                matches!(to, 1..=3).then(|| [told].into_iter().chain(shown).collect())
            }),
        );
        agent.put_rule(
            &poe(3, port),
            Box::new(move |to| {
                let told = Change { after_ms: 0, oid: poe(3, port), to };
                let power = if to == 1 { 3 } else { 1 };
                let shown = Change { after_ms: 0, oid: poe(6, port), to: power };
                matches!(to, 1 | 2).then(|| vec![told, shown])
            }),
        );
    }
    // The switch itself: an interface that has a name and no table beside it.
    agent.put(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1, 1], Value::Text(b"Vl1".to_vec()));
    agent
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u128,
    pub(crate) trace: Vec<Trace>,
    pub(crate) switch: Rc<RefCell<Agent>>,
}

/// One call, as the community that may write.
pub(crate) fn ask(switch: Agent, action: Action, plug: &str) -> Ended {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(switch, request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    switch: Agent,
    mut request: Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended {
    if request.parameter("version").is_none() {
        request.parameters.push(("version".to_owned(), "2c".to_owned()));
    }
    let switch = switch.shared();
    let plain = TestHost::new(u64::from(request.deadline_ms))
        .device("agent", switch.clone())
        .credential("community", None, b"private")
        .revealing("community");
    let host = host(plain);
    let result = SnmpSwitch.run(&request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), trace: host.trace(), switch }
}
