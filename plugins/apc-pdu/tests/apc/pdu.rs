//! PDUs in memory, with each of APC's tables: eight outlets that are on, named node1 to node8.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_apc_pdu::ApcPdu;
use node_remedy_plugin_snmp::testing::{Agent, Change};
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, Failure, FenceMethod, Outcome, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 30_000;

/// Which PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    Rpdu2,
    Rpdu,
    MasterSwitchPlus,
    MasterSwitch,
}

pub(crate) const MODELS: [Model; 4] =
    [Model::Rpdu2, Model::Rpdu, Model::MasterSwitchPlus, Model::MasterSwitch];

/// Columns of a table, what its commands are, and what its status says.
struct Table {
    status: &'static [u32],
    control: &'static [u32],
    names: &'static [u32],
    before: &'static [u32],
    commands: [i64; 2],
    states: [i64; 2],
}

const RPDU2: Table = Table {
    status: &[26, 9, 2, 3, 1, 5],
    control: &[26, 9, 2, 4, 1, 5],
    names: &[26, 9, 2, 3, 1, 3],
    before: &[],
    commands: [1, 2],
    states: [2, 1],
};
const RPDU: Table = Table {
    status: &[12, 3, 5, 1, 1, 4],
    control: &[12, 3, 3, 1, 1, 4],
    names: &[12, 3, 5, 1, 1, 2],
    before: &[],
    commands: [1, 2],
    states: [1, 2],
};
const PLUS: Table = Table {
    status: &[6, 7, 1, 1, 5],
    control: &[6, 5, 1, 1, 5],
    names: &[6, 7, 1, 1, 4],
    before: &[1, 1],
    commands: [1, 3],
    states: [1, 2],
};
const PLAIN: Table = Table {
    status: &[4, 4, 2, 1, 3],
    control: &[4, 4, 2, 1, 3],
    names: &[4, 4, 2, 1, 4],
    before: &[],
    commands: [1, 2],
    states: [1, 2],
};

impl Model {
    /// Newer ones keep the older tables.
    fn tables(self) -> &'static [Table] {
        match self {
            Self::Rpdu2 => &[RPDU2, RPDU, PLAIN],
            Self::Rpdu => &[RPDU, PLAIN],
            Self::MasterSwitchPlus => &[PLUS],
            Self::MasterSwitch => &[PLAIN],
        }
    }

    /// Where its own word on an outlet stands.
    pub(crate) fn status(self, outlet: u32) -> Vec<u32> {
        let table = &self.tables()[0];
        oid(table.status, table.before, outlet)
    }

    /// What stands there for on and off.
    pub(crate) fn states(self) -> [i64; 2] {
        self.tables()[0].states
    }

    pub(crate) fn pdu(self) -> Agent {
        let mut agent = Agent::new();
        for outlet in 1..=8 {
            for table in self.tables() {
                let at = |column| oid(column, table.before, outlet);
                agent.put_text(&at(table.names), &format!("node{outlet}"));
                agent.put_number(&at(table.control), table.states[0]);
                agent.put_number(&at(table.status), table.states[0]);
                let commands = table.commands;
                let shown: Vec<_> = self
                    .tables()
                    .iter()
                    .map(|one| (oid(one.status, one.before, outlet), one.states))
                    .collect();
                agent.put_rule(
                    &at(table.control),
                    Box::new(move |value| {
                        let place = commands.iter().position(|command| *command == value);
                        let to = |to: usize, after_ms| {
                            let change = move |(oid, states): &(Vec<u32>, [i64; 2])| Change {
                                after_ms,
                                oid: oid.clone(),
                                to: states[to],
                            };
                            shown.iter().map(change).collect::<Vec<_>>()
                        };
                        match (place, value) {
                            (Some(place), _) => Some(to(place, 0)),
                            // Reboot.
                            (None, 3) => Some([to(1, 0), to(0, 5_000)].concat()),
                            (None, _) => None,
                        }
                    }),
                );
            }
        }
        agent
    }
}

fn oid(column: &[u32], before: &[u32], outlet: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 4, 1, 318, 1, 1], column, before, &[outlet]].concat()
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u128,
    pub(crate) trace: Vec<Trace>,
    pub(crate) pdu: Rc<RefCell<Agent>>,
}

/// One call to a PDU, as the community that may write.
pub(crate) fn ask(pdu: Agent, action: Action, plug: &str) -> Ended {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(pdu, request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    pdu: Agent,
    mut request: Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended {
    request.parameters.push(("version".to_owned(), "2c".to_owned()));
    let pdu = pdu.shared();
    let plain = TestHost::new(u64::from(request.deadline_ms))
        .device("agent", pdu.clone())
        .credential("community", None, b"private")
        .revealing("community");
    let host = host(plain);
    let result = ApcPdu.run(&request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), trace: host.trace(), pdu }
}
