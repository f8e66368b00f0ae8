//! An account of EC2, in memory: its instances, what it is asked, and answers in EC2's shapes.

use node_remedy_plugin_aws::Aws;
use node_remedy_plugin_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_plugin_sdk::testing::{TestHost, Web};
use node_remedy_plugin_sdk::{Action, HttpRequest, HttpResponse, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;

pub(crate) const A: &str = "i-0aaaaaaaaaaaaaaa1";
pub(crate) const B: &str = "i-0bbbbbbbbbbbbbbb2";

/// A code and its name.
pub(crate) type State = (u32, &'static str);
pub(crate) const RUNNING: State = (16, "running");
pub(crate) const STOPPED: State = (80, "stopped");
pub(crate) const STOPPING: State = (64, "stopping");
pub(crate) const TERMINATED: State = (48, "terminated");

pub(crate) struct Instance {
    id: &'static str,
    state: State,
    /// What its state will be, and when.
    comes: Vec<(u64, State)>,
}

/// The account.
pub(crate) struct Account {
    pub(crate) instances: Vec<Instance>,
    /// How long it stops and starts, and how long answers lag behind.
    pub(crate) late_ms: u64,
    /// From when on it knows its instances.
    pub(crate) knows_from_ms: u64,
    /// The forms it was sent.
    pub(crate) asked: Vec<String>,
}

impl Account {
    /// With instance A in this state, and B, which runs.
    pub(crate) fn with(state: State) -> Self {
        let instance = |id, state| Instance { id, state, comes: Vec::new() };
        Self {
            instances: vec![instance(A, state), instance(B, RUNNING)],
            late_ms: 0,
            knows_from_ms: 0,
            asked: Vec::new(),
        }
    }

    /// Answers so to this action.
    pub(crate) fn instead(self, action: &str, status: u16, body: &str) -> Overlay<Self> {
        Overlay::new(self).instead(&line(action), status, body)
    }

    /// Never answers to this action.
    pub(crate) fn silent(self, action: &str) -> Overlay<Self> {
        Overlay::new(self).silent(&line(action))
    }

    /// What it was asked that is not a read.
    pub(crate) fn changes(&self) -> Vec<&str> {
        let reads = |form: &&str| !form.starts_with("Action=DescribeInstances&");
        self.asked.iter().map(String::as_str).filter(reads).collect()
    }

    fn answer(&mut self, now_ms: u64, form: &str) -> (u16, String) {
        self.asked.push(form.to_owned());
        let value = |name: &str| {
            form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let (action, id) = (value("Action").unwrap(), value("InstanceId.1").unwrap());
        let (late_ms, knows_from_ms) = (self.late_ms, self.knows_from_ms);
        let known = self.instances.iter_mut().find(|one| one.id == id);
        let Some(instance) = known.filter(|_| now_ms >= knows_from_ms) else {
            let says = format!("The instance ID '{id}' does not exist");
            return (400, error("InvalidInstanceID.NotFound", &says));
        };
        for (_, state) in instance.comes.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            instance.state = state;
        }
        let is_terminated = instance.state == TERMINATED;
        let to = match action {
            "DescribeInstances" => return (200, described(instance.id, instance.state, "")),
            _ if is_terminated => {
                let says = format!("The instance '{id}' is not in a state for that.");
                return (400, error("IncorrectInstanceState", &says));
            }
            "RebootInstances" => {
                return (200, response(action, "<return>true</return>"));
            }
            "StopInstances" => STOPPED,
            "StartInstances" => RUNNING,
            other => panic!("asked for {other}"),
        };
        instance.comes.push((now_ms + late_ms, to));
        (200, response(action, "<instancesSet/>"))
    }
}

impl Web for Account {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/"));
        let form = String::from_utf8(request.body.clone()).unwrap();
        let (status, body) = self.answer(now_ms, &form);
        (50, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

fn line(action: &str) -> String {
    format!("POST / Action={action}")
}

/// The answer to an action.
pub(crate) fn response(action: &str, inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>r-1</requestId>{inside}</{action}Response>"
    )
}

/// An instance as `DescribeInstances` tells of it.
pub(crate) fn described(id: &str, (code, name): State, more: &str) -> String {
    response(
        "DescribeInstances",
        &format!(
            "<reservationSet><item><groupSet/><instancesSet><item><instanceId>{id}</instanceId>\
             <instanceState><code>{code}</code><name>{name}</name></instanceState>\
             <placement><availabilityZone>eu-west-1a</availabilityZone></placement>\
             <tagSet><item><key>Name</key><value>worker</value></item>\
             <item><key>aws:autoscaling:groupName</key><value>workers</value></item></tagSet>\
             </item>{more}</instancesSet></item></reservationSet>"
        ),
    )
}

/// A refusal.
pub(crate) fn error(code: &str, message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
         <Message>{message}</Message></Error></Errors><RequestID>r-1</RequestID></Response>"
    )
}

/// One call.
pub(crate) fn ask(
    account: impl Into<Overlay<Account>>,
    action: Action,
    plug: &str,
) -> Ended<Account> {
    ask_for(account, &request(action, plug), |host| host)
}

/// A request as the host makes it.
pub(crate) fn request(action: Action, plug: &str) -> Request {
    let parameters = [("region", "eu-west-1"), ("skip-os-shutdown", "true")];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Request { plug: plug.to_owned(), parameters, ..Request::new(action, DEADLINE_MS) }
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    account: impl Into<Overlay<Account>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Account> {
    web::ask::<Aws, Account>("ec2", account.into(), request, host)
}
