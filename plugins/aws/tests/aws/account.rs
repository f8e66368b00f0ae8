//! An account of EC2 and EC2 Auto Scaling, in memory: its instances, what it is asked, and answers in
//! Amazon's shapes. Its group does with an instance that stops in service what Amazon's do: it ends it.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_aws::Aws;
use node_remedy_sdk::testing::web::{Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, FenceMethod as _, HttpRequest, HttpResponse, Request};

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

/// A group.
pub(crate) const GROUP: &str = "workers & more";

pub(crate) struct Instance {
    id: &'static str,
    state: State,
    /// Where its group has it, if it has one.
    place: Option<&'static str>,
    /// What its state will be, and when.
    comes: Vec<(u64, State)>,
    /// What its place will be, and when.
    moves: Vec<(u64, &'static str)>,
}

/// The account.
pub(crate) struct Account {
    pub(crate) instances: Vec<Instance>,
    /// How long it stops and starts, and how long answers lag behind.
    pub(crate) late_ms: u64,
    /// How long an instance takes to leave its group's service.
    pub(crate) leaves_ms: u64,
    /// From when on it knows its instances.
    pub(crate) knows_from_ms: u64,
    /// The forms it was sent.
    pub(crate) asked: Vec<String>,
    /// Where it was sent the last.
    pub(crate) endpoint: Endpoint,
}

impl Account {
    /// With instance A in this state, and B, which runs.
    pub(crate) fn with(state: State) -> Self {
        let instance = |id, state| {
            let (comes, moves) = (Vec::new(), Vec::new());
            Instance { id, state, place: None, comes, moves }
        };
        Self {
            instances: vec![instance(A, state), instance(B, RUNNING)],
            late_ms: 0,
            leaves_ms: 0,
            knows_from_ms: 0,
            asked: Vec::new(),
            endpoint: "ec2",
        }
    }

    /// The same, with both in a group, and A there so.
    pub(crate) fn in_group(state: State, place: &'static str) -> Self {
        let mut account = Self::with(state);
        account.instances.iter_mut().for_each(|one| one.place = Some("InService"));
        account.instances[0].place = Some(place);
        account
    }

    /// A will have left its group's service then.
    pub(crate) fn is_leaving(&mut self, at_ms: u64) {
        self.instances[0].moves.push((at_ms, "Standby"));
    }

    /// Where its group has A.
    pub(crate) fn place(&self) -> &'static str {
        self.instances[0].place.unwrap()
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
        let reads = |form: &&str| !form.starts_with("Action=Describe");
        self.asked.iter().map(String::as_str).filter(reads).collect()
    }

    /// The actions among that.
    pub(crate) fn actions(&self) -> Vec<&str> {
        let action = |form: &'_ str| form.len().min(form.find('&').unwrap_or(form.len()));
        self.changes().into_iter().map(|form| &form["Action=".len()..action(form)]).collect()
    }

    fn answer(&mut self, endpoint: Endpoint, now_ms: u64, form: &str) -> (u16, String) {
        self.asked.push(form.to_owned());
        let value = |name: &str| {
            form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let action = value("Action").unwrap();
        let id = value("InstanceId.1").or_else(|| value("InstanceIds.member.1")).unwrap();
        let (late_ms, knows_from_ms) = (self.late_ms, self.knows_from_ms);
        let known = self.instances.iter_mut().find(|one| one.id == id);
        let Some(instance) = known.filter(|_| now_ms >= knows_from_ms) else {
            let says = format!("The instance ID '{id}' does not exist");
            return (400, error("InvalidInstanceID.NotFound", &says));
        };
        for (_, state) in instance.comes.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            instance.state = state;
        }
        for (_, place) in instance.moves.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            instance.place = Some(place);
        }
        let (own, theirs) = ("2016-11-15", "2011-01-01");
        let version = if endpoint == "ec2" { own } else { theirs };
        assert_eq!(value("Version"), Some(version), "{form}");
        if endpoint == "autoscaling" {
            return instance.in_its_group(
                action,
                value("AutoScalingGroupName"),
                now_ms,
                self.leaves_ms,
            );
        }
        let is_terminated = instance.state == TERMINATED;
        let to = match action {
            "DescribeInstances" => {
                return (200, described_in(instance.place, instance.id, instance.state, ""));
            }
            "TerminateInstances" => TERMINATED,
            _ if is_terminated => {
                let says = format!("The instance '{id}' is not in a state for that.");
                return (400, error("IncorrectInstanceState", &says));
            }
            "RebootInstances" => {
                return (200, response(action, "<return>true</return>"));
            }
            // Its group finds it unhealthy, and ends it.
            "StopInstances" if instance.place == Some("InService") => TERMINATED,
            "StopInstances" => STOPPED,
            "StartInstances" => RUNNING,
            other => panic!("asked for {other}"),
        };
        instance.comes.push((now_ms + late_ms, to));
        (200, response(action, "<instancesSet/>"))
    }
}

impl Instance {
    fn in_its_group(
        &mut self,
        action: &str,
        group: Option<&str>,
        now_ms: u64,
        leaves_ms: u64,
    ) -> (u16, String) {
        let Some(place) = self.place else { return (200, placed(&[])) };
        let says = format!("The instance {} is {place}", self.id);
        let (from, to) = match action {
            "DescribeAutoScalingInstances" => {
                return (200, placed(&[(self.id, place)]));
            }
            "EnterStandby" => ("InService", "Standby"),
            "ExitStandby" => ("Standby", "InService"),
            other => panic!("asked for {other}"),
        };
        assert_eq!(group, Some("workers%20%26%20more"));
        if place != from {
            return (400, error("ValidationError", &says));
        }
        if to == "Standby" {
            self.place = Some("EnteringStandby");
            self.moves.push((now_ms + leaves_ms, to));
        } else {
            assert_eq!(self.state, RUNNING, "what does not run is ended by its group");
            self.place = Some(to);
        }
        (200, response(action, &format!("<{action}Result><Activities/></{action}Result>")))
    }
}

/// The name of an endpoint.
pub(crate) type Endpoint = &'static str;

/// The account behind one of its endpoints.
struct Behind(Endpoint, Rc<RefCell<Overlay<Account>>>);

impl Web for Behind {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let Self(endpoint, account) = self;
        account.borrow_mut().server.endpoint = endpoint;
        account.borrow_mut().exchange(now_ms, request)
    }
}

impl Web for Account {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/"));
        let form = String::from_utf8(request.body.clone()).unwrap();
        let (status, body) = self.answer(self.endpoint, now_ms, &form);
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
pub(crate) fn described(id: &str, state: State, more: &str) -> String {
    described_in(None, id, state, more)
}

fn described_in(place: Option<&str>, id: &str, (code, name): State, more: &str) -> String {
    let tag = |_| {
        let group = GROUP.replace('&', "&amp;");
        format!("<item><key>aws:autoscaling:groupName</key><value>{group}</value></item>")
    };
    let tag = place.map(tag).unwrap_or_default();
    response(
        "DescribeInstances",
        &format!(
            "<reservationSet><item><groupSet/><instancesSet><item><instanceId>{id}</instanceId>\
             <instanceState><code>{code}</code><name>{name}</name></instanceState>\
             <placement><availabilityZone>eu-west-1a</availabilityZone></placement>\
             <tagSet><item><key>Name</key><value>worker</value></item>{tag}</tagSet>\
             </item>{more}</instancesSet></item></reservationSet>"
        ),
    )
}

/// Instances as `DescribeAutoScalingInstances` tells of them.
pub(crate) fn placed(instances: &[(&str, &str)]) -> String {
    let group = GROUP.replace('&', "&amp;");
    let member = |(id, place): &(&str, &str)| {
        format!(
            "<member><InstanceId>{id}</InstanceId><AutoScalingGroupName>{group}\
             </AutoScalingGroupName><LifecycleState>{place}</LifecycleState>\
             <HealthStatus>HEALTHY</HealthStatus></member>"
        )
    };
    let members: String = instances.iter().map(member).collect();
    let action = "DescribeAutoScalingInstances";
    let list = format!("<AutoScalingInstances>{members}</AutoScalingInstances>");
    response(action, &format!("<{action}Result>{list}</{action}Result>"))
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
    let parameters = [
        ("region", "eu-west-1"),
        ("skip-os-shutdown", "true"),
        ("allow-replace", "false"),
        ("off", "stop"),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Request { plug: plug.to_owned(), parameters, ..Request::new(action, DEADLINE_MS) }
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    account: impl Into<Overlay<Account>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Account> {
    once_more(Rc::new(RefCell::new(account.into())), request, host)
}

/// A call to an account that was called before.
pub(crate) fn once_more(
    web: Rc<RefCell<Overlay<Account>>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Account> {
    let mut own = TestHost::new(u64::from(request.deadline_ms));
    for endpoint in ["ec2", "autoscaling"] {
        own = match web.borrow().fails() {
            Some(error) => own.failing(endpoint, error),
            None => own.web(endpoint, Rc::new(RefCell::new(Behind(endpoint, web.clone())))),
        };
    }
    let host = host(own);
    let result = Aws.run(request, &host);
    Ended {
        action: request.action,
        result,
        took_ms: host.elapsed().as_millis(),
        trace: host.trace(),
        web,
    }
}
