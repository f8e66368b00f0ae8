//! A call of the attacker: what it is asked for, what it is granted, and the canaries it has for credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_sandbox::manifest::{Operation, Protocol};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, Cancel, ExchangeRecord, Grants, HttpGrant, HttpMethod, Names, Plugin,
    Request, Secret,
};
use zeroize::Zeroizing;

use super::canary;

/// What a plugin is asked to do.
#[derive(Clone)]
pub struct AttackCall {
    /// The plug, which the attacker takes for its deed.
    pub deed: String,
    /// The action.
    pub action: Action,
    /// What an admin configured.
    pub parameters: BTreeMap<String, String>,
    /// What an admin granted.
    pub admin: AdminGrant,
    /// How long it may take.
    pub deadline: Duration,
}

/// Everything that a range can open, and every operation.
pub fn wide() -> AdminGrant {
    AdminGrant {
        cidrs: ["0.0.0.0/0", "::/0"].iter().filter_map(|cidr| cidr.parse().ok()).collect(),
        ports: vec![1..=u16::MAX],
        protocols: BTreeSet::from([Protocol::Udp, Protocol::Tcp, Protocol::Http, Protocol::Https]),
        http: HttpGrant {
            methods: BTreeSet::from([HttpMethod::Get, HttpMethod::Post]),
            paths: "/".parse().into_iter().collect(),
        },
        operations: BTreeSet::from([
            Operation::Mac,
            Operation::SessionKey,
            Operation::UsmKey,
            Operation::Write,
        ]),
        ..AdminGrant::default()
    }
}

/// What an admin grants for a fleet's devices.
pub fn fleet() -> AdminGrant {
    AdminGrant {
        cidrs: "10.9.0.0/16".parse().into_iter().collect(),
        ports: vec![80..=80, 443..=443, 623..=623],
        ..wide()
    }
}

impl AttackCall {
    /// The call, under the grants that follow from the plugin's manifest; `ACCOUNT` is a credential of its,
    /// and `COMMUNITY` is one only where `reveal` is granted.
    ///
    /// # Errors
    ///
    /// Parameters that the manifest does not take, or grants that cannot be decided.
    pub async fn call(self, plugin: &Plugin, names: &dyn Names) -> anyhow::Result<Call> {
        let manifest = plugin.manifest();
        let parameters = manifest.parameters.fill(&self.parameters)?;
        let grants = Grants::decide(manifest, &parameters, &self.admin, names).await?;
        let secret = |identity: Option<&str>, bytes: &str| Secret {
            identity: identity.map(str::to_owned),
            bytes: Zeroizing::new(bytes.as_bytes().to_vec()),
        };
        let mut credentials =
            BTreeMap::from([("account".to_owned(), secret(Some("operator"), canary::ACCOUNT))]);
        if !self.admin.reveal.is_empty() {
            credentials.insert("community".to_owned(), secret(None, canary::COMMUNITY));
        }
        let request = Request {
            action: self.action,
            plug: self.deed,
            parameters,
            operation_id: "op-1".to_owned(),
            attempt: 1,
            deadline: self.deadline,
            until: None,
            resume: None,
            system_uuid: None,
        };
        let (cancel, exchange_record) = (Cancel::new(), ExchangeRecord::On);
        Ok(Call { request, grants, credentials, cancel, exchange_record })
    }
}
