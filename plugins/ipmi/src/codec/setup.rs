//! Setting up a session: open session and RAKP 1 to 4, and what each of their codes covers.
//!
//! The letters of the specification: `m` is the console (this side), `c` the BMC; `SID` a session
//! number, `R` a random number.

use super::{Malformed, Suite, take};

/// In the role byte: look the user up by name alone, not by name and privilege.
const NAME_ONLY: u8 = 0x10;
/// Length of each algorithm proposal.
const PROPOSAL: u8 = 8;

/// A status other than success, from any of the three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u8);

/// An answer during set-up: its tag, and the answer itself or a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// The tag of the request it answers.
    pub tag: u8,
    /// The console's session, where the answer names one. Refusals may be too short to.
    pub console_sid: Option<u32>,
    /// What it says.
    pub result: Result<T, Status>,
}

/// The open session request.
pub fn open_request(tag: u8, console_sid: u32, suite: Suite) -> Vec<u8> {
    // Privilege 0: the highest the suite allows. RAKP 1 says which one is wanted.
    let mut out = vec![tag, 0, 0, 0];
    out.extend(console_sid.to_le_bytes());
    for (kind, algorithm) in (0..).zip(suite.algorithms()) {
        out.extend([kind, 0, 0, PROPOSAL, algorithm, 0, 0, 0]);
    }
    out
}

/// The BMC's session number, from an open session response whose algorithms are the suite's.
pub fn open_response(body: &[u8], suite: Suite) -> Result<Answer<u32>, Malformed> {
    parse_answer(body, |rest| {
        let (bmc_sid, mut proposals) = take::<4>(rest)?;
        for (kind, algorithm) in (0..).zip(suite.algorithms()) {
            let (proposal, rest) = take::<8>(proposals)?;
            if *proposal != [kind, 0, 0, PROPOSAL, algorithm, 0, 0, 0] {
                return Err(Malformed::Algorithms);
            }
            proposals = rest;
        }
        Ok(u32::from_le_bytes(*bmc_sid))
    })
}

/// RAKP 2's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rakp2<'a> {
    /// Rc.
    pub bmc_random: [u8; 16],
    /// The machine's GUID as the BMC sends it.
    pub guid: [u8; 16],
    /// Proves that the BMC knows the password.
    pub code: &'a [u8],
}

/// What both sides say about the user and each other; every code covers parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// SIDm.
    pub console_sid: u32,
    /// SIDc.
    pub bmc_sid: u32,
    /// Rm.
    pub console_random: [u8; 16],
    /// The privilege's number.
    pub privilege: u8,
    /// The user's name, at most 16 bytes.
    pub name: &'a [u8],
}

impl Exchange<'_> {
    /// RAKP 1.
    pub fn rakp_1(&self, tag: u8) -> Vec<u8> {
        let mut out = vec![tag, 0, 0, 0];
        out.extend(self.bmc_sid.to_le_bytes());
        out.extend(self.console_random);
        out.extend([self.role(), 0, 0, self.name_length()]);
        out.extend(self.name);
        out
    }

    /// RAKP 3; the code proves that this side knows the password too.
    pub fn rakp_3(&self, tag: u8, code: &[u8]) -> Vec<u8> {
        self.rakp_3_with(tag, 0, code)
    }

    /// RAKP 3 that ends the exchange, so that the BMC frees its slot at once.
    pub fn rakp_3_refusal(&self, tag: u8, status: u8) -> Vec<u8> {
        self.rakp_3_with(tag, status, &[])
    }

    fn rakp_3_with(&self, tag: u8, status: u8, code: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, status, 0, 0];
        out.extend(self.bmc_sid.to_le_bytes());
        out.extend(code);
        out
    }

    /// What RAKP 2's code covers, under the password.
    pub fn rakp_2_input(&self, rakp_2: &Rakp2<'_>) -> Vec<u8> {
        let mut out = self.console_sid.to_le_bytes().to_vec();
        out.extend(self.bmc_sid.to_le_bytes());
        out.extend(self.console_random);
        out.extend(rakp_2.bmc_random);
        out.extend(rakp_2.guid);
        self.push_who(&mut out);
        out
    }

    /// What RAKP 3's code covers, under the password.
    pub fn rakp_3_input(&self, bmc_random: &[u8; 16]) -> Vec<u8> {
        let mut out = bmc_random.to_vec();
        out.extend(self.console_sid.to_le_bytes());
        self.push_who(&mut out);
        out
    }

    /// What the session integrity key is made of, under K_g or else the password.
    pub fn session_key_input(&self, bmc_random: &[u8; 16]) -> Vec<u8> {
        let mut out = self.console_random.to_vec();
        out.extend(bmc_random);
        self.push_who(&mut out);
        out
    }

    /// What RAKP 4's code covers, under the session integrity key.
    pub fn rakp_4_input(&self, guid: &[u8; 16]) -> Vec<u8> {
        let mut out = self.console_random.to_vec();
        out.extend(self.bmc_sid.to_le_bytes());
        out.extend(guid);
        out
    }

    fn push_who(&self, out: &mut Vec<u8>) {
        out.extend([self.role(), self.name_length()]);
        out.extend(self.name);
    }

    fn role(&self) -> u8 {
        NAME_ONLY | self.privilege
    }

    fn name_length(&self) -> u8 {
        u8::try_from(self.name.len()).unwrap_or(u8::MAX)
    }
}

/// RAKP 2.
pub fn rakp_2(body: &[u8], suite: Suite) -> Result<Answer<Rakp2<'_>>, Malformed> {
    parse_answer(body, |rest| {
        let (bmc_random, rest) = take::<16>(rest)?;
        let (guid, code) = take::<16>(rest)?;
        if code.len() != suite.exchange_code_length() {
            return Err(Malformed::Length);
        }
        Ok(Rakp2 { bmc_random: *bmc_random, guid: *guid, code })
    })
}

/// RAKP 4's code.
pub fn rakp_4(body: &[u8], suite: Suite) -> Result<Answer<&[u8]>, Malformed> {
    parse_answer(body, |code| {
        if code.len() == suite.packet_code_length() { Ok(code) } else { Err(Malformed::Length) }
    })
}

/// Tag, status, two bytes (the granted privilege, or reserved), the console's session, the rest. A
/// refusal may end after its status: `ipmi_sim` sends two bytes.
fn parse_answer<'a, T>(
    body: &'a [u8],
    content: impl FnOnce(&'a [u8]) -> Result<T, Malformed>,
) -> Result<Answer<T>, Malformed> {
    let ([tag, status], rest) = take::<2>(body)?;
    let named = rest.get(2..).and_then(|rest| rest.split_first_chunk::<4>());
    let console_sid = named.map(|(sid, _)| u32::from_le_bytes(*sid));
    let result = match (*status, named) {
        (0, Some((_, rest))) => Ok(content(rest)?),
        (0, None) => return Err(Malformed::TooShort),
        (status, _) => Err(Status(status)),
    };
    Ok(Answer { tag: *tag, console_sid, result })
}
