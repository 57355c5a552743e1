//! Sends a command on a connection and reads its reply. Knows what the redis crate makes of a connection that ends; refuses to know
//! commands.

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Value};

use crate::error::Error;

pub(crate) async fn send<T: FromRedisValue>(command: &Cmd, connection: &mut impl ConnectionLike) -> Result<T, Error> {
    let reply: Value = command.query_async(connection).await.map_err(without_reply)?;
    Ok(T::from_redis_value(reply).map_err(RedisError::from)?)
}

/// Why there is no whole reply. To the redis crate a connection that ends in the middle of one has sent something that cannot be parsed.
pub(crate) fn without_reply(error: RedisError) -> Error {
    match error.kind() {
        ErrorKind::Parse => Error::Unavailable(error),
        _ => error.into(),
    }
}
