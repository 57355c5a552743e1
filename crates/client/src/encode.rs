//! How typed values become the bytes that the server stores. Refuses to know what they mean. The other direction is the
//! redis crate's [`FromRedisValue`](redis::FromRedisValue).

use redis::ToSingleRedisArg;

use crate::error::Error;

/// A value that can be stored in a cell, in an event of a run, or in exactly-once state. Everything that the redis crate
/// sends as one argument is: texts, bytes and numbers. `Json` is for types that serde can write.
pub trait Encode {
    /// The bytes to store.
    fn encode(&self) -> Result<Vec<u8>, Error>;
}

impl<T: ToSingleRedisArg> Encode for T {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut args = self.to_redis_args();
        match (args.pop(), args.is_empty()) {
            (Some(bytes), true) => Ok(bytes),
            _ => Err(Error::Encode("a value is one argument".into())),
        }
    }
}
