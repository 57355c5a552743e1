//! MONITOR: every command of every client, as a line, to the monitoring clients. Knows the line's form; refuses to know
//! how it is delivered.

use crate::clients::ClientHandle;
use locks::{Mutex, rank};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The monitoring clients.
#[derive(Default)]
pub struct Monitors {
    watchers: Mutex<Vec<Arc<ClientHandle>>, { rank::MONITORS }>,
    count: AtomicUsize,
}

impl Monitors {
    /// True when a client monitors. One relaxed load: checked for every command.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    pub fn add(&self, handle: Arc<ClientHandle>) {
        let mut watchers = self.watchers.lock();
        watchers.push(handle);
        self.count.store(watchers.len(), Relaxed);
    }

    pub fn remove(&self, id: u64) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.id != id);
        self.count.store(watchers.len(), Relaxed);
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
