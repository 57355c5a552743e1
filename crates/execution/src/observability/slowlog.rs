//! The slow log: the last commands that took long. Knows how entries are trimmed; refuses to know time.

use locks::{Mutex, rank};
use std::collections::VecDeque;

/// Arguments kept of one entry, and bytes kept of one argument, as in Redis.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone)]
pub struct SlowEntry {
    pub id: u64,
    pub time_s: u64,
    pub took_us: u64,
    pub args: Vec<Vec<u8>>,
    pub address: Box<str>,
    pub name: Vec<u8>,
}

#[derive(Default)]
struct Entries {
    newest_first: VecDeque<SlowEntry>,
    next_id: u64,
}

/// The log. Bounded by `slowlog-max-len`.
#[derive(Default)]
pub struct SlowLog {
    entries: Mutex<Entries, { rank::SLOWLOG }>,
}

impl SlowLog {
    /// Adds an entry and drops those beyond `len_max`.
    pub fn add<'a>(
        &self,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        time_s: u64,
        took_us: u64,
        address: &str,
        name: &[u8],
        len_max: usize,
    ) {
        if len_max == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        let args = trimmed(args);
        entries.newest_first.push_front(SlowEntry {
            id,
            time_s,
            took_us,
            args,
            address: address.into(),
            name: name.to_vec(),
        });
        entries.newest_first.truncate(len_max);
    }

    /// The newest `count` entries.
    pub fn newest(&self, count: usize) -> Vec<SlowEntry> {
        self.entries.lock().newest_first.iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.entries.lock().newest_first.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&self) {
        self.entries.lock().newest_first.clear();
    }
}

/// The arguments as they are logged: long ones are cut, and many are summarised, with a note of how much is left out.
fn trimmed<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let count = args.len();
    let shown = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    let mut kept: Vec<Vec<u8>> =
        args.take(shown)
            .map(|arg| match arg.len() > ARG_BYTES_MAX {
                true => [&arg[..ARG_BYTES_MAX], format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes()]
                    .concat(),
                false => arg.to_vec(),
            })
            .collect();
    if count > shown {
        kept.push(format!("... ({} more arguments)", count - shown).into_bytes());
    }
    kept
}
