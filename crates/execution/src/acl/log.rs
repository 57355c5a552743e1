//! What was refused (ACL LOG): the last entries, equal ones counted together. Knows nothing of rules.

use crate::denied::Object;
use std::collections::VecDeque;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Command,
    Key,
    Channel,
    Auth,
    /// A client's certificate names a user that is not there, or is off.
    Certificate,
    Database,
}

impl Reason {
    pub const COUNT: usize = Reason::Database as usize + 1;

    /// Why something was refused that a user has no right to.
    pub fn of(object: &Object) -> Reason {
        match object {
            Object::Command(_) => Reason::Command,
            Object::Key(_) | Object::Prefix(_) | Object::Anything(_) => Reason::Key,
            Object::Channel(_) => Reason::Channel,
            Object::Database(_) => Reason::Database,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
            Reason::Certificate => "tls-cert",
            Reason::Database => "database",
        }
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    TopLevel,
    Multi,
    Script,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u64,
    pub count: u64,
    pub reason: Reason,
    pub context: Context,
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// The line of CLIENT LIST of the client that was last refused.
    pub client: String,
}

/// Equal entries within this time are one.
const TOGETHER_MS: u64 = 60_000;
/// So many of the newest entries are compared with a new one.
const COMPARED_MAX: usize = 10;

/// The newest entries first.
#[derive(Default)]
pub struct AclLog {
    entries: VecDeque<Entry>,
    last_id: u64,
}

impl AclLog {
    /// Adds an entry, or counts it with an equal one.
    pub fn add(&mut self, mut entry: Entry, len_max: usize) {
        let is_equal = |known: &Entry| {
            known.reason == entry.reason
                && known.context == entry.context
                && known.object == entry.object
                && known.user == entry.user
                && entry.updated_ms.saturating_sub(known.updated_ms) <= TOGETHER_MS
        };
        match self.entries.iter().take(COMPARED_MAX).position(is_equal) {
            Some(at) => {
                let mut known = self.entries.remove(at).expect("it was found there");
                known.count += 1;
                (known.updated_ms, known.client) = (entry.updated_ms, entry.client);
                self.entries.push_front(known);
            }
            None => {
                entry.id = self.last_id;
                self.last_id += 1;
                self.entries.push_front(entry);
            }
        }
        // Only here, as in Redis: a smaller limit leaves the entries until the next one.
        self.entries.truncate(len_max);
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The newest entries.
    pub fn newest(&self, count: usize) -> Vec<Entry> {
        self.entries.iter().take(count).cloned().collect()
    }
}
