//! Limits of the groups of an index: what is set for which of them. Holdfast only. Refuses to know what a job is.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, ParsingError, Value, cmd};

use crate::error::Error;
use crate::index_definition::NEEDED;
use crate::named::Named;
use crate::store::Store;

/// What a limit is for. A group is the records whose group field has a value; those without the field are in the group
/// of the empty name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One group.
    Group(Vec<u8>),
    /// Each group that has no value of its own.
    Each,
    /// All records of the index together.
    All,
}

/// How fast records are taken: in any time `t` at most `burst + t * takes / per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many records.
    pub takes: u64,
    /// In which time, in whole milliseconds.
    pub per: Duration,
    /// How many may be taken at once.
    pub burst: u64,
}

/// A limit that may also be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<T> {
    /// This much.
    Is(T),
    /// No limit, whatever is set for each group.
    None,
    /// What is set for each group: the scope's own value is taken back.
    Default,
}

/// The limits of a scope. To set them: what is `None` stays as it is. As they are read: it was not set.
///
/// ```
/// use std::time::Duration;
/// use holdfast_client::{Bound, Limits, Rate};
///
/// let polite = Limits::new().held(2).rate(Rate::new(5, Duration::from_secs(1)).burst(10)).weight(0.5);
/// let lifted = Limits::new().held(Bound::None).rate(Bound::Default);
/// let stopped = Limits::new().pause(true);
/// # let _ = (polite, lifted, stopped);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// How many records may be held at a time.
    pub held: Option<Bound<u64>>,
    /// How fast records are taken.
    pub rate: Option<Bound<Rate>>,
    /// The share of the turns, from 0.01 to 1000. It is 1 where none is set.
    pub weight: Option<f64>,
    /// Nothing is taken.
    pub pause: Option<bool>,
}

impl Scope {
    /// The group of this name.
    pub fn group(name: impl AsRef<[u8]>) -> Scope {
        Scope::Group(name.as_ref().to_vec())
    }
}

impl Rate {
    /// So many records in such a time, and as many at once.
    pub fn new(takes: u64, per: Duration) -> Rate {
        Rate { takes, per, burst: takes }
    }

    /// So many at once.
    #[must_use]
    pub fn burst(self, burst: u64) -> Rate {
        Rate { burst, ..self }
    }
}

impl<T> From<T> for Bound<T> {
    fn from(limit: T) -> Bound<T> {
        Bound::Is(limit)
    }
}

impl Limits {
    /// Nothing is set.
    pub fn new() -> Limits {
        Limits::default()
    }

    /// So many records may be held at a time.
    #[must_use]
    pub fn held(self, held: impl Into<Bound<u64>>) -> Limits {
        Limits { held: Some(held.into()), ..self }
    }

    /// Records are taken so fast.
    #[must_use]
    pub fn rate(self, rate: impl Into<Bound<Rate>>) -> Limits {
        Limits { rate: Some(rate.into()), ..self }
    }

    /// The share of the turns, from 0.01 to 1000.
    #[must_use]
    pub fn weight(self, weight: f64) -> Limits {
        Limits { weight: Some(weight), ..self }
    }

    /// Nothing is taken, or something is again.
    #[must_use]
    pub fn pause(self, pause: bool) -> Limits {
        Limits { pause: Some(pause), ..self }
    }

    fn write(&self, command: &mut Cmd) {
        match self.held {
            None => {}
            Some(Bound::Is(max)) => _ = command.arg("HELD").arg(max),
            Some(Bound::None) => _ = command.arg("HELD").arg("NONE"),
            Some(Bound::Default) => _ = command.arg("HELD").arg("DEFAULT"),
        }
        match self.rate {
            None => {}
            Some(Bound::Is(Rate { takes, per, burst })) => {
                let per_ms = u64::try_from(per.as_millis()).unwrap_or(u64::MAX); // which the server refuses
                command.arg("RATE").arg(takes).arg(per_ms).arg("BURST").arg(burst);
            }
            Some(Bound::None) => _ = command.arg("RATE").arg("NONE"),
            Some(Bound::Default) => _ = command.arg("RATE").arg("DEFAULT"),
        }
        if let Some(weight) = self.weight {
            command.arg("WEIGHT").arg(weight);
        }
        if let Some(pause) = self.pause {
            command.arg("PAUSE").arg(if pause { "yes" } else { "no" });
        }
    }
}

/// The command that sets limits.
pub(crate) fn limit_command(index: &[u8], scope: &Scope, limits: &Limits) -> Cmd {
    let mut command = command(index, Some(scope));
    limits.write(&mut command);
    command
}

fn command(index: &[u8], scope: Option<&Scope>) -> Cmd {
    let mut limit = cmd("IDX.LIMIT");
    limit.arg(index);
    match scope {
        None => {}
        Some(Scope::Group(group)) => _ = limit.arg("GROUP").arg(group),
        Some(Scope::Each) => _ = limit.arg("EACH"),
        Some(Scope::All) => _ = limit.arg("ALL"),
    }
    limit
}

impl Store {
    /// Limits what claims may take from one group of an index, from each group that has no value of its own, or from all
    /// records together. What is not given stays as it is.
    pub async fn limit(&self, index: impl AsRef<[u8]>, scope: &Scope, limits: &Limits) -> Result<(), Error> {
        self.needs(NEEDED)?;
        self.ask(&limit_command(index.as_ref(), scope, limits)).await
    }

    /// Takes back all limits of a scope; without one, all limits of the index.
    pub async fn reset_limits(&self, index: impl AsRef<[u8]>, scope: Option<&Scope>) -> Result<(), Error> {
        self.needs(NEEDED)?;
        self.ask(command(index.as_ref(), scope).arg("RESET")).await
    }

    /// The limits of an index that were set.
    pub async fn limits(&self, index: impl AsRef<[u8]>) -> Result<Vec<(Scope, Limits)>, Error> {
        self.needs(NEEDED)?;
        let set: Vec<Set> = self.ask(&command(index.as_ref(), None)).await?;
        Ok(set.into_iter().map(|Set(scope, limits)| (scope, limits)).collect())
    }
}

/// One entry of the reply of IDX.LIMIT.
struct Set(Scope, Limits);

impl FromRedisValue for Set {
    fn from_redis_value(reply: Value) -> Result<Set, ParsingError> {
        let mut reply = Named::of(reply)?;
        let scope = match reply.take::<String>("scope")?.as_str() {
            "group" => Scope::Group(reply.take("group")?),
            "each" => Scope::Each,
            "all" => Scope::All,
            other => return Err(format!("limits are for a group, each or all, and not for {other:?}").into()),
        };
        let pause: Option<String> = reply.take_or_default("pause")?;
        let limits = Limits {
            held: reply.take_or_default("held")?,
            rate: reply.take_or_default("rate")?,
            weight: reply.take_or_default("weight")?,
            pause: pause.map(|pause| pause == "yes"),
        };
        Ok(Set(scope, limits))
    }
}

impl<T: FromRedisValue> FromRedisValue for Bound<T> {
    fn from_redis_value(reply: Value) -> Result<Bound<T>, ParsingError> {
        match &reply {
            Value::BulkString(word) if word == b"none" => Ok(Bound::None),
            _ => T::from_redis_value(reply).map(Bound::Is),
        }
    }
}

impl FromRedisValue for Rate {
    fn from_redis_value(reply: Value) -> Result<Rate, ParsingError> {
        let (takes, per_ms, burst) = FromRedisValue::from_redis_value(reply)?;
        Ok(Rate { takes, per: Duration::from_millis(per_ms), burst })
    }
}
