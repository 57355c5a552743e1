//! Values that serde writes and reads, as JSON. Knows no server, and refuses to know the types.

use std::ops::{Deref, DerefMut};

use redis::{FromRedisValue, ParsingError, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encode::Encode;
use crate::error::Error;

/// A value that is stored as JSON, for any type of serde's. It is used wherever a type is chosen: `Cell<Json<Limits>>`,
/// `Run<Json<Payload>>`, `ExactlyOnceState<Json<Totals>>`. Bytes that are not JSON of that type are [`Error::Reply`].
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// use holdfast_client::Json;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Limits { requests: u32, burst: u32 }
///
/// let limits = store.cell::<Json<Limits>>("config/limits");
/// limits.set(&Json(Limits { requests: 100, burst: 20 })).await?;
/// if let Some(now) = limits.get().await? {
///     println!("{} requests, in version {}", now.value.requests, now.version);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Serialize> Encode for Json<T> {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(&self.0).map_err(|error| Error::Encode(error.into()))
    }
}

impl<T: DeserializeOwned> FromRedisValue for Json<T> {
    fn from_redis_value(value: Value) -> Result<Json<T>, ParsingError> {
        let bytes = Vec::<u8>::from_redis_value(value)?;
        let json = serde_json::from_slice(&bytes);
        json.map(Json).map_err(|error| format!("the value is not JSON of the expected type: {error}").into())
    }
}
