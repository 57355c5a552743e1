//! What a store, a transaction and a session have in common: they send a command and return its reply. Cells, runs and
//! exactly-once state are written once, over this. Knows no connection and no command.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError, Value};

use crate::answer::Answer;
use crate::error::Error;

/// Sends commands.
pub(crate) trait Asker: Send + Sync {
    /// An error unless the server has this command of Holdfast's.
    fn needs(&self, command: &'static str) -> Result<(), Error>;

    /// Sends a command and returns its reply.
    fn ask_value<'a>(&'a self, command: &'a Cmd) -> Answer<'a, Value>;

    /// Sends a command that waits at the server, for this long at most. [`Error::CannotWait`] in a transaction and in a
    /// session: there such a command would answer at once, and a loop around it would not pause.
    fn ask_waiting<'a>(&'a self, command: &'a Cmd, wait: Duration) -> Answer<'a, Value>;
}

impl dyn Asker + '_ {
    /// Sends a command and reads its reply.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        read(self.ask_value(command).await?)
    }

    /// Like [`ask_waiting`](Asker::ask_waiting), with the reply read.
    pub(crate) async fn wait<T: FromRedisValue>(&self, command: &Cmd, wait: Duration) -> Result<T, Error> {
        read(self.ask_waiting(command, wait).await?)
    }
}

/// Reads a reply as the caller's type.
pub(crate) fn read<T: FromRedisValue>(reply: Value) -> Result<T, Error> {
    Ok(T::from_redis_value(reply).map_err(RedisError::from)?)
}

/// A wait in the form of `BLOCK ms`, where 0 would wait forever.
pub(crate) fn block_ms(wait: Duration) -> u64 {
    wait.as_millis().clamp(1, i64::MAX as u128) as u64
}
