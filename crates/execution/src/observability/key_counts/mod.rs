//! What one worker counts of the keys of its commands while HOTKEYS counts. Knows names and weights; refuses to know commands and
//! sessions.

mod top_names;

use locks::{Mutex, rank};
use top_names::TopNames;

/// Names in a worker's table for each key that a report lists.
const NAMES_PER_KEY: usize = 32;

/// What HOTKEYS START asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub cpu: bool,
    pub net: bool,
    /// The most keys of a report.
    pub count: usize,
    /// For how long; without an end, if there is none.
    pub duration_ms: Option<u64>,
    /// The share of commands whose keys are counted: one of so many.
    pub sample: u32,
    /// For the draws of a sample.
    pub seed: u64,
}

/// What one worker has counted.
pub struct KeyCounts {
    cpu_ns: Option<TopNames>,
    net_bytes: Option<TopNames>,
    /// All commands with keys.
    pub(super) all_ns: u64,
    pub(super) all_bytes: u64,
    sample: u32,
    random: fastrand::Rng,
}

/// A worker's counts, if there are any.
pub(super) type CountsOfWorker = Mutex<Option<Box<KeyCounts>>, { rank::HOT_KEYS_OF_WORKER }>;

impl KeyCounts {
    pub(super) fn new(wanted: &Wanted) -> KeyCounts {
        let table = |is_wanted: bool| is_wanted.then(|| TopNames::new(wanted.count * NAMES_PER_KEY));
        KeyCounts {
            cpu_ns: table(wanted.cpu),
            net_bytes: table(wanted.net),
            all_ns: 0,
            all_bytes: 0,
            sample: wanted.sample,
            random: fastrand::Rng::with_seed(wanted.seed),
        }
    }

    /// Counts a command with so many keys, which share its time and its bytes.
    pub fn add<'a>(&mut self, db: usize, names: impl Iterator<Item = &'a [u8]>, count: usize, ns: u64, bytes: u64) {
        if count == 0 {
            return;
        }
        self.all_ns += ns;
        self.all_bytes += bytes;
        if self.sample > 1 && self.random.u32(..self.sample) > 0 {
            return;
        }
        let (ns, bytes) = (ns / count as u64, bytes / count as u64);
        for name in names {
            if let Some(top) = &mut self.cpu_ns {
                top.add(db, name, ns);
            }
            if let Some(top) = &mut self.net_bytes {
                top.add(db, name, bytes);
            }
        }
    }

    /// Bytes of the commands that were sampled.
    pub(super) fn counted_bytes(&self) -> u64 {
        self.net_bytes.as_ref().map_or(0, TopNames::total)
    }

    /// The names by time and by bytes, with their databases and sums, in no order.
    pub(super) fn sums(&self) -> [impl Iterator<Item = (usize, &[u8], u64)>; 2] {
        [&self.cpu_ns, &self.net_bytes].map(|top| top.iter().flat_map(TopNames::iter))
    }
}
