//! What CLIENT LIST says of a client: its line, its type, its flags. Refuses to know which clients are asked for.

use execution::acl::user::DEFAULT_USER;
use execution::args::is_word;
use execution::clients::tracking::{Mode, Tracker};
use execution::clients::{ClientHandle, Labels, Peer};
use execution::command::registry;
use execution::engine::Engine;
use execution::error::CommandError;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// The line of a client in CLIENT LIST.
pub fn describe_client(engine: &Engine, handle: &ClientHandle) -> String {
    let mut line = String::new();
    describe(engine, handle, engine.clock.unix_us() / 1000, &mut line);
    line.truncate(line.trim_end().len());
    line
}

/// Writes one line of CLIENT LIST. An idle client owns no buffers, a short request is read into its worker's, and
/// arguments are never copied out of them: that is why some of Redis's figures are 0 here. All pending output is in
/// `omem`.
pub(super) fn describe(engine: &Engine, handle: &ClientHandle, now_ms: u64, out: &mut String) {
    let labels = handle.labels();
    let tracker = engine.tracking.of(handle.id);
    let redirect = tracker.as_ref().map_or(-1, |tracker| tracker.redirect.map_or(0, |id| id as i64));
    let (unsent_bytes, unsent_buffers) = handle.unsent();
    let reply_bytes = handle.output_bytes.load(Relaxed);
    let (query_bytes, buffer_bytes) = handle.input_bytes();
    let last_command = (handle.last_command.load(Relaxed) as usize).checked_sub(1);
    let fields: [(&str, &dyn std::fmt::Display); 31] = [
        ("id", &handle.id),
        ("addr", &handle.address),
        ("laddr", &handle.local_address),
        ("fd", &handle.fd),
        ("name", &shown(&labels.name)),
        ("age", &(now_ms.saturating_sub(handle.created_ms) / 1000)),
        ("idle", &handle.idle_s(engine.clock.monotonic_ns())),
        ("flags", &flags(handle, tracker.as_deref())),
        ("db", &handle.db.load(Relaxed)),
        ("sub", &handle.subscriptions[0].load(Relaxed)),
        ("psub", &handle.subscriptions[1].load(Relaxed)),
        ("ssub", &handle.subscriptions[2].load(Relaxed)),
        ("multi", &handle.queued.load(Relaxed)),
        ("qbuf", &query_bytes),
        ("qbuf-free", &buffer_bytes.saturating_sub(query_bytes)),
        ("argv-mem", &handle.blocked_bytes.load(Relaxed)),
        ("multi-mem", &handle.queued_bytes.load(Relaxed)),
        // A connection owns a buffer for replies only while some are unsent, so its size is also its peak.
        ("rbs", &reply_bytes),
        ("rbp", &reply_bytes),
        ("obl", &0),
        ("oll", &unsent_buffers),
        ("omem", &unsent_bytes),
        ("tot-mem", &handle.memory_bytes()),
        ("events", &if reply_bytes > 0 { "rw" } else { "r" }),
        ("cmd", &last_command.map_or("NULL", |index| &registry().rows()[index].full_name)),
        ("user", &shown_user(&labels)),
        ("redir", &redirect),
        ("resp", &handle.resp.load(Relaxed)),
        ("lib-name", &shown(&labels.library)),
        ("lib-ver", &shown(&labels.library_version)),
        // Fields of newer versions of Redis are at the end: programs that parse the line of 7.0 by position still work.
        ("watch", &handle.watching.load(Relaxed)),
    ];
    for (at, (name, value)) in fields.iter().enumerate() {
        let space = if at == 0 { "" } else { " " };
        let _ = write!(out, "{space}{name}={value}");
    }
    out.push('\n');
}

pub(super) fn shown_user(labels: &Labels) -> String {
    match labels.user.is_empty() {
        true => DEFAULT_USER.to_owned(),
        false => shown(&labels.user),
    }
}

/// The letters that say what a client is and does.
pub(super) fn flags(handle: &ClientHandle, tracker: Option<&Tracker>) -> String {
    let flags = [
        (handle.peer == Peer::Replica, 'S'),
        (handle.monitoring.load(Relaxed), 'O'),
        (handle.peer == Peer::Primary, 'M'),
        (handle.is_subscriber(), 'P'),
        (handle.queued.load(Relaxed) >= 0, 'x'),
        (handle.is_waiting(), 'b'),
        (tracker.is_some(), 't'),
        (tracker.is_some_and(Tracker::is_redirect_broken), 'R'),
        (tracker.is_some_and(|tracker| tracker.mode == Mode::Broadcast), 'B'),
        (handle.no_evict.load(Relaxed), 'e'),
        (handle.no_touch.load(Relaxed), 'T'),
        (handle.is_import_source.load(Relaxed), 'I'),
    ];
    let letters: String = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
    if letters.is_empty() { "N".into() } else { letters }
}

/// The type of a client, as in CLIENT LIST TYPE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It runs commands, possibly MONITOR.
    Normal,
    Subscriber,
    Replica,
    Primary,
}

impl Purpose {
    pub(super) fn parse(name: &[u8]) -> Result<Purpose, CommandError> {
        let names = [
            ("normal", Purpose::Normal),
            ("slave", Purpose::Replica),
            ("replica", Purpose::Replica),
            ("pubsub", Purpose::Subscriber),
            ("master", Purpose::Primary),
            ("primary", Purpose::Primary),
        ];
        let found = names.iter().find(|(word, _)| is_word(name, word));
        let unknown = || CommandError::said(format!("ERR Unknown client type '{}'", shown(name)));
        found.map(|(_, purpose)| *purpose).ok_or_else(unknown)
    }

    pub(super) fn of(handle: &ClientHandle) -> Purpose {
        match handle.peer {
            Peer::Replica => Purpose::Replica,
            Peer::Primary => Purpose::Primary,
            Peer::Client if handle.is_subscriber() => Purpose::Subscriber,
            Peer::Client => Purpose::Normal,
        }
    }
}

pub(super) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
