//! The commands sent inside a session, and what their answers say.

use node_remedy_sdk::{Failure, FailureKind, Fields, Host, PlugState};

use crate::codec::message::Command;
use crate::failures;
use crate::link::{Lost, Patience};
use crate::session::{Reply, Session};

const CHASSIS_STATUS: Command = Command { netfn: 0x00, number: 0x01 };
const CHASSIS_CONTROL: Command = Command { netfn: 0x00, number: 0x02 };
const DEVICE_ID: Command = Command { netfn: 0x06, number: 0x01 };
const SYSTEM_GUID: Command = Command { netfn: 0x06, number: 0x37 };

const POWERED: u8 = 0x01;
const NOT_IN_THIS_STATE: u8 = 0xd5;

/// What is done to the machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Cut, at once.
    Off,
    /// Given back.
    On,
    /// Hard reset.
    Reset,
}

impl Control {
    fn number(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::On => 1,
            Self::Reset => 3,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "power off",
            Self::On => "power on",
            Self::Reset => "hard reset",
        }
    }

    /// What the power reads when it is done.
    pub(crate) fn leads_to(self) -> PlugState {
        match self {
            Self::Off => PlugState::Off,
            Self::On | Self::Reset => PlugState::On,
        }
    }

    /// Is asking twice the same as asking once? Then what is so already need not be done.
    pub(crate) fn is_lasting(self) -> bool {
        match self {
            Self::Off | Self::On => true,
            Self::Reset => false,
        }
    }
}

/// A control that was not accepted.
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    /// The BMC says that it cannot, as things are: perhaps it is so already.
    pub(crate) not_in_this_state: bool,
}

impl<H: Host> Session<'_, H> {
    /// Is the machine powered?
    pub(crate) fn powered(&self) -> Result<bool, Failure> {
        const WHAT: &str = "get chassis status";
        let reply = self.ask(CHASSIS_STATUS, &[], Patience::Full);
        let Reply { completion, data } = reply.map_err(|lost| lost.into_failure(WHAT))?;
        match (completion, data.as_slice()) {
            // Three bytes are required: fewer, and the first may not be what it seems.
            (0, [power, _, _, ..]) => Ok(power & POWERED != 0),
            (0, _) => {
                let detail = format!("{WHAT}: {} bytes of data instead of 3", data.len());
                Err(Failure::new(FailureKind::Protocol, detail))
            }
            (completion, _) => Err(failures::completion(WHAT, completion)),
        }
    }

    /// Switches the machine.
    pub(crate) fn control(&self, control: Control) -> Result<(), Refusal> {
        let patience = if control.is_lasting() { Patience::Full } else { Patience::Once };
        let what = format!("chassis control: {}", control.name());
        let refused = |failure| Refusal { failure, not_in_this_state: false };
        match self.ask(CHASSIS_CONTROL, &[control.number()], patience) {
            Ok(Reply { completion: 0, .. }) => Ok(()),
            Ok(Reply { completion, .. }) => Err(Refusal {
                failure: failures::completion(&what, completion),
                not_in_this_state: completion == NOT_IN_THIS_STATE,
            }),
            Err(Lost::Silence(silence)) => {
                let mut failure = silence.into_failure(&what);
                failure.detail.push_str("; it may have been carried out: read the status");
                Err(refused(failure))
            }
            Err(Lost::Failed(failure)) => Err(refused(failure)),
        }
    }

    /// What the BMC calls the machine, if it says so.
    pub(crate) fn system_guid(&self) -> Option<[u8; 16]> {
        let reply = self.ask(SYSTEM_GUID, &[], Patience::Brief).ok()?;
        if reply.completion != 0 {
            return None;
        }
        reply.data.as_slice().try_into().ok()
    }

    /// What the BMC itself is, if it says so.
    pub(crate) fn device_id(&self) -> Fields {
        let Ok(Reply { completion: 0, data }) = self.ask(DEVICE_ID, &[], Patience::Brief) else {
            return Fields::new();
        };
        let [device, _, major, minor, version, _, m0, m1, m2, p0, p1, ..] = *data.as_slice() else {
            return Fields::new();
        };
        let firmware = format!("{}.{:02x}", major & 0x7f, minor);
        let ipmi = format!("{}.{}", version & 0xf, version >> 4);
        vec![
            ("bmc-device-id".into(), device.to_string()),
            ("bmc-firmware".into(), firmware),
            ("bmc-ipmi-version".into(), ipmi),
            ("bmc-manufacturer-id".into(), u32::from_le_bytes([m0, m1, m2, 0]).to_string()),
            ("bmc-product-id".into(), u16::from_le_bytes([p0, p1]).to_string()),
        ]
    }
}
