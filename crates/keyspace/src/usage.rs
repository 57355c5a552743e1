//! The last use of a key, in the 24 bits that an entry has for it: its time, or its frequency. Knows Redis's two forms;
//! refuses to know which one is configured.

use crate::storage::entry::used_at;

/// Which form is stored: OBJECT IDLETIME reads the first, OBJECT FREQ the second. As in Redis, values stored in one
/// form make little sense in the other; they adjust as keys are used.
#[derive(Clone, Copy, Debug)]
pub enum Usage {
    /// The second of the last use.
    Time,
    /// The minute of the last use, 16 bits, and a counter that grows with the logarithm of the number of uses, 8 bits.
    Frequency {
        /// The higher, the slower the counter grows.
        log_factor: u64,
        /// Minutes without use that decrement the counter by one; 0 = no decay.
        decay_minutes: u64,
        /// A random number, which decides whether this use increments the counter.
        draw: u32,
    },
}

/// The counter of a new key: above zero, so that new keys are not evicted first.
const COUNTER_OF_NEW: u8 = 5;

impl Usage {
    /// The bits of a key that is created now.
    #[inline]
    pub fn fresh(self, now_ms: u64) -> u32 {
        match self {
            Usage::Time => used_at(now_ms),
            Usage::Frequency { .. } => counted(COUNTER_OF_NEW, now_ms),
        }
    }

    /// The bits of a key that had `bits` and is used now.
    #[inline]
    pub fn used(self, bits: u32, now_ms: u64) -> u32 {
        match self {
            Usage::Time => used_at(now_ms),
            Usage::Frequency { log_factor, decay_minutes, draw } => {
                let counter = frequency(bits, now_ms, decay_minutes);
                let uses = u64::from(counter.saturating_sub(COUNTER_OF_NEW));
                let chance = 1.0 / (uses.saturating_mul(log_factor) as f64 + 1.0);
                let grows = f64::from(draw) / f64::from(u32::MAX) < chance;
                counted(counter.saturating_add(u8::from(grows)), now_ms)
            }
        }
    }
}

/// The bits of a key with this counter that is used now.
pub fn counted(counter: u8, now_ms: u64) -> u32 {
    minute(now_ms) << 8 | u32::from(counter)
}

/// The counter in `bits`, after decay.
pub fn frequency(bits: u32, now_ms: u64, decay_minutes: u64) -> u8 {
    let idle_minutes = u64::from(minute(now_ms).wrapping_sub(bits >> 8) & 0xffff);
    let periods = idle_minutes.checked_div(decay_minutes).unwrap_or(0);
    (bits as u8).saturating_sub(periods.min(255) as u8)
}

fn minute(now_ms: u64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_763_172_000_000;

    fn using(draw: u32) -> Usage {
        Usage::Frequency { log_factor: 10, decay_minutes: 1, draw }
    }

    #[test]
    fn a_new_key_starts_at_five_and_a_lucky_use_adds_one() {
        let fresh = using(0).fresh(NOW);
        assert_eq!(frequency(fresh, NOW, 1), 5);
        assert_eq!(frequency(using(u32::MAX - 1).used(fresh, NOW), NOW, 1), 6, "the first use always counts");
        let ten = counted(10, NOW);
        assert_eq!(frequency(using(0).used(ten, NOW), NOW, 1), 11);
        assert_eq!(frequency(using(u32::MAX / 2).used(ten, NOW), NOW, 1), 10);
        assert_eq!(frequency(using(0).used(counted(255, NOW), NOW), NOW, 1), 255);
    }

    #[test]
    fn the_counter_decays_unless_that_is_turned_off() {
        let bits = counted(20, NOW);
        assert_eq!(frequency(bits, NOW + 7 * 60_000, 1), 13);
        assert_eq!(frequency(bits, NOW + 7 * 60_000, 2), 17);
        assert_eq!(frequency(bits, NOW + 700 * 60_000, 1), 0);
        assert_eq!(frequency(bits, NOW + 700 * 60_000, 0), 20);
    }
}
