//! The cloud that some machines of a scenario are instances of: which request is about which machine.
//! What becomes of it is the machine's matter ([`crate::machine`]).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use node_remedy_devices::ec2::{Account, Ec2Request, Reply, Request};

use crate::scenario::Scenario;
use crate::setup::{CLOUD, cloud_account};
use crate::time::Time;

/// One account with EC2, in whatever regions its instances are.
#[derive(Debug)]
pub(crate) struct Cloud {
    account: Account,
    /// Machines by instance id.
    instances: BTreeMap<String, usize>,
    /// Machines that are launched when the instance of the node of that name is terminated.
    replacing: Vec<(String, usize)>,
}

impl Cloud {
    /// The cloud of a scenario; of one without instances nobody answers.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let nodes = scenario.nodes.iter().enumerate();
        let clouds = nodes.filter_map(|(number, node)| Some((number, node.cloud.as_ref()?)));
        let replaces = |(number, cloud): (usize, &crate::scenario::CloudSpec)| {
            cloud.replaces.clone().map(|node| (node, number))
        };
        Self {
            account: cloud_account(),
            instances: clouds.clone().map(|(number, cloud)| (cloud.id.clone(), number)).collect(),
            replacing: clouds.filter_map(replaces).collect(),
        }
    }

    /// The address of a name, if it is one of the public names of the API.
    pub(crate) fn resolve(&self, host: &str) -> Option<IpAddr> {
        let is_public = host.starts_with("ec2.") && host.ends_with(".amazonaws.com");
        (is_public && !self.instances.is_empty()).then_some(CLOUD.ip())
    }

    /// What a request asks, or the answer where it cannot be told; none where nobody listens.
    pub(crate) fn read(
        &self,
        to: SocketAddr,
        request: &Request<'_>,
        now: Time,
    ) -> Option<Result<Ec2Request, Reply>> {
        let listens = to == CLOUD && !self.instances.is_empty();
        listens.then(|| self.account.read(now.0, request))
    }

    /// The machine that is asked about.
    pub(crate) fn machine(&self, asked: &Ec2Request) -> Option<usize> {
        self.instances.get(&asked.instance).copied()
    }

    /// The machines that are launched in place of a node's.
    pub(crate) fn replacements(&self, node: &str) -> Vec<usize> {
        let replacing = self.replacing.iter().filter(|(of, _)| of == node);
        replacing.map(|(_, number)| *number).collect()
    }
}
