//! Small parts of the engine's state, grouped by subject, without behaviour.

use crate::client::Client;
use crate::clients::ClientHandle;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::scripts::{Functions, LongScripts, ScriptThreads, Scripts};
use crate::waiting::keys::KeyWaiters;
use crate::waiting::records::RecordWaiters;
use crate::worker::Worker;
use keyspace::Locked;
use locks::{Mutex, rank};
use resp::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The longest batch, minus a margin for what the estimate leaves out: compressed values, stamped records, expired
/// keys.
pub const BATCH_BYTES_MAX: usize = 3 << 30;

/// Waiting clients.
#[derive(Default)]
pub struct Waiting {
    /// Those that wait for keys.
    pub keys: KeyWaiters,
    /// Those that wait for records of indexes.
    pub records: Arc<RecordWaiters>,
}

/// Scripts and functions, and the threads that run them.
#[derive(Default)]
pub struct Scripting {
    pub scripts: Scripts,
    pub functions: Functions,
    /// The threads on which long scripts run.
    pub threads: ScriptThreads,
    /// The long scripts that are running.
    pub long: LongScripts,
}

/// How other servers and clients identify this server.
pub struct Identity {
    /// Forty hexadecimal digits that identify this run of the server.
    pub run_id: String,
    /// The id of this server's history for replicas: the run id, unless DEBUG CHANGE-REPL-ID changed it.
    pub replication_id: Mutex<String, { rank::REPLICATION_ID }>,
    /// When the engine was created, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
}

impl Identity {
    pub fn new(run_id: String, started_ns: u64) -> Identity {
        Identity { replication_id: Mutex::new(run_id.clone()), run_id, started_ns }
    }
}

/// Switches of DEBUG.
pub struct DebugSwitches {
    /// SET-BATCH-BYTES-MAX: the longest batch of the journal.
    pub batch_bytes_max: AtomicUsize,
    /// SET-DISABLE-DENY-SCRIPTS: scripts may call commands that are flagged `noscript`.
    pub scripts_call_anything: AtomicBool,
    /// SET-ACTIVE-EXPIRE.
    pub active_expiry: AtomicBool,
}

impl Default for DebugSwitches {
    fn default() -> DebugSwitches {
        DebugSwitches {
            batch_bytes_max: AtomicUsize::new(BATCH_BYTES_MAX),
            scripts_call_anything: AtomicBool::new(false),
            active_expiry: AtomicBool::new(true),
        }
    }
}

/// Procedures that call themselves through others: a commit serves waiters, whose commands commit; a request that left
/// its thread is executed from its beginning. They are pointers, so that files do not import each other in a circle.
#[derive(Clone, Copy)]
pub struct Procedures {
    /// Serves the waiters of changed keys, as part of a commit.
    pub serve_ready: fn(&Engine, &mut Worker, &mut Locked<'_>),
    /// Executes a request.
    pub execute: fn(&Engine, &mut Worker, &mut Client, Request<'_>, &mut Vec<u8>) -> Flow,
    /// The line of a client in CLIENT LIST.
    pub describe_client: fn(&Engine, &ClientHandle) -> String,
}
