//! A client of the Sentinel port: its protocol, its user, its name and what it listens to. Refuses to know sockets and
//! commands.

use super::room::Room;
use super::topology::Message;
use engine::acl::{Context, User};
use engine::algorithms::glob;
use resp::{Protocol, Reply};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The most channels and patterns that a client may listen to.
pub(super) const SUBSCRIPTIONS_MAX: usize = 64;
/// The pause before a wrong password is answered: longer each time, on the same connection.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const PAUSE_DOUBLED_MAX: u32 = 7;

pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) local: String,
    pub(super) protocol: Protocol,
    pub(super) name: Vec<u8>,
    pub(super) library: Vec<u8>,
    pub(super) library_version: Vec<u8>,
    /// `None` is the default user, if that needs no password.
    user: Option<Arc<User>>,
    wrong_passwords: u32,
    pub(super) channels: Vec<Vec<u8>>,
    pub(super) patterns: Vec<Vec<u8>>,
}

impl Session {
    pub(super) fn new(id: u64, peer: SocketAddr, local: String) -> Session {
        Session {
            id,
            peer,
            local,
            protocol: Protocol::default(),
            name: Vec::new(),
            library: Vec::new(),
            library_version: Vec::new(),
            user: None,
            wrong_passwords: 0,
            channels: Vec::new(),
            patterns: Vec::new(),
        }
    }

    /// True when the client may send requests.
    pub(super) fn is_authenticated(&self, room: &Room) -> bool {
        self.current_user(room).is_some()
    }

    pub(super) fn current_user(&self, room: &Room) -> Option<Arc<User>> {
        let acl = &room.engine.acl;
        match &self.user {
            Some(user) => Some(user.clone()).filter(|user| !user.is_removed()),
            None => acl.default_needs_no_password().then(|| acl.default_user().clone()),
        }
    }

    /// The name of its user, for CLIENT INFO.
    pub(super) fn user_name(&self, room: &Room) -> String {
        self.current_user(room).map_or_else(String::new, |user| user.shown_name())
    }

    /// Makes the client the first of these that is a user which is on: its certificate names them.
    pub(super) fn log_in_by_certificate(&mut self, room: &Room, names: &[String]) {
        let acl = &room.engine.acl;
        self.user = names.iter().filter_map(|name| acl.find(name.as_bytes())).find(|user| user.rights().is_on);
    }

    /// Makes the client that user. A wrong password is noted in ACL LOG; the result is the pause before its error.
    pub(super) fn log_in(&mut self, room: &Room, name: &[u8], password: &[u8]) -> Result<(), Duration> {
        let engine = &room.engine;
        if let Some(user) = engine.acl.authenticate(name, password) {
            (self.user, self.wrong_passwords) = (Some(user), 0);
            return Ok(());
        }
        let (now_ms, len_max) = (engine.clock.unix_us() / 1000, engine.settings.acllog_max_len() as usize);
        let client = format!("addr={} cmd=sentinel", self.peer);
        engine.acl.note_wrong_password(Context::TopLevel, name, client, now_ms, len_max);
        let pause = FIRST_PAUSE * 2_u32.pow(self.wrong_passwords.min(PAUSE_DOUBLED_MAX));
        self.wrong_passwords += 1;
        Err(pause)
    }

    /// As a new connection is.
    pub(super) fn reset(&mut self) {
        *self = Session {
            library: std::mem::take(&mut self.library),
            library_version: std::mem::take(&mut self.library_version),
            wrong_passwords: self.wrong_passwords,
            ..Session::new(self.id, self.peer, std::mem::take(&mut self.local))
        };
    }

    pub(super) fn is_listening(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty()
    }

    /// Writes a message once for the channel, and for each pattern that the channel matches.
    pub(super) fn deliver(&self, message: &Message, out: &mut Vec<u8>) {
        let channel = message.channel.as_bytes();
        let mut reply = Reply::new(out, self.protocol);
        if self.channels.iter().any(|listened| listened == channel) {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(channel);
            reply.bulk(message.payload.as_bytes());
        }
        for pattern in self.patterns.iter().filter(|pattern| glob::matches(pattern, channel, false)) {
            reply.push(4);
            reply.bulk(b"pmessage");
            reply.bulk(pattern);
            reply.bulk(channel);
            reply.bulk(message.payload.as_bytes());
        }
    }
}
