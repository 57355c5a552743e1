//! The limits of groups, as they are set and as they apply. Knows numbers and bytes; refuses to know records and takes.
//!
//! A group has its own value of an attribute, or else that of all groups (EACH), or else none.

use super::rate::{RATE_MAX, Rate};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// One attribute of a limit, as it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// Not set here: what is set for all groups applies.
    #[default]
    Default,
    /// No limit, whatever is set for all groups.
    None,
    Is(T),
}

impl<T: Copy> Setting<T> {
    fn or(self, each: Setting<T>) -> Option<T> {
        match (self, each) {
            (Setting::Is(value), _) | (Setting::Default, Setting::Is(value)) => Some(value),
            (Setting::None, _) | (Setting::Default, Setting::None | Setting::Default) => None,
        }
    }
}

/// What was set for one group, for each group, or for all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The most records that are held.
    pub held: Setting<u64>,
    pub rate: Setting<Rate>,
    /// The share of turns, in thousandths.
    pub weight: Option<u32>,
    pub pause: Option<bool>,
}

/// What limits are set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope<'a> {
    /// The index as a whole.
    All,
    /// Each group that has no value of its own.
    Each,
    Group(&'a [u8]),
}

/// The limits that apply to a group, or to the index as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied {
    pub held: Option<u64>,
    pub rate: Option<Rate>,
    /// In thousandths.
    pub weight: u32,
    pub is_paused: bool,
}

pub const WEIGHT_DEFAULT: u32 = 1000;
/// A hundredth and a thousand, in thousandths.
pub const WEIGHT_MIN: u32 = 10;
pub const WEIGHT_MAX: u32 = 1_000_000;

impl Limits {
    /// True when nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// What applies where these are set, and `each` for all groups.
    pub fn applied(&self, each: &Limits) -> Applied {
        Applied {
            held: self.held.or(each.held),
            rate: self.rate.or(each.rate),
            weight: self.weight.or(each.weight).unwrap_or(WEIGHT_DEFAULT),
            is_paused: self.pause.or(each.pause).unwrap_or(false),
        }
    }
}

const HELD: u8 = 1;
const HELD_NONE: u8 = 2;
const RATE: u8 = 4;
const RATE_NONE: u8 = 8;
const WEIGHT: u8 = 16;
const PAUSE: u8 = 32;
const PAUSED: u8 = 64;

impl Limits {
    /// Encodes the limits, for the journal; docs/effect-format.md describes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0];
        let mut bits = 0;
        match self.held {
            Setting::Default => {}
            Setting::None => bits |= HELD_NONE,
            Setting::Is(max) => {
                bits |= HELD;
                out.extend(max.to_le_bytes());
            }
        }
        match self.rate {
            Setting::Default => {}
            Setting::None => bits |= RATE_NONE,
            Setting::Is(rate) => {
                bits |= RATE;
                [rate.takes, rate.per_ms, rate.burst].iter().for_each(|number| out.extend(number.to_le_bytes()));
            }
        }
        if let Some(weight) = self.weight {
            bits |= WEIGHT;
            out.extend(weight.to_le_bytes());
        }
        if let Some(pause) = self.pause {
            bits |= PAUSE | if pause { PAUSED } else { 0 };
        }
        out[0] = bits;
        out
    }

    /// Decodes limits; `None` when the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Limits> {
        let (&bits, mut rest) = bytes.split_first()?;
        if bits & 128 != 0
            || bits & (HELD | HELD_NONE) == HELD | HELD_NONE
            || bits & (RATE | RATE_NONE) == RATE | RATE_NONE
        {
            return None;
        }
        let mut number = || -> Option<u64> {
            let (taken, left) = rest.split_first_chunk::<8>()?;
            rest = left;
            Some(u64::from_le_bytes(*taken))
        };
        let held = match bits & (HELD | HELD_NONE) {
            0 => Setting::Default,
            HELD => Setting::Is(number()?),
            _ => Setting::None,
        };
        let rate = match bits & (RATE | RATE_NONE) {
            0 => Setting::Default,
            RATE => {
                let rate = Rate { takes: number()?, per_ms: number()?, burst: number()? };
                let is_valid =
                    [rate.takes, rate.per_ms, rate.burst].iter().all(|number| (1..=RATE_MAX).contains(number));
                is_valid.then_some(Setting::Is(rate))?
            }
            _ => Setting::None,
        };
        let weight = match bits & WEIGHT != 0 {
            true => {
                let (taken, left) = rest.split_first_chunk::<4>()?;
                rest = left;
                let weight = u32::from_le_bytes(*taken);
                (WEIGHT_MIN..=WEIGHT_MAX).contains(&weight).then_some(Some(weight))?
            }
            false => None,
        };
        let pause = (bits & PAUSE != 0).then_some(bits & PAUSED != 0);
        let is_valid = rest.is_empty() && (pause.is_some() || bits & PAUSED == 0);
        is_valid.then_some(Limits { held, rate, weight, pause })
    }
}

/// All limits of an index.
#[derive(Clone, Debug, Default)]
pub struct LimitTable {
    all: Limits,
    each: Limits,
    own: BTreeMap<Box<[u8]>, Limits>,
    /// How many of them have a rate.
    rates: usize,
}

impl LimitTable {
    pub fn get(&self, scope: Scope<'_>) -> Limits {
        match scope {
            Scope::All => self.all,
            Scope::Each => self.each,
            Scope::Group(name) => self.own.get(name).copied().unwrap_or_default(),
        }
    }

    /// True when there is a rate.
    pub fn has_rates(&self) -> bool {
        self.rates > 0
    }

    pub fn set(&mut self, scope: Scope<'_>, limits: Limits) {
        let is_rate = |limits: Limits| usize::from(matches!(limits.rate, Setting::Is(_)));
        self.rates = self.rates + is_rate(limits) - is_rate(self.get(scope));
        match scope {
            Scope::All => self.all = limits,
            Scope::Each => self.each = limits,
            Scope::Group(name) if limits.is_empty() => drop(self.own.remove(name)),
            Scope::Group(name) => drop(self.own.insert(name.into(), limits)),
        }
    }

    /// How many groups have limits of their own.
    pub fn own_count(&self) -> usize {
        self.own.len()
    }

    /// Everything that is set: for all, for each, then for groups by their names.
    pub fn iter(&self) -> impl Iterator<Item = (Scope<'_>, Limits)> {
        let whole = [(Scope::All, self.all), (Scope::Each, self.each)];
        whole.into_iter().filter(|(_, limits)| !limits.is_empty()).chain(self.iter_after(Scope::Each))
    }

    /// What is set for the groups behind this one, for all of them after any other scope.
    pub fn iter_after(&self, last: Scope<'_>) -> impl Iterator<Item = (Scope<'_>, Limits)> {
        let from = match last {
            Scope::All | Scope::Each => Unbounded,
            Scope::Group(name) => Excluded(name),
        };
        let own = self.own.range::<[u8], _>((from, Unbounded));
        own.map(|(name, limits)| (Scope::Group(name), *limits))
    }
}

/// The name of limits, or of the state of a rate: that of the index, and what it is for.
pub fn encode_name(index: &[u8], scope: Scope<'_>) -> Vec<u8> {
    let (byte, group): (u8, &[u8]) = match scope {
        Scope::All => (b'a', b""),
        Scope::Each => (b'e', b""),
        Scope::Group(name) => (b'g', name),
    };
    let mut out = (index.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(index);
    out.push(byte);
    out.extend_from_slice(group);
    out
}

/// The index and the scope of such a name; `None` when the bytes are invalid.
pub fn decode_name(name: &[u8]) -> Option<(&[u8], Scope<'_>)> {
    let (len, rest) = name.split_first_chunk::<4>()?;
    let (index, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    match rest.split_first()? {
        (b'a', []) => Some((index, Scope::All)),
        (b'e', []) => Some((index, Scope::Each)),
        (b'g', group) => Some((index, Scope::Group(group))),
        _ => None,
    }
}

/// What the names for one index begin with.
pub fn names_of(index: &[u8]) -> Vec<u8> {
    let mut name = encode_name(index, Scope::All);
    name.pop();
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_its_own_value_or_that_of_each() {
        let rate = Rate { takes: 1, per_ms: 2, burst: 3 };
        let each = Limits { held: Setting::Is(5), rate: Setting::Is(rate), weight: Some(3000), pause: Some(true) };
        assert_eq!(
            Limits::default().applied(&each),
            Applied { held: Some(5), rate: Some(rate), weight: 3000, is_paused: true }
        );
        let own = Limits { held: Setting::None, rate: Setting::Default, weight: None, pause: Some(false) };
        assert_eq!(own.applied(&each), Applied { held: None, rate: Some(rate), weight: 3000, is_paused: false });
        let nothing = Applied { held: None, rate: None, weight: WEIGHT_DEFAULT, is_paused: false };
        assert_eq!(Limits::default().applied(&Limits::default()), nothing);
    }

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_else() {
        let rate = Rate { takes: 1, per_ms: 2, burst: RATE_MAX };
        for held in [Setting::Default, Setting::None, Setting::Is(0), Setting::Is(u64::MAX)] {
            for rate in [Setting::Default, Setting::None, Setting::Is(rate)] {
                for weight in [None, Some(WEIGHT_MIN), Some(WEIGHT_MAX)] {
                    for pause in [None, Some(false), Some(true)] {
                        let limits = Limits { held, rate, weight, pause };
                        let bytes = limits.encode();
                        assert_eq!(Limits::decode(&bytes), Some(limits));
                        assert_eq!(Limits::decode(&[&bytes[..], &[0]].concat()), None);
                        assert!(Limits::decode(&bytes[..bytes.len() - 1]).is_none_or(|_| bytes.len() == 1));
                    }
                }
            }
        }
        assert_eq!(Limits::decode(&[]), None);
        assert_eq!(Limits::decode(&[RATE, 0]), None);
        let zero = [&[RATE][..], &[0; 24]].concat();
        assert_eq!(Limits::decode(&zero), None, "a rate of nothing in no time");
    }

    #[test]
    fn names_come_back() {
        for scope in [Scope::All, Scope::Each, Scope::Group(b""), Scope::Group(b"a\0b")] {
            for index in [&b""[..], b"due"] {
                let name = encode_name(index, scope);
                assert_eq!(decode_name(&name), Some((index, scope)));
                assert!(name.starts_with(&names_of(index)));
            }
        }
        assert!(!encode_name(b"due", Scope::All).starts_with(&names_of(b"du")));
        for bad in [&b""[..], b"\0\0\0\x05due", b"\0\0\0\x03due", b"\0\0\0\x03duex", b"\0\0\0\x03dueab"] {
            assert_eq!(decode_name(bad), None);
        }
    }
}
