//! Requests that are pushed to sessions, and facts about a session, as in replies. Knows no connection.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, ParsingError, Value, cmd};

/// A request from the server, or from another client, to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRequest {
    /// 1, 2, 3 … in its session, never reused.
    pub id: u64,
    /// What was pushed.
    pub payload: Vec<u8>,
}

/// A pushed request that is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// Its number in its session.
    pub id: u64,
    /// What was pushed.
    pub payload: Vec<u8>,
    /// When it was last pushed, delivered or marked as sent, in unix milliseconds.
    pub last_sent_ms: u64,
}

/// A pushed request that [`Sessions::retry`](crate::Sessions::retry) has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetriedRequest {
    /// The session that it was pushed to.
    pub session_id: Vec<u8>,
    /// Its number there.
    pub id: u64,
    /// What was pushed.
    pub payload: Vec<u8>,
    /// When it was last sent before this retry, in unix milliseconds.
    pub last_sent_ms: u64,
}

/// Facts about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// When it was opened, in unix milliseconds.
    pub created_at_ms: u64,
    /// As [`SessionConfig::ttl`](crate::SessionConfig::ttl).
    pub ttl: Duration,
    /// The server has dropped the replies of the requests below this one.
    pub low: u64,
    /// The number of retained replies.
    pub replies: u64,
    /// Their bytes.
    pub reply_bytes: u64,
    /// The number of unacknowledged pushed requests.
    pub pending: u64,
    /// The last pushed request.
    pub last_id: u64,
    /// Whether a connection is attached.
    pub attached: bool,
    /// As [`SessionConfig::capabilities`](crate::SessionConfig::capabilities).
    pub capabilities: HashMap<String, String>,
}

pub(crate) fn pending_command(session_id: &[u8], after: u64, limit: usize) -> Cmd {
    let mut pending = cmd("SESSION.PENDING");
    pending.arg(session_id).arg("AFTER").arg(after).arg("LIMIT").arg(limit);
    pending
}

impl FromRedisValue for PendingRequest {
    fn from_redis_value(value: Value) -> Result<PendingRequest, ParsingError> {
        let (id, payload, last_sent_ms) = FromRedisValue::from_redis_value(value)?;
        Ok(PendingRequest { id, payload, last_sent_ms })
    }
}

impl FromRedisValue for RetriedRequest {
    fn from_redis_value(value: Value) -> Result<RetriedRequest, ParsingError> {
        let (session_id, id, payload, last_sent_ms) = FromRedisValue::from_redis_value(value)?;
        Ok(RetriedRequest { session_id, id, payload, last_sent_ms })
    }
}

impl FromRedisValue for SessionInfo {
    fn from_redis_value(value: Value) -> Result<SessionInfo, ParsingError> {
        let mut info: HashMap<String, Value> = HashMap::from_redis_value(value)?;
        let mut take =
            |name: &str| info.remove(name).ok_or_else(|| ParsingError::from(format!("the reply has no {name}")));
        Ok(SessionInfo {
            created_at_ms: u64::from_redis_value(take("created_at")?)?,
            ttl: Duration::from_millis(u64::from_redis_value(take("ttl_ms")?)?),
            low: u64::from_redis_value(take("low")?)?,
            replies: u64::from_redis_value(take("replies")?)?,
            reply_bytes: u64::from_redis_value(take("reply_bytes")?)?,
            pending: u64::from_redis_value(take("pending")?)?,
            last_id: u64::from_redis_value(take("last_id")?)?,
            attached: bool::from_redis_value(take("attached")?)?,
            capabilities: HashMap::from_redis_value(take("capabilities")?)?,
        })
    }
}
