//! What each connection has sent last, kept for the case that the run fails. Also how a run ends early.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wire::{Reply, quote};

/// Shared by all threads of one round.
pub(crate) struct Record {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) requests: AtomicU64,
    /// The longest that a new connection has waited for its replies.
    waited_us: AtomicU64,
    /// For each row of the command table that was sent alone, whether it has ever been answered without an error.
    reached: Mutex<BTreeMap<String, bool>>,
    failure: Mutex<Option<String>>,
    lines: Vec<Mutex<VecDeque<Sent>>>,
}

struct Sent {
    session: u64,
    request: String,
    reply: Option<String>,
}

const KEPT: usize = 40;
const REQUEST_CHARS_MAX: usize = 600;
const REPLY_CHARS_MAX: usize = 100;

impl Record {
    pub(crate) fn new(connections: usize) -> Record {
        Record {
            stop: Arc::default(),
            requests: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            reached: Mutex::default(),
            failure: Mutex::new(None),
            lines: (0..connections).map(|_| Mutex::default()).collect(),
        }
    }

    pub(crate) fn sent(&self, connection: usize, session: u64, args: &[Vec<u8>]) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let words: Vec<_> = args.iter().take(60).map(|arg| quote(&arg[..arg.len().min(200)])).collect();
        let mut request = cut(&words.join(" "), REQUEST_CHARS_MAX);
        if args.len() > 60 || args.iter().any(|arg| arg.len() > 200) {
            let _ = write!(
                request,
                " ({} arguments, the longest of {} bytes)",
                args.len(),
                args.iter().map(Vec::len).max().unwrap_or(0)
            );
        }
        self.add(connection, Sent { session, request, reply: None });
    }

    /// Something that is no request: bytes that are no RESP, a hang-up.
    pub(crate) fn did(&self, connection: usize, session: u64, what: &str) {
        self.add(connection, Sent { session, request: format!("({what})"), reply: Some(String::new()) });
    }

    /// Replies come in the order of the requests.
    pub(crate) fn received(&self, connection: usize, reply: &Reply) {
        let mut line = lock(&self.lines[connection]);
        if let Some(oldest) = line.iter_mut().find(|sent| sent.reply.is_none()) {
            oldest.reply = Some(cut(&reply.excerpt(), REPLY_CHARS_MAX));
        }
    }

    /// The session is over, and what it has no reply to will have none.
    pub(crate) fn ended(&self, connection: usize, how: &str) {
        for sent in lock(&self.lines[connection]).iter_mut().filter(|sent| sent.reply.is_none()) {
            sent.reply = Some(format!("({how})"));
        }
    }

    fn add(&self, connection: usize, sent: Sent) {
        let mut line = lock(&self.lines[connection]);
        line.push_back(sent);
        if line.len() > KEPT {
            line.pop_front();
        }
    }

    pub(crate) fn reached(&self, row: String, well: bool) {
        *lock(&self.reached).entry(row).or_default() |= well;
    }

    pub(crate) fn take_reached(&self) -> BTreeMap<String, bool> {
        std::mem::take(&mut lock(&self.reached))
    }

    /// How long a new connection has waited.
    pub(crate) fn waited(&self, wait: Duration) {
        self.waited_us.fetch_max(wait.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        Duration::from_micros(self.waited_us.load(Ordering::Relaxed))
    }

    /// The first failure counts; the others follow from it.
    pub(crate) fn fail(&self, what: String) {
        lock(&self.failure).get_or_insert(what);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// The last requests of every connection, the newest last.
    pub(crate) fn last_requests(&self) -> String {
        let mut text = String::new();
        for (connection, line) in self.lines.iter().enumerate() {
            let _ = writeln!(text, "connection {connection}:");
            for Sent { session, request, reply } in lock(line).iter() {
                let reply = reply.as_deref().unwrap_or("(NO REPLY)");
                let _ = writeln!(text, "  [{session}] {request}  {reply}");
            }
        }
        text
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
