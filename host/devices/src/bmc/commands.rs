//! The IPMI commands this model knows, inside and outside sessions.

use super::sessions::Stage;
use super::wire;
use crate::bmc::config::Privilege;
use crate::bmc::state::{Bmc, COMMANDS_KEPT, CommandEvent};
use crate::power::{Cause, Change};

const OK: u8 = 0x00;
const UNKNOWN_COMMAND: u8 = 0xc1;
const TOO_SHORT: u8 = 0xc7;
const BAD_DATA: u8 = 0xcc;
const NO_PRIVILEGE: u8 = 0xd4;
const NOT_NOW: u8 = 0xd5;
const PRIVILEGE_TOO_HIGH: u8 = 0x81;

/// Bytes of cipher suite records on one page of the list.
const SUITES_PAGE: usize = 16;
/// How long a power cycle stays off.
const CYCLE_MS: u64 = 1_000;
/// How long the operating system takes to shut down when asked to.
const SOFT_OFF_MS: u64 = 5_000;

/// A completion code, or the data that goes with success.
type Answer = Result<Vec<u8>, u8>;

impl Bmc {
    /// Carries out one message. `None`: no answer.
    pub(super) fn message(&mut self, bytes: &[u8], sid: Option<u32>) -> Option<Vec<u8>> {
        let request = wire::message(bytes)?;
        let (netfn, command) = (request.netfn, request.command);
        let user = sid.and_then(|sid| self.user_of(sid));
        if (netfn, command) == (6, 0x54) && self.faults.mute_ciphers {
            return None;
        }
        let answer = match (netfn, command, &user) {
            (6, 0x38, _) => Ok(vec![1, 0x80, 0x04, 0x02, 0, 0, 0, 0]),
            (6, 0x54, _) => self.cipher_suites(request.data),
            (6, 0x37, _) => Ok(self.guid().to_vec()),
            (_, _, None) => Err(NO_PRIVILEGE),
            (6, 0x01, _) => Ok(vec![0x20, 1, 1, 0x20, 2, 0x9f, 0x91, 0x12, 0, 2, 0x0f]),
            (6, 0x3b, _) => self.set_privilege(sid?, request.data),
            (6, 0x3c, _) => Ok(Vec::new()),
            (0, 0x01, _) => Ok(self.chassis_status()),
            (0, 0x02, Some(user)) => self.chassis_control(sid?, user, request.data),
            _ => Err(UNKNOWN_COMMAND),
        };
        let (completion, data) = match answer {
            Ok(data) => (OK, data),
            Err(completion) => (completion, Vec::new()),
        };
        if self.commands.len() < COMMANDS_KEPT {
            self.commands.push(CommandEvent {
                at_ms: self.now_ms,
                user,
                netfn,
                command,
                data: request.data.to_vec(),
                completion,
                answer: data.clone(),
            });
        }
        if (netfn, command) == (0, 0x02) && self.faults.control_reply_lost {
            return None;
        }
        Some(wire::response(&request, completion, &data))
    }

    fn user_of(&mut self, sid: u32) -> Option<String> {
        match &self.sessions.find(sid)?.stage {
            Stage::Up { exchange, .. } => Some(exchange.user.clone()),
            Stage::Opened | Stage::Keyed(_) => None,
        }
    }

    fn cipher_suites(&self, data: &[u8]) -> Answer {
        if self.faults.no_ciphers {
            return Err(UNKNOWN_COMMAND);
        }
        let [_, _, page] = *data else { return Err(TOO_SHORT) };
        let mut records = Vec::new();
        if self.faults.only_suite_zero {
            records.extend([0xc0, 0, 0, 0x40, 0x80]);
        } else {
            for suite in &self.config.suites {
                let [authentication, integrity, confidentiality] = suite.algorithms();
                let tagged = [authentication, 0x40 | integrity, 0x80 | confidentiality];
                records.extend([0xc0, suite.number()]);
                records.extend(tagged);
            }
        }
        let from = usize::from(page & 0x3f) * SUITES_PAGE;
        let mut out = vec![1];
        out.extend(records.iter().skip(from).take(SUITES_PAGE));
        Ok(out)
    }

    fn set_privilege(&mut self, sid: u32, data: &[u8]) -> Answer {
        let [asked] = *data else { return Err(TOO_SHORT) };
        let session = self.sessions.find(sid).ok_or(NO_PRIVILEGE)?;
        let Stage::Up { live, .. } = &mut session.stage else { return Err(NO_PRIVILEGE) };
        if asked & 0xf != 0 {
            let asked = Privilege::from_number(asked & 0xf).ok_or(BAD_DATA)?;
            if asked > live.privilege_max {
                return Err(PRIVILEGE_TOO_HIGH);
            }
            live.privilege = asked;
        }
        Ok(vec![live.privilege.number()])
    }

    fn chassis_status(&self) -> Vec<u8> {
        let stale_ms = self.faults.stale_ms.unwrap_or(0);
        vec![u8::from(self.supply.seen(self.now_ms, stale_ms)), 0, 0x40]
    }

    fn chassis_control(&mut self, sid: u32, user: &str, data: &[u8]) -> Answer {
        let [control] = *data else { return Err(TOO_SHORT) };
        let session = self.sessions.find(sid).ok_or(NO_PRIVILEGE)?;
        let Stage::Up { live, .. } = &session.stage else { return Err(NO_PRIVILEGE) };
        if live.privilege < Privilege::Operator {
            return Err(NO_PRIVILEGE);
        }
        if let Some(completion) = self.faults.completion_code {
            return Err(completion);
        }
        let powered = self.supply.powered();
        // Each step: how long after the command, and what.
        let steps: &[(u64, Change)] = match control & 0xf {
            0 => &[(0, Change::Off)],
            1 => &[(0, Change::On)],
            2 | 3 if !powered => return Err(NOT_NOW),
            2 => &[(0, Change::Off), (CYCLE_MS, Change::On)],
            3 => &[(0, Change::Reset)],
            5 => &[(SOFT_OFF_MS, Change::Off)],
            _ => return Err(BAD_DATA),
        };
        if !self.faults.stuck {
            let late_ms = self.faults.late_ms.unwrap_or(0);
            for (after_ms, change) in steps {
                let at_ms = self.now_ms.saturating_add(late_ms).saturating_add(*after_ms);
                self.supply.schedule(at_ms, *change, Cause::Command { user: user.to_owned() });
            }
            self.supply.tick(self.now_ms, self.faults.flip_back_ms);
        }
        Ok(Vec::new())
    }
}
