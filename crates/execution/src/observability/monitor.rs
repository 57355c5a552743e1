//! MONITOR: every command of every client, as a line, to the monitoring clients. Knows the line's form; refuses to know
//! how it is delivered.

use crate::clients::ClientHandle;
use locks::{Mutex, rank};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The monitoring clients.
#[derive(Default)]
pub struct Monitors {
    watchers: Mutex<Vec<Arc<ClientHandle>>, { rank::MONITORS }>,
    /// A bit for each that looks at every command.
    watched_by: AtomicU8,
}

/// Clients in MONITOR.
const CLIENTS: u8 = 1;
/// HOTKEYS.
const KEY_COUNTS: u8 = 2;

impl Monitors {
    /// True when anything looks at every command. One relaxed load: checked for every command.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched_by.load(Relaxed) > 0
    }

    /// True when a client monitors.
    #[inline]
    pub fn any(&self) -> bool {
        self.watched_by.load(Relaxed) & CLIENTS > 0
    }

    /// True while HOTKEYS counts the keys of commands.
    #[inline]
    pub fn counts_keys(&self) -> bool {
        self.watched_by.load(Relaxed) & KEY_COUNTS > 0
    }

    pub(super) fn set_counts_keys(&self, counts: bool) {
        self.set(KEY_COUNTS, counts);
    }

    fn set(&self, bit: u8, is_set: bool) {
        match is_set {
            true => self.watched_by.fetch_or(bit, Relaxed),
            false => self.watched_by.fetch_and(!bit, Relaxed),
        };
    }

    pub fn add(&self, handle: Arc<ClientHandle>) {
        let mut watchers = self.watchers.lock();
        watchers.push(handle);
        self.set(CLIENTS, true);
    }

    pub fn remove(&self, id: u64) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.id != id);
        self.set(CLIENTS, !watchers.is_empty());
    }

    /// Sends one command to all monitoring clients.
    pub fn feed<'a>(
        &self,
        now_us: u64,
        db: usize,
        address: &str,
        args: impl Iterator<Item = &'a [u8]>,
        bytes_max: u64,
    ) {
        let mut line = Vec::with_capacity(64);
        let _ = write!(line, "+{}.{:06} [{db} {address}]", now_us / 1_000_000, now_us % 1_000_000);
        for arg in args {
            line.push(b' ');
            quote(arg, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        for watcher in self.watchers.lock().iter() {
            watcher.send(&line, bytes_max);
        }
    }
}

/// Writes `bytes` in double quotes, with unprintable bytes escaped, as Redis does.
pub fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            0x20..=0x7e => out.push(*byte),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(b'"');
}
