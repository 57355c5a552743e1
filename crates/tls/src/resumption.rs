//! Sessions that clients may resume, for a limited time. Knows when a session was stored; refuses to know what is in it.

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most sessions that are remembered, whatever the setting says: some two kilobytes each.
const SESSIONS_MAX: usize = 1 << 17;

/// The sessions of one [`crate::Context`]. A new context begins with none, so no session outlives the certificates that
/// it was made with.
#[derive(Debug)]
pub(crate) struct Sessions {
    cache: Arc<ServerSessionMemoryCache>,
    lifetime: Duration,
    since: Instant,
}

impl Sessions {
    /// 0 means as many as possible, as in OpenSSL.
    pub(crate) fn new(count: usize, lifetime: Duration) -> Sessions {
        let count = if count == 0 { SESSIONS_MAX } else { count.min(SESSIONS_MAX) };
        Sessions { cache: ServerSessionMemoryCache::new(count), lifetime, since: Instant::now() }
    }

    /// Returns a stored session without its time, unless it is too old.
    fn fresh(&self, mut stored: Vec<u8>) -> Option<Vec<u8>> {
        let at_ms = u64::from_be_bytes(*stored.last_chunk::<8>()?);
        let age = self.since.elapsed().saturating_sub(Duration::from_millis(at_ms));
        stored.truncate(stored.len() - 8);
        (age < self.lifetime).then_some(stored)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        value.extend_from_slice(&(self.since.elapsed().as_millis() as u64).to_be_bytes());
        self.cache.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(key).and_then(|stored| self.fresh(stored))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(key).and_then(|stored| self.fresh(stored))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_forgotten_when_it_is_old() {
        let sessions = Sessions::new(10, Duration::from_secs(100));
        assert!(sessions.put(b"key".to_vec(), b"secret".to_vec()));
        assert_eq!(sessions.get(b"key").as_deref(), Some(&b"secret"[..]));
        let sessions = Sessions { lifetime: Duration::ZERO, ..sessions };
        assert_eq!((sessions.get(b"key"), sessions.take(b"key")), (None, None));
    }
}
