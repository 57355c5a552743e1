//! How many files the process may have open, and how many clients that leaves room for. Knows the operating system's
//! limit; refuses to know what a client is.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are no client's, whatever happens: journal, snapshots, listeners, /proc. Redis keeps as many.
const RESERVED: u64 = 32;
/// Descriptors that a thread's runtime needs.
const PER_THREAD: u64 = 4;

/// Descriptors that are no client's with so many worker threads and connections to other ports.
pub(crate) fn reserved(threads: usize, other_connections: usize) -> u64 {
    // Beside the workers there are the thread that listens, that of TLS handshakes, and those of the other ports.
    let more = if other_connections > 0 { 4 } else { 2 };
    RESERVED + PER_THREAD * (threads as u64 + more) + other_connections as u64
}

/// Raises the limit of open files as far as that many clients need and the operating system allows. Returns for how
/// many there is room, never more than were asked for.
pub(crate) fn make_room_for(clients: u64, threads: usize, other_connections: usize) -> u64 {
    let reserved = reserved(threads, other_connections);
    let wanted = clients.saturating_add(reserved);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        // Beyond the hard limit, if this process may: as Redis does. Else up to it.
        let hard = limit.maximum.map(|maximum| maximum.max(wanted));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: hard }).is_err() {
            let soft = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: limit.maximum });
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    current.saturating_sub(reserved).min(clients)
}
