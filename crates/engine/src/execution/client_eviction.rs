//! `maxmemory-clients`: closes the clients that use most memory while all together exceed the limit. Knows what each
//! client uses and which may be closed; refuses to know what they use it for.

use crate::clients::ClientHandle;
use crate::execution::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A lower limit would close every client, even one that connects to raise it. Redis has the same minimum.
const LIMIT_MIN: u64 = 128 * 1024;

/// When the transaction of a client has grown by so much, the limit is checked.
pub(super) const GROWN_BYTES: usize = 1024 * 1024;

/// Sizes of clients in DEBUG CLIENT-EVICTION: up to the first, then doubled up to the last.
const BUCKET_FIRST_LOG2: u32 = 15;
const BUCKET_LAST_LOG2: u32 = 32;

impl Engine {
    /// Closes the clients that use most memory until the rest uses less than `maxmemory-clients`. Looks at every client, so it
    /// is called ten times a second, and when a client's buffer has grown by a megabyte.
    pub fn evict_clients(&self) {
        let limit = self.settings.maxmemory_clients();
        if limit == 0 {
            return;
        }
        // One thread is enough: what other threads have noticed, it finds now or at its next call.
        let Some(_guard) = self.clients.evicting.try_lock() else { return };
        let all = self.clients.all();
        for (handle, bytes) in surplus(&all, limit.max(LIMIT_MIN)) {
            self.clients.count_evicted();
            self.clients.kill(&handle);
            self.host.log(&format!(
                "closed client {} at {}: it used {bytes} bytes, more than any other, and all clients together more than \
                 maxmemory-clients",
                handle.id, handle.address
            ));
        }
    }

    /// How many clients there are of each size, and what they use: one line for a size, as Redis prints them. `None` while
    /// there is no limit.
    pub(crate) fn client_sizes(&self) -> Option<String> {
        if self.settings.maxmemory_clients() == 0 {
            return None;
        }
        let mut buckets = [(0u64, 0u64); (BUCKET_LAST_LOG2 - BUCKET_FIRST_LOG2 + 2) as usize];
        for handle in self.clients.all().iter().filter(|handle| is_evictable(handle)) {
            let bytes = handle.memory_bytes() as u64;
            let log2 = bytes.max(1).ilog2().clamp(BUCKET_FIRST_LOG2 - 1, BUCKET_LAST_LOG2);
            let (sum, count) = &mut buckets[(log2 + 1 - BUCKET_FIRST_LOG2) as usize];
            *sum += bytes;
            *count += 1;
        }
        let mut text = String::new();
        for (at, (sum, count)) in (0u32..).zip(buckets) {
            let log2 = at + BUCKET_FIRST_LOG2 - 1;
            let from = if at == 0 { 0 } else { 1u64 << log2 };
            text += &match log2 {
                BUCKET_LAST_LOG2 => format!("bucket {from:10}+            "),
                _ => format!("bucket {from:10} - {:10}", (1u64 << (log2 + 1)) - 1),
            };
            text += &format!(": tot-mem: {sum:10}, clients: {count}\n");
        }
        Some(text)
    }
}

/// CLIENT NO-EVICT protects a client, though what it uses counts.
fn is_evictable(handle: &ClientHandle) -> bool {
    !handle.no_evict.load(Relaxed)
}

/// The clients to close, largest first, with what they use: without them the rest uses less than `limit`, if possible.
fn surplus(all: &[Arc<ClientHandle>], limit: u64) -> Vec<(Arc<ClientHandle>, u64)> {
    let mut sizes: Vec<(Arc<ClientHandle>, u64)> =
        all.iter().map(|handle| (handle.clone(), handle.memory_bytes() as u64)).collect();
    let mut sum: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    if sum < limit {
        return Vec::new();
    }
    sizes.retain(|(handle, _)| is_evictable(handle));
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let needed = sizes.iter().take_while(|(_, bytes)| {
        let is_above = sum >= limit;
        sum -= if is_above { *bytes } else { 0 };
        is_above
    });
    let needed = needed.count();
    sizes.truncate(needed);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(id: u64, bytes: usize) -> Arc<ClientHandle> {
        let handle = ClientHandle::new(id, String::new(), String::new(), 1, 0, Box::new(|| {}));
        handle.note_input(bytes, bytes);
        Arc::new(handle)
    }

    fn evicted(all: &[Arc<ClientHandle>], limit: u64) -> Vec<u64> {
        surplus(all, limit).iter().map(|(handle, _)| handle.id).collect()
    }

    #[test]
    fn the_largest_go_until_the_rest_fits() {
        let all = [handle(1, 1 << 20), handle(2, 8 << 20), handle(3, 4 << 20), handle(4, 2 << 20)];
        let sum: u64 = all.iter().map(|handle| handle.memory_bytes() as u64).sum();
        assert!(evicted(&all, sum + 1).is_empty());
        assert_eq!(evicted(&all, sum), [2], "as in Redis, the limit itself is too much");
        assert_eq!(evicted(&all, 4 << 20), [2, 3]);
        assert_eq!(evicted(&all, 0), [2, 3, 4, 1]);
    }

    #[test]
    fn a_protected_client_counts_and_stays() {
        let all = [handle(1, 8 << 20), handle(2, 1 << 20), handle(3, 0)];
        all[0].no_evict.store(true, Relaxed);
        assert_eq!(evicted(&all, 9 << 20), [2]);
        assert_eq!(evicted(&all, 1 << 20), [2, 3]);
    }
}
