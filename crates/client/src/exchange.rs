//! Conditions on a record and changes to it, made atomically: HCAS on Holdfast, a script on a plain Redis.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, Script, ScriptInvocation, ToSingleRedisArg, cmd};

use crate::error::Error;
use crate::record::{Fields, bytes};

/// Conditions on a record, and the changes that are made if all of them hold.
///
/// A claim that sets the worker and its lease at once, and fails if the job has changed:
///
/// ```
/// use holdfast_client::Exchange;
///
/// let now_ms = 1_760_000_000_000_u64;
/// let claim = Exchange::new()
///     .expected("state", "pending")
///     .expected("attempt", 2)
///     .set("state", "claimed")
///     .set("worker", "w-17")
///     .set("timeout_at", now_ms + 30_000);
/// # let _ = claim;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Fields that must hold these values.
    pub expected: Fields,
    /// Fields that must be absent.
    pub absent: Vec<Vec<u8>>,
    /// Fields to write. Those that it names as removed are removed.
    pub set: Fields,
    /// Fields to set to the server's time plus an offset, in unix milliseconds: a lease that needs no clock of the
    /// client. None of them may also be set or removed.
    pub stamps: Vec<(Vec<u8>, i64)>,
    /// Fields to remove, after the writes. A record that loses its last field is deleted.
    pub remove: Vec<Vec<u8>>,
    /// The new lifetime of the record; `None` leaves it unchanged.
    pub ttl: Option<Duration>,
}

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// True when every condition held, and so every change was made.
    pub applied: bool,
    /// The current values of the expected fields that exist.
    pub current: Fields,
}

impl Exchange {
    /// No conditions, no changes.
    pub fn new() -> Exchange {
        Exchange::default()
    }

    /// Only if the field has this value.
    #[must_use]
    pub fn expected(mut self, field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Exchange {
        self.expected = self.expected.with(field, value);
        self
    }

    /// The earlier name of [`expected`](Exchange::expected).
    #[must_use]
    #[deprecated(note = "its name is `expected` now, as in the other packages")]
    pub fn expect(self, field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Exchange {
        self.expected(field, value)
    }

    /// Only if the field is absent.
    #[must_use]
    pub fn absent(mut self, field: impl AsRef<[u8]>) -> Exchange {
        self.absent.push(bytes(field.as_ref()));
        self
    }

    /// The earlier name of [`absent`](Exchange::absent).
    #[must_use]
    #[deprecated(note = "its name is `absent` now, as in the other packages")]
    pub fn expect_absent(self, field: impl AsRef<[u8]>) -> Exchange {
        self.absent(field)
    }

    /// Writes the field.
    #[must_use]
    pub fn set(mut self, field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Exchange {
        self.set = self.set.with(field, value);
        self
    }

    /// Sets the field to the server's time plus an offset, in milliseconds.
    ///
    /// A lease for another half minute, if the job is still this worker's:
    ///
    /// ```
    /// use holdfast_client::Exchange;
    ///
    /// let renewal = Exchange::new().expected("attempt", 3).stamp("timeout_at", 30_000);
    /// # let _ = renewal;
    /// ```
    #[must_use]
    pub fn stamp(mut self, field: impl AsRef<[u8]>, offset_ms: i64) -> Exchange {
        self.stamps.push((bytes(field.as_ref()), offset_ms));
        self
    }

    /// Removes the field.
    #[must_use]
    pub fn remove(mut self, field: impl AsRef<[u8]>) -> Exchange {
        self.remove.push(bytes(field.as_ref()));
        self
    }

    pub(crate) fn hcas(&self, key: &[u8]) -> Result<Cmd, Error> {
        Ok(cmd("HCAS").arg(key).arg(self.args()?).take())
    }

    pub(crate) fn script(&self, key: &[u8]) -> Result<ScriptInvocation<'static>, Error> {
        static EXCHANGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("exchange.lua")));
        let mut call = EXCHANGE.key(key);
        call.arg(self.args()?);
        Ok(call)
    }

    /// The arguments after the key. Every list is present, even if it is empty: three arguments alone are HCAS's short
    /// form.
    fn args(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut args = Vec::new();
        let pairs = |fields: &Fields| fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
        let stamps = self.stamps.iter().flat_map(|(name, offset)| [name.clone(), bytes(*offset)]).collect();
        let remove: Vec<Vec<u8>> = self.remove.iter().cloned().chain(self.set.removed().map(<[u8]>::to_vec)).collect();
        for (option, count, items) in [
            ("IF", self.expected.len(), pairs(&self.expected)),
            ("ABSENT", self.absent.len(), self.absent.clone()),
            ("SET", self.set.len(), pairs(&self.set)),
            ("DEL", remove.len(), remove),
            ("STAMP", self.stamps.len(), stamps),
        ] {
            args.extend([bytes(option), bytes(count)]);
            args.extend::<Vec<_>>(items);
        }
        if let Some(ttl) = self.ttl {
            args.extend([bytes("PX"), bytes(ttl_ms(ttl)?)]);
        }
        args.push(bytes("WITHCURRENT"));
        Ok(args)
    }

    /// Both forms answer `[1|0, [value of each expected field]]`.
    pub(crate) fn outcome(&self, (applied, values): (bool, Vec<Option<Vec<u8>>>)) -> Outcome {
        let fields = self.expected.keys().cloned().zip(values);
        Outcome { applied, current: fields.filter_map(|(field, value)| Some((field, value?))).collect() }
    }
}

/// A lifetime in the form that every server accepts.
pub(crate) fn ttl_ms(ttl: Duration) -> Result<u64, Error> {
    const MS_MAX: u128 = 3_093_527_980_800_000; // to the year 100 000
    match ttl.as_millis() {
        ms @ 1..=MS_MAX => Ok(ms as u64),
        _ => Err(Error::Lifetime(ttl)),
    }
}
