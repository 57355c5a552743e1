//! What the console keeps: who has signed in, the last hour, and the way to this server. Refuses to know HTTP and pages.

use crate::history::{History, SAMPLE_EVERY};
use crate::sessions::{Session, Sessions};
use crate::talk::{Opener, Talk, Trouble};
use engine::Engine;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Passwords that are checked at the same time.
const SIGN_INS_MAX: usize = 4;

/// The console of a server.
pub struct Console {
    pub(crate) engine: Arc<Engine>,
    pub(crate) open: Opener,
    // The locks are held for a moment, never both, and never across an `await`.
    sessions: Mutex<Sessions>,
    history: Mutex<History>,
    pub(crate) sign_ins: Semaphore,
    /// The name of the cookie. It differs between servers: browsers send cookies to all ports of a host.
    pub(crate) cookie: String,
}

impl Console {
    pub fn new(engine: Arc<Engine>, open: Opener) -> Console {
        let cookie = format!("holdfast_{}", engine.identity.run_id.get(..12).unwrap_or_default());
        Console {
            engine,
            open,
            sessions: Mutex::default(),
            history: Mutex::default(),
            sign_ins: Semaphore::new(SIGN_INS_MAX),
            cookie,
        }
    }

    /// Reads the figures of the last hour again and again, for ever.
    pub async fn watch(&self) {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.history().sample(&self.engine, Instant::now());
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection to this server as a user.
    pub(crate) async fn talk(&self, session: &Session, peer: SocketAddr, db: usize) -> Result<Talk, Trouble> {
        let socket = (self.open)(peer, Some(session.user.clone())).map_err(Trouble::Failed)?;
        let mut talk = Talk::begin(socket)?;
        talk.set_up(db).await?;
        Ok(talk)
    }
}
