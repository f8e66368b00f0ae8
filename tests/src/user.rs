//! Who asks the API server.

/// Who talks to the API server. The names stand in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// The test itself: a person with kubectl.
    Admin,
    /// The simulated kubelets.
    Kubelets,
    /// The fake CSI attacher.
    Attacher,
    /// The program under test.
    NodeRemedy,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
}

impl User {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Admin,
        Self::Kubelets,
        Self::Attacher,
        Self::NodeRemedy,
        Self::ControllerManager,
        Self::Scheduler,
    ];

    /// The name in the audit log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeRemedy => "system:serviceaccount:node-remedy:node-remedy",
            Self::Admin
            | Self::Kubelets
            | Self::Attacher
            | Self::ControllerManager
            | Self::Scheduler => self.word(),
        }
    }

    /// node-remedy may do what its service account is granted (see [`crate::remedy::grant`]), and
    /// nothing else. The rights of all others are not what is tested here.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::NodeRemedy => "system:serviceaccounts",
            Self::Admin
            | Self::Kubelets
            | Self::Attacher
            | Self::ControllerManager
            | Self::Scheduler => "system:masters",
        }
    }

    /// The name in files' names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Kubelets => "kubelets",
            Self::Attacher => "attacher",
            Self::NodeRemedy => "node-remedy",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
        }
    }

    /// The bearer token. Not a secret: the API server listens on loopback for one test.
    #[must_use]
    pub fn token(self) -> String {
        format!("token-of-{}", self.word())
    }
}
