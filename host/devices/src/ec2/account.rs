//! An account: reads what is asked, and whether whoever asks may.

use super::signature::{Signed, header};
use super::wire;
use crate::ec2::exchange::{Refusal, Reply, Request};
use crate::ec2::model::Action;

/// The service's clock and that of whoever asks may differ by so much.
const CLOCKS_DIFFER_MS: u64 = 300_000;

const NOT_SIGNED: Refusal =
    Refusal::new(400, "MissingAuthenticationToken", "The request is missing a signature.");
const UNKNOWN_KEY: Refusal = Refusal::new(
    401,
    "AuthFailure",
    "AWS was not able to validate the provided access credentials.",
);
const WRONG_SIGNATURE: Refusal = Refusal::new(
    403,
    "SignatureDoesNotMatch",
    "The request signature we calculated does not match the signature you provided.",
);
const EXPIRED: Refusal = Refusal::new(400, "RequestExpired", "Request has expired.");
const NO_ACTION: Refusal =
    Refusal::new(400, "InvalidAction", "The action is not valid for this web service.");
const NO_INSTANCE: Refusal =
    Refusal::new(400, "MissingParameter", "The request must contain the parameter InstanceId.");
const NOT_FORCED: Refusal =
    Refusal::new(400, "UnsupportedOperation", "This model stops instances by force only.");

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The access key's id.
    pub key_id: String,
    /// Its secret.
    pub secret: String,
}

/// A request that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ec2Request {
    /// What for.
    pub action: Action,
    /// Which instance.
    pub instance: String,
    /// The region that it was signed for; none where it is not signed.
    pub(super) region: Option<String>,
    /// Why it may not be asked.
    pub(super) refusal: Option<Refusal>,
}

impl Account {
    /// What is asked, or the answer where that cannot be told.
    pub fn read(&self, now_ms: u64, request: &Request<'_>) -> Result<Ec2Request, Reply> {
        let form = std::str::from_utf8(request.body).unwrap_or_default();
        let named = wire::field(form, "Action");
        let action = Action::ALL.into_iter().find(|action| named == Some(action.name()));
        let is_form = header(request, "content-type")
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        let is_to_root = request.method == "POST" && request.target == "/";
        let action = action.filter(|_| is_form && is_to_root).ok_or_else(|| NO_ACTION.reply())?;
        let instance = wire::field(form, "InstanceId.1").ok_or_else(|| NO_INSTANCE.reply())?;
        if action == Action::Stop && wire::field(form, "Force") != Some("true") {
            return Err(NOT_FORCED.reply());
        }
        let signed = Signed::read(request);
        Ok(Ec2Request {
            action,
            instance: instance.to_owned(),
            region: signed.map(|signed| signed.region.to_owned()),
            refusal: self.refuse(now_ms, signed, request),
        })
    }

    fn refuse(
        &self,
        now_ms: u64,
        signed: Option<Signed<'_>>,
        request: &Request<'_>,
    ) -> Option<Refusal> {
        let Some(signed) = signed else { return Some(NOT_SIGNED) };
        if signed.key_id != self.key_id {
            return Some(UNKNOWN_KEY);
        }
        if !signed.is_by(&self.secret, request) {
            return Some(WRONG_SIGNATURE);
        }
        let is_now =
            unix_ms(signed.stamp).is_some_and(|at| at.abs_diff(now_ms) <= CLOCKS_DIFFER_MS);
        (!is_now).then_some(EXPIRED)
    }
}

/// The moment that a stamp such as `20150830T123600Z` names, in milliseconds since 1970.
pub(super) fn unix_ms(stamp: &str) -> Option<u64> {
    let number = |from: usize, to: usize| stamp.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    // Years that begin in March, so that a leap day is the last ("days from civil", H. Hinnant).
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let since_1970 = days.checked_sub(719_469)?;
    Some((((since_1970 * 24 + hour) * 60 + minute) * 60 + second) * 1_000)
}
