//! The sessions of a server: opens them, and pushes requests to them. Holdfast only. Knows the commands; refuses to
//! know what a request does.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, cmd};
use tokio::time::sleep;

use crate::encode::Encode;
use crate::error::Error;
use crate::lost::LostSession;
use crate::request_numbers::Insistence;
use crate::session::Session;
use crate::session_requests::{PendingRequest, RetriedRequest, SessionInfo, pending_command};
use crate::store::Store;

/// The sessions of a server.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
}

/// Options of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// How long the server keeps a session without requests, not counting the server's own downtime. An open session
    /// renews itself three times in this time.
    pub ttl: Duration,
    /// What the server's hooks learn about the client.
    pub capabilities: Vec<(String, String)>,
    /// How long a request without an answer is retried. The last attempt may take as long as a request may.
    pub retry_for: Duration,
}

impl Default for SessionConfig {
    fn default() -> SessionConfig {
        SessionConfig { ttl: Duration::from_secs(90), capabilities: Vec::new(), retry_for: Duration::from_secs(60) }
    }
}

/// The event for which a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A new session is opened.
    Created,
    /// A session expires or is closed.
    Expired,
}

impl Hook {
    fn word(self) -> &'static str {
        match self {
            Hook::Created => "CREATED",
            Hook::Expired => "EXPIRED",
        }
    }
}

impl Store {
    /// The sessions of the server. Sends nothing to it.
    pub fn sessions(&self) -> Sessions {
        Sessions { store: self.clone() }
    }
}

impl Sessions {
    /// Opens a session. The client chooses its name, so that opening can be repeated.
    pub async fn open(&self, config: &SessionConfig) -> Result<Session, Error> {
        let id = new_session_id();
        let mut open = cmd("SESSION.OPEN");
        open.arg("ID").arg(&id).arg("TTL").arg(config.ttl.as_millis().min(i64::MAX as u128) as u64);
        if !config.capabilities.is_empty() {
            open.arg("CAP").arg(config.capabilities.len()).arg(&config.capabilities);
        }
        let mut insistence = Insistence::new(config.retry_for);
        loop {
            let error = match self.ask::<Vec<u8>>(&open).await {
                Ok(id) => return Ok(Session::new(self.store.clone(), id, 1, config.ttl, config.retry_for)),
                Err(error) => error,
            };
            match insistence.pause(&error) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// Continues a session that this program, or an earlier one, has opened. Its new requests are numbered from
    /// `next_request_id` on: one more than the highest number that was used. A request of the earlier program is made
    /// again by [`Session::prepare_as`] with its number, before the session sends others. A session that is gone is
    /// [`Error::SessionLost`].
    pub async fn resume(
        &self,
        session_id: impl AsRef<[u8]>,
        next_request_id: u64,
        retry_for: Duration,
    ) -> Result<Session, Error> {
        let id = session_id.as_ref().to_vec();
        let info = match self.ask(cmd("SESSION.ALIVE").arg(&id)).await? {
            true => self.info(&id).await?,
            false => None,
        };
        let Some(info) = info else {
            let lost = LostSession { session_id: id, request_id: None, maybe_applied: true };
            return Err(Error::SessionLost(Box::new(lost)));
        };
        Ok(Session::new(self.store.clone(), id, next_request_id, info.ttl, retry_for))
    }

    /// Pushes a request to a session. Returns its number there. After [`Error::Unavailable`] it may have been pushed:
    /// [`Session::push`] pushes exactly once.
    pub async fn push(&self, session_id: impl AsRef<[u8]>, payload: impl Encode) -> Result<u64, Error> {
        self.ask(cmd("SESSION.PUSH").arg(session_id.as_ref()).arg(payload.encode()?)).await
    }

    /// The unacknowledged requests that were pushed to a session: after this one, at most `limit`.
    pub async fn pending(
        &self,
        session_id: impl AsRef<[u8]>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<PendingRequest>, Error> {
        self.ask(&pending_command(session_id.as_ref(), after, limit)).await
    }

    /// Facts about a session; `None` if it does not exist.
    pub async fn info(&self, session_id: impl AsRef<[u8]>) -> Result<Option<SessionInfo>, Error> {
        self.ask(cmd("SESSION.INFO").arg(session_id.as_ref())).await
    }

    /// Closes a session; returns whether it existed.
    pub async fn close(&self, session_id: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.ask(cmd("SESSION.CLOSE").arg(session_id.as_ref())).await
    }

    /// The names of all sessions, with SCAN's guarantee: one that exists all the time is listed, possibly twice.
    pub async fn ids(&self) -> Result<Vec<Vec<u8>>, Error> {
        let (mut found, mut cursor) = (Vec::new(), 0u64);
        loop {
            let (next, names): (u64, Vec<Vec<u8>>) = self.ask(cmd("SESSION.LIST").arg("CURSOR").arg(cursor)).await?;
            found.extend(names);
            cursor = next;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    /// Returns every pushed request that was last sent before this time, in unix milliseconds, oldest first, at most
    /// `limit`, and marks them as sent now. Of two callers one gets a request. It sends nothing itself. A time in the
    /// future means now.
    pub async fn retry(&self, before_ms: u64, limit: usize) -> Result<Vec<RetriedRequest>, Error> {
        self.ask(cmd("SESSION.RETRY").arg(before_ms).arg("LIMIT").arg(limit)).await
    }

    /// True when [`Sessions::retry`] with this time would find a request.
    pub async fn has_retry(&self, before_ms: u64) -> Result<bool, Error> {
        self.ask(cmd("SESSION.HASRETRY").arg(before_ms)).await
    }

    /// The function that is called for an event, if there is one.
    pub async fn hook(&self, hook: Hook) -> Result<Option<String>, Error> {
        let functions: HashMap<String, Option<String>> = self.ask(&cmd("SESSION.HOOK")).await?;
        let of =
            |(name, function): (String, Option<String>)| name.eq_ignore_ascii_case(hook.word()).then_some(function);
        Ok(functions.into_iter().find_map(of).flatten())
    }

    /// Sets or removes the function.
    pub async fn set_hook(&self, hook: Hook, function: Option<&str>) -> Result<(), Error> {
        self.ask(cmd("SESSION.HOOK").arg(hook.word()).arg(function.unwrap_or("NONE"))).await
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.store.needs("session.call")?;
        self.store.ask(command).await
    }
}

/// A unique name.
fn new_session_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    format!("session:{:032x}", u128::from_be_bytes(bytes))
}
