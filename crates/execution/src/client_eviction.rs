//! The memory limits of clients: `maxmemory-clients` for all together, beyond which the largest are closed, and the
//! share of `maxmemory` that one client may use; and that of the clients of one user (`limit:memory`). Knows how much each
//! client uses and which may be closed; refuses to know what for.

use crate::client::Client;
use crate::clients::account::limits::Limit;
use crate::clients::{Account, ClientHandle, ClientsByAccount, Peer};
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult, NO_MEMORY_LEFT};
use crate::gates;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A lower limit would close every client, even one that connects to raise it. Redis has the same minimum.
const LIMIT_MIN: u64 = 128 * 1024;

/// The limit is checked when a client's transaction or buffer has grown by this much.
pub const GROWN_BYTES: usize = 1024 * 1024;

/// One client may always use this much, whatever `maxmemory` is.
const SHARE_MIN: u64 = 8 * 1024 * 1024;

/// Sizes of clients in DEBUG CLIENT-EVICTION: up to the first, then doubled up to the last.
const BUCKET_FIRST_LOG2: u32 = 15;
const BUCKET_LAST_LOG2: u32 = 32;

/// Closes the clients that use most memory until the rest uses less than `maxmemory-clients`. While more than
/// `maxmemory` is in use, also closes clients whose buffers take more than their share of it. `growth` bytes are about
/// to be added to a buffer, and are counted already. Visits every client, so it is called ten times a second, and when
/// a client's buffer has grown by a megabyte.
pub fn evict_clients(engine: &Engine, growth: u64) {
    evict_for_users(engine);
    let limit = engine.settings.maxmemory_clients();
    let is_short = || engine.host.used_memory().saturating_add(growth) > engine.settings.maxmemory();
    let share = client_share_bytes(engine).filter(|_| is_short());
    if limit == 0 && share.is_none() {
        return;
    }
    // One thread at a time is enough: it also finds what other threads have noticed, now or at its next call.
    let Some(_guard) = engine.clients.evicting.try_lock() else { return };
    let mut all = engine.clients.all();
    if let Some(share) = share {
        all.retain(|handle| {
            let bytes = handle.buffer_bytes() as u64;
            let is_greedy = bytes > share && is_evictable(handle);
            if is_greedy {
                evict_client(engine, handle, bytes, "in its buffers, and one client may have half of maxmemory");
            }
            !is_greedy
        });
    }
    if limit > 0 {
        for (handle, bytes) in surplus(&all, limit.max(LIMIT_MIN)) {
            let why = "more than any other, and all clients together more than maxmemory-clients";
            evict_client(engine, &handle, bytes, why);
        }
    }
}

/// Closes clients of users that hold more than `limit:memory` allows: the largest of that user, until the rest fits.
fn evict_for_users(engine: &Engine) {
    if !engine.acl.limits_memory() {
        return;
    }
    let Some(_guard) = engine.clients.evicting.try_lock() else { return };
    let grouped = ClientsByAccount::new(&engine.clients, |account| account.limit(Limit::Memory) > 0);
    for user in engine.acl.all() {
        let limit = user.account.limit(Limit::Memory);
        if limit == 0 {
            continue;
        }
        let mut held: Vec<(u64, &Arc<ClientHandle>)> =
            grouped.of(&user.account).iter().map(|handle| (handle.held_bytes() as u64, handle)).collect();
        let mut sum: u64 = held.iter().map(|(bytes, _)| bytes).sum();
        held.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, handle) in held {
            if sum <= limit {
                break;
            }
            sum -= bytes;
            user.account.counters.count_refused(Limit::Memory);
            evict_client(
                engine,
                handle,
                bytes,
                "more than any other of its user, and all of them more than limit:memory",
            );
        }
        user.account.see_memory(sum);
    }
}

/// Refuses `growth` more bytes for a client, if its user's clients would then hold more than `limit:memory` allows.
#[inline]
pub fn pass_user_limit(engine: &Engine, client: &Client, growth: usize) -> CommandResult {
    match engine.acl.limits_memory() {
        true => pass_memory_of_user(engine, client, growth),
        false => Ok(()),
    }
}

#[cold]
fn pass_memory_of_user(engine: &Engine, client: &Client, growth: usize) -> CommandResult {
    let account = client.account(&engine.acl);
    match account.add_memory(growth as u64, || held_bytes(engine, account)) {
        true => Ok(()),
        false => Err(NO_MEMORY_LEFT),
    }
}

/// What the clients of an account hold in buffers and transactions. Visits all clients.
fn held_bytes(engine: &Engine, account: &Arc<Account>) -> u64 {
    let of_account = engine.clients.all().into_iter().filter(|handle| handle.is_of(account));
    of_account.map(|handle| handle.held_bytes() as u64).sum()
}

fn evict_client(engine: &Engine, handle: &ClientHandle, bytes: u64, why: &str) {
    engine.clients.count_evicted();
    engine.clients.kill(handle);
    tracing::warn!(client = handle.id, address = %handle.address, used_bytes = bytes, why, "closed a client");
}

/// The limit of one client's buffers, and of its queued commands: half of `maxmemory`, so that no client alone evicts
/// all keys. `None` without a limit.
fn client_share_bytes(engine: &Engine) -> Option<u64> {
    let limit = engine.settings.maxmemory();
    (limit > 0).then(|| (limit / 2).max(SHARE_MIN))
}

/// Refuses to queue one more command after `queued_bytes` of them: when memory is beyond `maxmemory`, as in Redis for
/// any command, and when the client exceeds its share.
pub(super) fn pass_queue_limit(engine: &Engine, queued_bytes: usize) -> CommandResult {
    gates::pass_memory_limit(engine)?;
    match client_share_bytes(engine) {
        Some(share) if queued_bytes as u64 > share => Err(CommandError::OutOfMemory),
        _ => Ok(()),
    }
}

/// A histogram of client sizes, one line for each size, as Redis prints it. `None` without a limit.
pub fn client_sizes(engine: &Engine) -> Option<String> {
    if engine.settings.maxmemory_clients() == 0 {
        return None;
    }
    let mut buckets = [(0u64, 0u64); (BUCKET_LAST_LOG2 - BUCKET_FIRST_LOG2 + 2) as usize];
    for handle in engine.clients.all().iter().filter(|handle| is_evictable(handle)) {
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

/// False for clients with CLIENT NO-EVICT. Their memory counts all the same.
fn is_evictable(handle: &ClientHandle) -> bool {
    !handle.no_evict.load(Relaxed) && handle.peer == Peer::Client
}

/// Chooses clients to close, largest first, until the rest uses less than `limit`. Returns each with its size.
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
    fn the_largest_clients_are_closed_until_the_rest_fits() {
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
