//! A record: fields, which are names and values of any bytes, and its remaining lifetime. Knows no server.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, ToSingleRedisArg, Value};

/// The fields of a record, in order of their names.
///
/// A [`BTreeMap`] of bytes with convenience methods: values are written as texts, bytes or numbers, and read as text or
/// as a number.
///
/// ```
/// use holdfast_client::Fields;
///
/// let fields = Fields::new().with("state", "pending").with("attempt", 2).with("digest", &[0_u8, 255]);
/// assert_eq!(fields.text("state"), Some("pending"));
/// assert_eq!(fields.number("attempt"), Some(2));
/// assert_eq!(fields.text("digest"), None); // no UTF-8
/// assert_eq!(fields.get(&b"digest"[..]), Some(&vec![0, 255]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(BTreeMap<Vec<u8>, Vec<u8>>);

impl Fields {
    /// No fields yet.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Adds a field; an existing value is replaced.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Fields {
        self.0.insert(name.as_ref().to_vec(), bytes(value));
        self
    }

    /// A field's value, if it exists and is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.get(name.as_bytes())?).ok()
    }

    /// A field's value, if it exists and is an integer.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

impl Deref for Fields {
    type Target = BTreeMap<Vec<u8>, Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(Vec<u8>, Vec<u8>)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(fields: I) -> Fields {
        Fields(fields.into_iter().collect())
    }
}

impl FromRedisValue for Fields {
    fn from_redis_value(reply: Value) -> Result<Fields, ParsingError> {
        BTreeMap::from_redis_value(reply).map(Fields)
    }
}

/// A record, as [`StateStore::get`](crate::StateStore::get) returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its fields.
    pub fields: Fields,
    /// The remaining lifetime, if it has one.
    pub ttl: Option<Duration>,
}

/// Encodes a value.
pub(crate) fn bytes(value: impl ToSingleRedisArg) -> Vec<u8> {
    let mut args = value.to_redis_args();
    assert_eq!(args.len(), 1, "a value is one argument");
    args.remove(0)
}
