//! A reply whose parts have names: a map in RESP3, a flat array in RESP2. Refuses to know which names there are.

use std::collections::HashMap;

use redis::{FromRedisValue, ParsingError, Value};

/// The fields of a reply by name.
pub(crate) struct Named(HashMap<String, Value>);

impl Named {
    pub(crate) fn of(value: Value) -> Result<Named, ParsingError> {
        HashMap::from_redis_value(value).map(Named)
    }

    /// Takes a field, which must exist, and must not be nil unless `T` allows it.
    pub(crate) fn take<T: FromRedisValue>(&mut self, name: &str) -> Result<T, ParsingError> {
        match self.0.remove(name) {
            Some(value) => T::from_redis_value(value),
            None => Err(format!("the reply has no {name}").into()),
        }
    }

    /// Takes a field that may be missing.
    pub(crate) fn take_given(&mut self, name: &str) -> Result<Option<Vec<u8>>, ParsingError> {
        self.0.remove(name).map(Vec::from_redis_value).transpose()
    }

    /// Takes a field, or its default where it is missing.
    pub(crate) fn take_or_default<T: FromRedisValue + Default>(&mut self, name: &str) -> Result<T, ParsingError> {
        self.0.remove(name).map_or(Ok(T::default()), T::from_redis_value)
    }
}
