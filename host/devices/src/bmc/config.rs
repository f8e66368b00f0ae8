//! What a BMC is made with: its users, cipher suites and limits.

/// Cipher suites of this model. Suite 0 and its like, which authenticate or encrypt nothing, cannot
/// be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Sha1,
    /// 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Sha256,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privilege {
    /// 2: read.
    User,
    /// 3: and switch power.
    Operator,
    /// 4: and configure.
    Administrator,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// At most 16 bytes.
    pub name: String,
    /// At most 20 bytes.
    pub password: Vec<u8>,
    /// The highest privilege it may ask for.
    pub privilege: Privilege,
}

/// What a BMC is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// As it goes over the wire.
    pub guid: [u8; 16],
    /// The accounts.
    pub users: Vec<User>,
    /// The BMC's own key, for those that have one set.
    pub kg: Option<Vec<u8>>,
    /// The suites offered, in the order of the list it gives.
    pub suites: Vec<Suite>,
    /// Sessions it holds at once, half-open ones counted.
    pub session_slots: usize,
    /// Is the machine powered at first?
    pub powered: bool,
    /// Everything random comes from here.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        let account = |name: &str, password: &str, privilege| User {
            name: name.into(),
            password: password.into(),
            privilege,
        };
        Self {
            guid: *b"\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf",
            users: vec![
                account("admin", "secret", Privilege::Administrator),
                account("op", "oppw", Privilege::Operator),
                account("viewer", "viewpw", Privilege::User),
            ],
            kg: None,
            suites: vec![Suite::Sha1, Suite::Sha256],
            session_slots: 8,
            powered: true,
            seed: 1,
        }
    }
}
