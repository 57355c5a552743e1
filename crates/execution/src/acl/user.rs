//! A user: its passwords and what it may do. Knows nothing of who uses it.

use super::key_right::KeyRight;
use super::selector::Selector;
use crate::clients::Account;
use crate::clients::account::limits::Limits;
use crate::command::{CommandRow, registry};
use arc_swap::{ArcSwap, Guard};
use resp::Request;
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// The user that every client is at first.
pub const DEFAULT_USER: &str = "default";

/// A user. Its rights can change while clients use it.
pub struct User {
    pub name: Box<[u8]>,
    rights: ArcSwap<Rights>,
    is_removed: AtomicBool,
    /// What its clients take. It has the limits of the rights.
    pub account: Arc<Account>,
}

/// The server itself: what it does in the background, nobody else asks for.
pub fn server_user() -> Arc<User> {
    static USER: OnceLock<Arc<User>> = OnceLock::new();
    USER.get_or_init(|| Arc::new(User::new(b"(superuser)", Rights::everything()))).clone()
}

/// A user without rights, for a client whose user is gone.
pub fn no_user() -> Arc<User> {
    let user = User::new(b"", Rights::new(false));
    user.remove();
    Arc::new(user)
}

/// The SHA-256 of a password.
pub type PasswordHash = [u8; 32];

/// What a user may do, and how a client proves that it is the user.
#[derive(Clone)]
pub struct Rights {
    pub is_on: bool,
    /// Any password is right.
    pub no_password: bool,
    /// Whether payloads of RESTORE are checked thoroughly. They always are: this is only shown.
    pub sanitizes: bool,
    pub passwords: Vec<PasswordHash>,
    /// The first is the user's own; each of them is enough.
    pub selectors: Vec<Selector>,
    /// How much of the server its clients may take.
    pub limits: Limits,
    /// Nothing is refused: known without a look at the selectors.
    pub is_everything: bool,
    /// By row of the command table: for a command with one key, which the user's own rules allow, the position of the key
    /// and the most that a request may need. Other commands are asked for in full.
    by_row: Box<[Option<(u8, KeyRight)>]>,
}

impl User {
    pub fn new(name: &[u8], rights: Rights) -> User {
        let account = Arc::new(Account::default());
        account.set_limits(&rights.limits);
        User { name: name.into(), rights: ArcSwap::from_pointee(rights), is_removed: AtomicBool::new(false), account }
    }

    pub fn rights(&self) -> Guard<Arc<Rights>> {
        self.rights.load()
    }

    pub(super) fn set_rights(&self, rights: Arc<Rights>) {
        self.account.set_limits(&rights.limits);
        self.rights.store(rights);
    }

    pub(super) fn remove(&self) {
        self.is_removed.store(true, SeqCst);
    }

    /// True when it was removed, and perhaps made anew as another user.
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(SeqCst)
    }

    /// Its name for replies and messages.
    pub fn shown_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

impl Rights {
    /// Those of a new user: none.
    pub fn new(all_channels: bool) -> Rights {
        Rights {
            is_on: false,
            no_password: false,
            sanitizes: true,
            passwords: Vec::new(),
            selectors: vec![Selector::new(all_channels)],
            limits: Limits::default(),
            is_everything: false,
            by_row: Box::default(),
        }
    }

    /// Those of the default user of a new server: all, without a password.
    pub fn everything() -> Rights {
        Rights {
            is_on: true,
            no_password: true,
            sanitizes: true,
            passwords: Vec::new(),
            selectors: vec![Selector::everything()],
            limits: Limits::default(),
            is_everything: true,
            by_row: Box::default(),
        }
    }

    /// Sets the only password; without one, none is needed.
    pub fn set_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.no_password = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(hash(password));
        }
    }

    /// Prepares for checks, after a change.
    pub(super) fn settle(&mut self) {
        self.selectors.iter_mut().for_each(Selector::settle);
        self.is_everything = self.selectors.iter().any(Selector::is_everything);
        let own = &self.selectors[0];
        self.by_row = registry().rows().iter().map(|row| own.only_key_of(row)).collect();
    }

    /// The only key of a request, if the user's own rules surely allow it: for commands with one key and patterns of literal
    /// text and `*`. `None` says nothing.
    #[inline]
    pub(super) fn surely_allowed_key<'r>(&self, row: &CommandRow, request: Request<'r>) -> Option<&'r [u8]> {
        let (at, right) = (*self.by_row.get(row.index)?)?;
        let at = usize::from(at);
        let key = (at < request.len()).then(|| request.arg(at))?;
        self.selectors[0].surely_allows_key(key, right).then_some(key)
    }

    /// True when a password is right. Takes as long for a wrong one as for a right one.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let given = hash(password);
        let found = self.passwords.iter().fold(false, |found, known| black_box(found | is_equal(&given, known)));
        self.is_on && (self.no_password || found)
    }
}

pub fn hash(password: &[u8]) -> PasswordHash {
    Sha256::digest(password).into()
}

/// Compares in a time that does not depend on the contents.
fn is_equal(one: &PasswordHash, other: &PasswordHash) -> bool {
    one.iter().zip(other).fold(0, |sum, (one, other)| black_box(sum | one ^ other)) == 0
}
