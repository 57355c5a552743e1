//! What goes wrong between a writer and a place in memory, by seed. Decides what happens to one request; refuses to know
//! what it is for.

/// How often something goes wrong, in thousandths of all requests. The default: nothing does.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// The batches are stored, but their writer is not told.
    pub lost_acknowledgements: u16,
    /// Their writer is told later, in ticks ([`crate::MemoryPlace::tick`]).
    pub delayed_acknowledgements: u16,
    /// Their writer is told again later.
    pub repeated_acknowledgements: u16,
    /// They are not stored, and their writer is told.
    pub refusals: u16,
    /// A snapshot is not kept.
    pub refused_snapshots: u16,
}

/// What happens to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Acknowledged,
    Lost,
    /// In so many ticks.
    Delayed(u64),
    Repeated(u64),
    Refused,
}

/// The longest delay, in ticks.
const DELAY_MAX: u64 = 8;

/// Decides what happens, one request after the other.
#[derive(Default)]
pub(super) struct Chance {
    faults: Faults,
    state: u64,
}

impl Chance {
    pub(super) fn new(seed: u64, faults: Faults) -> Chance {
        Chance { faults, state: seed }
    }

    /// What happens to the next batches that are sent.
    pub(super) fn of_batches(&mut self) -> Fate {
        let Faults { lost_acknowledgements, delayed_acknowledgements, repeated_acknowledgements, refusals, .. } =
            self.faults;
        let delay = 1 + self.next() % DELAY_MAX;
        let fates = [
            (lost_acknowledgements, Fate::Lost),
            (delayed_acknowledgements, Fate::Delayed(delay)),
            (repeated_acknowledgements, Fate::Repeated(delay)),
            (refusals, Fate::Refused),
        ];
        let mut drawn = self.next() % 1000;
        for (thousandths, fate) in fates {
            match drawn.checked_sub(thousandths.into()) {
                None => return fate,
                Some(left) => drawn = left,
            }
        }
        Fate::Acknowledged
    }

    pub(super) fn refuses_snapshot(&mut self) -> bool {
        self.next() % 1000 < self.faults.refused_snapshots.into()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
