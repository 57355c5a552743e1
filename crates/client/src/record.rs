//! A record: fields, which are names and values of any bytes, and its remaining lifetime. Knows no server.

use std::collections::{BTreeMap, BTreeSet};
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
///
/// Fields to write may also name fields to remove, in the same step. A record that is read has none of those.
///
/// ```
/// use holdfast_client::Fields;
///
/// let error: Option<&str> = None;
/// let done = Fields::new().with("state", "completed").without("timeout_at").with_option("error", error);
/// assert!(done.removed().eq([b"error".as_slice(), b"timeout_at"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    removed: BTreeSet<Vec<u8>>,
}

impl Fields {
    /// No fields yet.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Adds a field; an existing value is replaced.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Fields {
        self.removed.remove(name.as_ref());
        self.values.insert(name.as_ref().to_vec(), bytes(value));
        self
    }

    /// Names a field that is removed when the others are written.
    #[must_use]
    pub fn without(mut self, name: impl AsRef<[u8]>) -> Fields {
        self.values.remove(name.as_ref());
        self.removed.insert(name.as_ref().to_vec());
        self
    }

    /// Adds a field; `None` removes it when the others are written.
    #[must_use]
    pub fn with_option(self, name: impl AsRef<[u8]>, value: Option<impl ToSingleRedisArg>) -> Fields {
        match value {
            Some(value) => self.with(name, value),
            None => self.without(name),
        }
    }

    /// The fields that are removed when the others are written, in order of their names.
    pub fn removed(&self) -> impl Iterator<Item = &[u8]> {
        self.removed.iter().map(Vec::as_slice)
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
        &self.values
    }
}

impl FromIterator<(Vec<u8>, Vec<u8>)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(fields: I) -> Fields {
        Fields { values: fields.into_iter().collect(), removed: BTreeSet::new() }
    }
}

/// A field without a value is one to remove.
impl FromIterator<(Vec<u8>, Option<Vec<u8>>)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>>(fields: I) -> Fields {
        fields.into_iter().fold(Fields::new(), |fields, (name, value)| fields.with_option(name, value))
    }
}

impl FromRedisValue for Fields {
    fn from_redis_value(reply: Value) -> Result<Fields, ParsingError> {
        BTreeMap::from_redis_value(reply).map(|values| Fields { values, removed: BTreeSet::new() })
    }
}

/// A record, as [`StateStore::get`](crate::StateStore::get) and [`StateStore::scan`](crate::StateStore::scan) return it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its fields.
    pub fields: Fields,
    /// The remaining lifetime, if it has one.
    pub ttl: Option<Duration>,
}

/// A lifetime in a reply: negative if there is none.
pub(crate) fn ttl(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// Encodes a value.
pub(crate) fn bytes(value: impl ToSingleRedisArg) -> Vec<u8> {
    let mut args = value.to_redis_args();
    assert_eq!(args.len(), 1, "a value is one argument");
    args.remove(0)
}
