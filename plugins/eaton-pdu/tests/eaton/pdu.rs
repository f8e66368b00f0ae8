//! PDUs in memory, with each of Eaton's tables: eight outlets that are on.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_eaton_pdu::EatonPdu;
use node_remedy_plugin_snmp::testing::{Agent, Change, Rule};
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{Action, Failure, FenceMethod, Outcome, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 30_000;

/// Which PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// G2 or G3, with a second unit that is number 2 of the chain.
    Epdu,
    Managed,
    Switched,
}

pub(crate) const MODELS: [Model; 3] = [Model::Epdu, Model::Managed, Model::Switched];

const EPDU: [u32; 10] = [1, 3, 6, 1, 4, 1, 534, 6, 6, 7];
const MANAGED: [u32; 10] = [1, 3, 6, 1, 4, 1, 534, 6, 6, 6];
const SWITCHED: [u32; 9] = [1, 3, 6, 1, 4, 1, 20677, 2, 6];

/// The object that switches every outlet of a switched ePDU.
pub(crate) fn all_outlets() -> Vec<u32> {
    at(&SWITCHED, &[2, 1, 0])
}

impl Model {
    /// Where its word on an outlet stands.
    pub(crate) fn status(self, outlet: u32) -> Vec<u32> {
        match self {
            Self::Epdu => at(&EPDU, &[6, 6, 1, 2, 0, outlet]),
            Self::Managed => at(&MANAGED, &[1, 2, 2, 1, 3, outlet - 1]),
            Self::Switched => at(&SWITCHED, &[3, outlet, 0]),
        }
    }

    /// What stands there for on and off.
    pub(crate) fn states(self) -> [i64; 2] {
        match self {
            Self::Epdu | Self::Managed => [1, 0],
            Self::Switched => [1, 2],
        }
    }

    pub(crate) fn pdu(self) -> Agent {
        let mut agent = Agent::new();
        match self {
            Self::Epdu => {
                for (unit, outlet) in (1..=8).map(|outlet| (0, outlet)).chain([(2, 1), (2, 2)]) {
                    let status = at(&EPDU, &[6, 6, 1, 2, unit, outlet]);
                    agent.put_number(&status, 1);
                    let name = format!("node{outlet}-{unit}");
                    agent.put_text(&at(&EPDU, &[6, 1, 1, 3, unit, outlet]), &name);
                    for (column, changes) in
                        [(3, vec![(0, 0)]), (4, vec![(0, 1)]), (5, vec![(0, 0), (5_000, 1)])]
                    {
                        let command = at(&EPDU, &[6, 6, 1, column, unit, outlet]);
                        agent.put_number(&command, -1);
                        agent.put_rule(&command, delayed(status.clone(), changes));
                    }
                }
            }
            Self::Managed => {
                for row in 0..8 {
                    let status = at(&MANAGED, &[1, 2, 2, 1, 3, row]);
                    agent.put_number(&at(&MANAGED, &[1, 2, 2, 1, 1, row]), row.into());
                    agent.put_text(
                        &at(&MANAGED, &[1, 2, 2, 1, 2, row]),
                        &format!("node{}", row + 1),
                    );
                    agent.put_number(&status, 1);
                    agent.put_rule(&status.clone(), numbered(vec![status], [0, 1, 2], [0, 1]));
                }
            }
            Self::Switched => {
                let statuses: Vec<_> =
                    (1..=8).map(|outlet| at(&SWITCHED, &[3, outlet, 0])).collect();
                for status in &statuses {
                    agent.put_number(status, 1);
                }
                let all = all_outlets();
                agent.put_number(&all, 0);
                agent.put_rule(&all, numbered(statuses.clone(), [2, 1, 3], [2, 1]));
                for (place, status) in (2..).zip(statuses) {
                    let command = at(&SWITCHED, &[2, place, 0]);
                    agent.put_number(&command, 0);
                    agent.put_rule(&command, numbered(vec![status], [2, 1, 3], [2, 1]));
                }
            }
        }
        agent
    }
}

/// Takes a delay in seconds; -1 is none, and does nothing.
fn delayed(oid: Vec<u32>, changes: Vec<(u64, i64)>) -> Rule {
    Box::new(move |seconds| {
        let delay_ms = u64::try_from(seconds).ok().map(|seconds| seconds * 1_000);
        match (seconds, delay_ms) {
            (-1, _) => Some(Vec::new()),
            (_, None) => None,
            (_, Some(delay_ms)) => {
                let change = |(after_ms, to): &(u64, i64)| Change {
                    after_ms: delay_ms + after_ms,
                    oid: oid.clone(),
                    to: *to,
                };
                Some(changes.iter().map(change).collect())
            }
        }
    })
}

/// Takes off, on and cycle by these numbers, and shows off and on by those.
fn numbered(
    oids: Vec<Vec<u32>>,
    [off, on, cycle]: [i64; 3],
    [shown_off, shown_on]: [i64; 2],
) -> Rule {
    Box::new(move |number| {
        let all = |after_ms, to| {
            oids.iter()
                .map(move |oid| Change { after_ms, oid: oid.clone(), to })
                .collect::<Vec<_>>()
        };
        match number {
            number if number == off => Some(all(0, shown_off)),
            number if number == on => Some(all(0, shown_on)),
            number if number == cycle => Some([all(0, shown_off), all(5_000, shown_on)].concat()),
            _ => None,
        }
    })
}

fn at(root: &[u32], rest: &[u32]) -> Vec<u32> {
    [root, rest].concat()
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u128,
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
    request.parameters.push(("version".to_owned(), "1".to_owned()));
    let pdu = pdu.shared();
    let plain = TestHost::new(u64::from(request.deadline_ms))
        .device("agent", pdu.clone())
        .credential("community", None, b"private")
        .revealing("community");
    let host = host(plain);
    let result = EatonPdu.run(&request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), pdu }
}
