//! Where a command's keys are in a request, and what the command does with each: as data, in the words of Redis's key
//! specifications. Locking, COMMAND GETKEYS, indexes and scripts all find keys here. Knows nothing of what a key holds.
//!
//! ```text
//! key(1)                                   GET key
//! keys(1, -1, 2)                           MSET key value …
//! key(1).overwritten().and(counted(2))     ZUNIONSTORE destination numkeys key …
//! keys_after("STREAMS", 1).half()          XREAD … STREAMS key … id …
//! ```

use bitflags::bitflags;
use numbers::parse_i64;
use resp::Request;
use smallvec::{SmallVec, smallvec};

bitflags! {
    /// What a command does with a group of its keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct KeyFlags: u16 {
        /// Reads the value.
        const RO = 1;
        /// Changes the value, which depends on what it was.
        const RW = 1 << 1;
        /// Replaces the value, whatever it was.
        const OW = 1 << 2;
        /// Removes the key.
        const RM = 1 << 3;
        /// Returns the value or some of it, or copies it elsewhere.
        const ACCESS = 1 << 4;
        const UPDATE = 1 << 5;
        /// Adds to the value without changing what is there.
        const INSERT = 1 << 6;
        const DELETE = 1 << 7;
        /// It is not a key but a shard channel, which a cluster assigns to a node as it does keys.
        const NOT_KEY = 1 << 8;
        /// The specification does not find all keys.
        const INCOMPLETE = 1 << 9;
        /// A request may do less with the key than these flags say.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// In the order and words of COMMAND INFO.
    const NAMES: &'static [(KeyFlags, &'static str)] = &[
        (KeyFlags::RO, "RO"),
        (KeyFlags::RW, "RW"),
        (KeyFlags::OW, "OW"),
        (KeyFlags::RM, "RM"),
        (KeyFlags::ACCESS, "access"),
        (KeyFlags::UPDATE, "update"),
        (KeyFlags::INSERT, "insert"),
        (KeyFlags::DELETE, "delete"),
        (KeyFlags::NOT_KEY, "not_key"),
        (KeyFlags::INCOMPLETE, "incomplete"),
        (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
    ];

    pub const READ: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);
    pub const CHANGE: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);
    pub const OVERWRITE: KeyFlags = KeyFlags::OW.union(KeyFlags::UPDATE);

    pub fn names(self) -> Vec<&'static str> {
        KeyFlags::NAMES.iter().filter(|(flag, _)| self.intersects(*flag)).map(|(_, name)| *name).collect()
    }

    /// True when the key may be changed, made or removed.
    pub const fn writes(self) -> bool {
        self.intersects(KeyFlags::RW.union(KeyFlags::OW).union(KeyFlags::RM))
    }
}

/// What has to be locked for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// It touches no key.
    None,
    /// The shard of its one key, which is this argument.
    Key(u8),
    /// The shards of its keys.
    Keys,
    /// It may touch any key.
    Everything,
    /// It visits any key, one shard at a time: it locks none up front (see `ReadCx::shard`).
    Walk,
    /// It runs other commands, and takes the locks for its keys itself.
    Declared,
}

/// One group of a command's keys: where the search for it begins, and which arguments from there on are keys.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub begin: KeysBegin,
    pub find: Find,
    pub flags: KeyFlags,
    /// Why the flags are what they are, for COMMAND INFO.
    pub notes: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysBegin {
    /// At this argument.
    Index(u8),
    /// After this keyword, in any case, which is searched from this argument on; backwards from the end when negative.
    Keyword { word: &'static str, from: i8 },
    /// No specification can say where.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to the argument that is `last` after the first, or counted from the end when negative; every `step`th. With a
    /// `limit` of n > 1 and a `last` of -1, only the first nth of the remaining arguments.
    Range { last: i8, step: u8, limit: u8 },
    /// As many as the argument at which the search begins says; they follow it, every `step`th.
    Count { step: u8 },
    /// No specification can say which.
    Unknown,
}

impl KeySpec {
    /// True when the number of arguments alone determines where the keys are.
    const fn is_fixed(&self) -> bool {
        matches!((self.begin, self.find), (KeysBegin::Index(_), Find::Range { .. }))
    }

    /// The keys in a request of `count` arguments, which `arg` returns by position.
    fn find<'a>(&self, count: usize, arg: impl Fn(usize) -> &'a [u8], count_min: i64) -> Result<KeyRange, NotFound> {
        let first = match self.begin {
            KeysBegin::Index(at) => usize::from(at),
            KeysBegin::Keyword { word, from } => {
                let is_word = |at: &usize| arg(*at).eq_ignore_ascii_case(word.as_bytes());
                let found = match usize::try_from(from) {
                    Ok(from) => (from..count).find(is_word),
                    Err(_) => (1..=count.saturating_sub(usize::from(from.unsigned_abs()))).rev().find(is_word),
                };
                found.ok_or(NotFound::Absent)? + 1
            }
            KeysBegin::Unknown => return Err(NotFound::Absent),
        };
        let (first, last, step) = match self.find {
            Find::Range { last, step, limit } => {
                let last = match last {
                    0.. => first + last as usize,
                    _ if limit > 1 => (first + count.saturating_sub(first) / usize::from(limit)).saturating_sub(1),
                    _ => count.saturating_sub(usize::from(last.unsigned_abs())),
                };
                (first, last.min(count.saturating_sub(1)), step)
            }
            Find::Count { step } => {
                let given = if first < count { parse_i64(arg(first)) } else { None };
                let left = count.saturating_sub(first + 1) as i64;
                let left = left / i64::from(step);
                let keys = given.filter(|keys| (count_min..=left).contains(keys)).ok_or(NotFound::Invalid)?;
                (first + 1, first + keys as usize * usize::from(step), step)
            }
            Find::Unknown => return Err(NotFound::Absent),
        };
        if first > last || first >= count {
            return Err(NotFound::Absent);
        }
        Ok(KeyRange { first: first as u32, last: last as u32, step: u32::from(step), flags: self.flags })
    }
}

/// Why a key specification finds no key in a request.
enum NotFound {
    /// The request has none of these keys.
    Absent,
    /// The request announces keys that it does not have.
    Invalid,
}

/// Every `step`th argument from `first` to `last` is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub first: u32,
    pub last: u32,
    pub step: u32,
    pub flags: KeyFlags,
}

impl KeyRange {
    /// One key.
    pub const fn one(at: usize, flags: KeyFlags) -> KeyRange {
        KeyRange { first: at as u32, last: at as u32, step: 1, flags }
    }

    pub fn positions(self) -> impl Iterator<Item = usize> {
        (self.first as usize..=self.last as usize).step_by(self.step as usize)
    }
}

/// The keys of one request, in groups.
#[derive(Debug, Default)]
pub struct FoundKeys {
    pub ranges: SmallVec<[KeyRange; SPECS_MAX]>,
    /// The request announces more keys than it has, or has no number where one is needed. `ranges` has the keys that
    /// were found.
    pub is_invalid: bool,
}

impl FoundKeys {
    /// One key.
    pub fn one(at: usize, flags: KeyFlags) -> FoundKeys {
        FoundKeys { ranges: smallvec![KeyRange::one(at, flags)], is_invalid: false }
    }
}

/// More groups of keys than any command has.
const SPECS_MAX: usize = 3;

/// All that a row says about a command's keys. In this order: every request reads the first field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Keys {
    pub locks: Locks,
    specs: [KeySpec; SPECS_MAX],
    count: u8,
    /// A function that finds the keys, for commands whose keys no specification can describe.
    by_request: Option<fn(Request<'_>) -> FoundKeys>,
}

const NO_SPEC: KeySpec = KeySpec {
    begin: KeysBegin::Index(0),
    find: Find::Range { last: 0, step: 1, limit: 0 },
    flags: KeyFlags::empty(),
    notes: None,
};

/// One key at a fixed position.
pub const fn key(at: u8) -> Keys {
    let mut keys = Keys::one(KeysBegin::Index(at), Find::Range { last: 0, step: 1, limit: 0 });
    keys.locks = Locks::Key(at);
    keys
}

/// Arguments `first` to `last` (counted from the end when negative), every `step`th.
pub const fn keys(first: u8, last: i8, step: u8) -> Keys {
    let last = if last < 0 { last } else { last - first as i8 };
    Keys::one(KeysBegin::Index(first), Find::Range { last, step, limit: 0 })
}

/// As many keys as argument `at` says; they follow it.
pub const fn counted(at: u8) -> Keys {
    Keys::one(KeysBegin::Index(at), Find::Count { step: 1 })
}

/// Like [`counted`], with a value after each key.
pub const fn counted_pairs(at: u8) -> Keys {
    Keys::one(KeysBegin::Index(at), Find::Count { step: 2 })
}

/// The argument after a keyword, which is searched from argument `from` on; backwards from the end when negative.
pub const fn keys_after(word: &'static str, from: i8) -> Keys {
    Keys::one(KeysBegin::Keyword { word, from }, Find::Range { last: 0, step: 1, limit: 0 })
}

impl Keys {
    /// It touches no key.
    pub const NONE: Keys = Keys::without_specs(Locks::None);
    /// It may touch any key.
    pub const EVERYTHING: Keys = Keys::without_specs(Locks::Everything);
    /// It visits any key, one shard at a time.
    pub const WALK: Keys = Keys::without_specs(Locks::Walk);

    const fn without_specs(locks: Locks) -> Keys {
        Keys { locks, specs: [NO_SPEC; SPECS_MAX], count: 0, by_request: None }
    }

    const fn one(begin: KeysBegin, find: Find) -> Keys {
        let mut keys = Keys::without_specs(Locks::Keys);
        keys.specs[0] = KeySpec { begin, find, ..NO_SPEC };
        keys.count = 1;
        keys
    }

    /// Keys from both specifications.
    pub const fn and(mut self, others: Keys) -> Keys {
        let mut at = 0;
        while at < others.count as usize {
            self.specs[self.count as usize] = others.specs[at];
            self.count += 1;
            at += 1;
        }
        self.locks = Locks::Keys;
        self
    }

    /// Adds keys that no specification finds. This affects only what COMMAND shows: pass a function that finds them to
    /// `found_by`.
    pub const fn and_unknown(mut self, flags: KeyFlags, notes: &'static str) -> Keys {
        self.specs[self.count as usize] =
            KeySpec { begin: KeysBegin::Unknown, find: Find::Unknown, flags, notes: Some(notes) };
        self.count += 1;
        self
    }

    /// All arguments up to the end, not only the first.
    pub const fn to_end(self) -> Keys {
        self.ranging(Find::Range { last: -1, step: 1, limit: 0 })
    }

    /// The first half of the arguments up to the end. The second half has one argument for each key.
    pub const fn half(self) -> Keys {
        self.ranging(Find::Range { last: -1, step: 1, limit: 2 })
    }

    const fn ranging(mut self, find: Find) -> Keys {
        self.specs[0].find = find;
        self.locks = Locks::Keys;
        self
    }

    /// Sets what is done with the keys, where it differs from the default of this kind of command.
    pub const fn access(mut self, flags: KeyFlags) -> Keys {
        let mut at = 0;
        while at < self.count as usize {
            self.specs[at].flags = flags;
            at += 1;
        }
        self
    }

    /// Sets the default, for keys without explicit flags.
    pub(super) const fn usually(mut self, flags: KeyFlags) -> Keys {
        let mut at = 0;
        while at < self.count as usize {
            if self.specs[at].flags.is_empty() {
                self.specs[at].flags = flags;
            }
            at += 1;
        }
        self
    }

    /// Their values are returned or copied.
    pub const fn read(self) -> Keys {
        self.access(KeyFlags::READ)
    }

    /// The command only reveals their existence, type or size, not their values.
    pub const fn examined(self) -> Keys {
        self.access(KeyFlags::RO)
    }

    /// Their values are returned, or the new values depend on the old ones.
    pub const fn changed(self) -> Keys {
        self.access(KeyFlags::CHANGE)
    }

    /// Elements are added to their values, and existing ones do not change.
    pub const fn added_to(self) -> Keys {
        self.access(KeyFlags::RW.union(KeyFlags::INSERT))
    }

    /// Something is removed from their values.
    pub const fn removed_from(self) -> Keys {
        self.access(KeyFlags::RW.union(KeyFlags::DELETE))
    }

    /// The removed elements or values are returned or moved.
    pub const fn taken_from(self) -> Keys {
        self.access(KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))
    }

    /// They get other values, whatever they held.
    pub const fn overwritten(self) -> Keys {
        self.access(KeyFlags::OVERWRITE)
    }

    /// They get values if they have none.
    pub const fn created(self) -> Keys {
        self.access(KeyFlags::OW.union(KeyFlags::INSERT))
    }

    pub const fn removed(self) -> Keys {
        self.access(KeyFlags::RM.union(KeyFlags::DELETE))
    }

    /// Why they are used so.
    pub const fn noted(mut self, notes: &'static str) -> Keys {
        self.specs[0].notes = Some(notes);
        self
    }

    /// A request may do less with its keys than the flags say; this function returns what it does.
    pub const fn varying(mut self, by_request: fn(Request<'_>) -> FoundKeys) -> Keys {
        self.specs[0].flags = self.specs[0].flags.union(KeyFlags::VARIABLE_FLAGS);
        self.by_request = Some(by_request);
        self
    }

    /// Finds the keys with this function; the specifications are only what COMMAND shows.
    pub const fn found_by(mut self, by_request: fn(Request<'_>) -> FoundKeys) -> Keys {
        self.by_request = Some(by_request);
        self.locks = Locks::Keys;
        self
    }

    /// They are channels, not keys.
    pub const fn channels(mut self) -> Keys {
        self.locks = Locks::None;
        self.access(KeyFlags::NOT_KEY)
    }

    /// They are the command's main keys; it may touch any other key too.
    pub(super) const fn beside_everything(mut self) -> Keys {
        self.locks = Locks::Everything;
        self
    }

    /// They are the keys that a script declares.
    pub(super) const fn declared(mut self) -> Keys {
        self.locks = Locks::Declared;
        self
    }

    pub fn specs(&self) -> &[KeySpec] {
        &self.specs[..usize::from(self.count)]
    }

    /// False for commands without keys, such as those that name channels instead.
    pub fn has_any(&self) -> bool {
        self.specs().iter().any(|spec| !spec.flags.intersects(KeyFlags::NOT_KEY))
    }

    /// True when they are shard channels.
    pub fn are_channels(&self) -> bool {
        self.specs().iter().any(|spec| spec.flags.contains(KeyFlags::NOT_KEY))
    }

    /// True when the positions of the keys depend on the values of the arguments, not only on their number.
    pub const fn are_movable(&self) -> bool {
        let mut at = 0;
        while at < self.count as usize {
            if !self.specs[at].is_fixed() {
                return true;
            }
            at += 1;
        }
        // A function that finds other keys makes the lock of the one key insufficient.
        self.by_request.is_some() && !matches!(self.locks, Locks::Key(_))
    }

    /// The keys of a request. A group may have as few as `count_min` keys where the request counts them.
    pub fn find(&self, request: Request<'_>, count_min: i64) -> FoundKeys {
        match self.by_request {
            Some(by_request) => by_request(request),
            None => self.find_by_specs(request, count_min),
        }
    }

    fn find_by_specs(&self, request: Request<'_>, count_min: i64) -> FoundKeys {
        let mut found = FoundKeys::default();
        for spec in self.specs() {
            match spec.find(request.len(), |at| request.arg(at), count_min) {
                Ok(range) => found.ranges.push(range),
                Err(NotFound::Absent) => {}
                Err(NotFound::Invalid) => found.is_invalid = true,
            }
        }
        found
    }

    /// The position of the only key, and what is done with it, if that is the same for every request.
    #[inline]
    pub fn only_key(&self) -> Option<(usize, KeyFlags)> {
        match self.locks {
            Locks::Key(at) if self.count == 1 && self.by_request.is_none() => {
                Some((usize::from(at), self.specs[0].flags))
            }
            _ => None,
        }
    }

    /// The position of the only key, if that is the same for every request, and the most that is done with it.
    pub fn only_key_at_most(&self) -> Option<(usize, KeyFlags)> {
        match self.locks {
            // What it is that is done may vary, see `varying`. Where the key is may not: see `are_movable`.
            Locks::Key(at) if self.count == 1 => Some((usize::from(at), self.specs[0].flags)),
            _ => None,
        }
    }

    /// The keys of any request with `count` arguments; `None` if they depend on the values of the arguments.
    pub fn find_in_any(&self, count: usize) -> Option<FoundKeys> {
        if self.are_movable() {
            return None;
        }
        let ranges = self.specs().iter().filter_map(|spec| spec.find(count, |_| b"", 1).ok());
        Some(FoundKeys { ranges: ranges.collect(), is_invalid: false })
    }

    /// First key, last key and step, as COMMAND INFO showed them before there were key specifications: the groups at
    /// fixed positions, as far as they are contiguous.
    pub fn fixed_range(&self) -> (i64, i64, i64) {
        let fixed: SmallVec<[(i64, i64, i64); SPECS_MAX]> = self
            .specs()
            .iter()
            .filter_map(|spec| match (spec.begin, spec.find) {
                (KeysBegin::Index(first), Find::Range { last, step, .. }) => {
                    let last = if last < 0 { i64::from(last) } else { i64::from(first) + i64::from(last) };
                    Some((i64::from(first), last, i64::from(step)))
                }
                _ => None,
            })
            .collect();
        match fixed[..] {
            [] => (0, 0, 0),
            [only] => only,
            [(first, ..), .., (_, last, step)] if fixed.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0) => {
                (first, last, step)
            }
            _ => (0, 0, 0),
        }
    }
}

#[cfg(test)]
mod tests;
