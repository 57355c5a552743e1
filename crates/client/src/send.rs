//! Sends a command on a connection and reads its reply. Knows how the redis crate reports a connection that ends;
//! refuses to know commands.

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Value};

use crate::error::Error;

pub(crate) async fn send<T: FromRedisValue>(command: &Cmd, connection: &mut impl ConnectionLike) -> Result<T, Error> {
    let reply: Value = command.query_async(connection).await.map_err(without_reply)?;
    Ok(T::from_redis_value(reply).map_err(RedisError::from)?)
}

/// Classifies a missing reply. The redis crate reports a connection that ends in the middle of a reply as a parse
/// error.
pub(crate) fn without_reply(error: RedisError) -> Error {
    match error.kind() {
        ErrorKind::Parse => Error::Unavailable(error),
        _ => error.into(),
    }
}
