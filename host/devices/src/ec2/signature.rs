//! Checks AWS Signature Version 4 in the header `Authorization`, as the service does ("Create a signed
//! AWS API request", IAM User Guide). Written from that page, not from the signer of the sandbox.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::ec2::exchange::Request;

/// The name of the one algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signed<'a> {
    pub(super) key_id: &'a str,
    /// Year, month and day, eight digits.
    date: &'a str,
    pub(super) region: &'a str,
    service: &'a str,
    headers: &'a str,
    signature: &'a str,
    /// The moment of signing, as `x-amz-date` has it.
    pub(super) stamp: &'a str,
}

impl<'a> Signed<'a> {
    /// Reads it; none where something is missing.
    pub(super) fn read(request: &Request<'a>) -> Option<Self> {
        let fields = header(request, "authorization")?.strip_prefix(ALGORITHM)?;
        let field = |name: &str| {
            fields.split(',').find_map(|one| one.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let mut scope = field("Credential")?.rsplitn(5, '/');
        let (end, service, region, date, key_id) =
            (scope.next()?, scope.next()?, scope.next()?, scope.next()?, scope.next()?);
        let (headers, signature) = (field("SignedHeaders")?, field("Signature")?);
        let stamp = header(request, "x-amz-date")?;
        let is_whole = end == "aws4_request" && stamp.starts_with(date);
        is_whole.then_some(Self { key_id, date, region, service, headers, signature, stamp })
    }

    /// Whether it was made with this key.
    pub(super) fn is_by(&self, secret: &str, request: &Request<'_>) -> bool {
        self.with(secret, request).is_some_and(|signature| signature == self.signature)
    }

    /// The signature that this key makes; none where a header that is signed is not there.
    pub(super) fn with(&self, secret: &str, request: &Request<'_>) -> Option<String> {
        let Self { date, region, service, headers, stamp, .. } = self;
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let mut canonical = format!("{}\n{path}\n{query}\n", request.method);
        for name in headers.split(';') {
            let value = header(request, name)?.trim();
            canonical = format!("{canonical}{name}:{value}\n");
        }
        let body = hex::encode(Sha256::digest(request.body));
        canonical = format!("{canonical}\n{headers}\n{body}");
        let canonical = hex::encode(Sha256::digest(canonical.as_bytes()));
        let to_sign =
            format!("{ALGORITHM}\n{stamp}\n{date}/{region}/{service}/aws4_request\n{canonical}");
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [date, region, service, "aws4_request", &to_sign] {
            key = mac(&key, part)?;
        }
        Some(hex::encode(key))
    }
}

/// A header's value.
pub(super) fn header<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let mut all = request.headers.iter();
    all.find(|(of, _)| of == name).map(|(_, value)| value.as_str())
}

fn mac(key: &[u8], text: &str) -> Option<Vec<u8>> {
    // Any length of key will do.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text.as_bytes());
    Some(mac.finalize().into_bytes().to_vec())
}
