//! The definition of an index, as IDX.CREATE takes it and IDX.INFO tells it.

use redis::{Cmd, FromRedisValue, ParsingError, ToSingleRedisArg, Value, cmd};

use crate::named::Named;
use crate::record::bytes;

/// The command that every server with indexes has.
pub(crate) const NEEDED: &str = "idx.range";

/// An index: the records under some prefixes, in the order of a numeric field.
///
/// ```
/// use holdfast_client::IndexDefinition;
///
/// let due = IndexDefinition::new(["job:"], "run_at").only("state", ["pending", "running"]);
/// # let _ = due;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexDefinition {
    /// The prefixes of the records' keys.
    pub prefixes: Vec<Vec<u8>>,
    /// The field that is the order. A record without it, or without a number in it, is not in the index.
    pub field: Vec<u8>,
    /// A field and values: only records that have one of them.
    pub only: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// A field and values: no records that have one of them. Not together with `only`.
    pub exclude: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// A write that does not set the field sets it to the server's time.
    pub stamp: bool,
    /// The field by whose value records are kept apart in groups, which claims take in turns and limits are for.
    pub group: Option<Vec<u8>>,
    /// A field and values: the records that are held, being worked on, which the limit of held records counts.
    pub held: Option<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl IndexDefinition {
    /// All records under these prefixes that have a number in the field.
    pub fn new<P: AsRef<[u8]>>(prefixes: impl IntoIterator<Item = P>, field: impl AsRef<[u8]>) -> IndexDefinition {
        IndexDefinition {
            prefixes: prefixes.into_iter().map(|prefix| prefix.as_ref().to_vec()).collect(),
            field: field.as_ref().to_vec(),
            ..IndexDefinition::default()
        }
    }

    /// Only records whose other field has one of these values.
    #[must_use]
    pub fn only<V: ToSingleRedisArg>(
        mut self,
        field: impl AsRef<[u8]>,
        values: impl IntoIterator<Item = V>,
    ) -> IndexDefinition {
        self.only = condition(field, values);
        self
    }

    /// No records whose other field has one of these values: terminal states.
    #[must_use]
    pub fn exclude<V: ToSingleRedisArg>(
        mut self,
        field: impl AsRef<[u8]>,
        values: impl IntoIterator<Item = V>,
    ) -> IndexDefinition {
        self.exclude = condition(field, values);
        self
    }

    /// A write to a record that does not set the field sets it to the server's time.
    #[must_use]
    pub fn stamp(mut self) -> IndexDefinition {
        self.stamp = true;
        self
    }

    /// Keeps records apart by the value of another field: groups, which claims take in turns and limits are for.
    ///
    /// ```
    /// use holdfast_client::IndexDefinition;
    ///
    /// let due = IndexDefinition::new(["job:"], "run_at").group("tenant").held("state", ["running"]);
    /// # let _ = due;
    /// ```
    #[must_use]
    pub fn group(mut self, field: impl AsRef<[u8]>) -> IndexDefinition {
        self.group = Some(field.as_ref().to_vec());
        self
    }

    /// Records whose other field has one of these values are held: being worked on.
    #[must_use]
    pub fn held<V: ToSingleRedisArg>(
        mut self,
        field: impl AsRef<[u8]>,
        values: impl IntoIterator<Item = V>,
    ) -> IndexDefinition {
        self.held = condition(field, values);
        self
    }

    /// The command that creates the index; with `if_absent`, only if there is none of that name.
    pub(crate) fn command(&self, name: &[u8], if_absent: bool) -> Cmd {
        let mut create = cmd("IDX.CREATE");
        create.arg(name);
        if if_absent {
            create.arg("IFABSENT");
        }
        create.arg("PREFIX").arg(self.prefixes.len()).arg(&self.prefixes).arg("FIELD").arg(&self.field);
        for (option, condition) in [("ONLY", &self.only), ("EXCLUDE", &self.exclude), ("HELD", &self.held)] {
            if let Some((field, values)) = condition {
                create.arg(option).arg(field).arg(values.len()).arg(values);
            }
        }
        if let Some(field) = &self.group {
            create.arg("GROUP").arg(field);
        }
        if self.stamp {
            create.arg("STAMP");
        }
        create
    }
}

fn condition<V: ToSingleRedisArg>(
    field: impl AsRef<[u8]>,
    values: impl IntoIterator<Item = V>,
) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    Some((field.as_ref().to_vec(), values.into_iter().map(bytes).collect()))
}

impl FromRedisValue for IndexDefinition {
    /// Reads the reply of IDX.INFO.
    fn from_redis_value(reply: Value) -> Result<IndexDefinition, ParsingError> {
        let mut info = Named::of(reply)?;
        let mut condition = |part: &str| -> Result<_, ParsingError> {
            let words: Option<Vec<Vec<u8>>> = info.take_or_default(part)?;
            let mut words = words.into_iter().flatten();
            Ok(words.next().map(|field| (field, words.collect())))
        };
        let (only, exclude, held) = (condition("only")?, condition("exclude")?, condition("held")?);
        Ok(IndexDefinition {
            only,
            exclude,
            held,
            prefixes: info.take("prefixes")?,
            field: info.take("field")?,
            stamp: info.take("stamp")?,
            group: info.take_or_default("group")?,
        })
    }
}
