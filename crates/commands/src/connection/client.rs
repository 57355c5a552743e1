//! CLIENT: names, lists, limits and closes connections.

use super::basic::{is_label, set_name, valid_name};
use execution::acl::user::DEFAULT_USER;
use execution::args::{Args, is_word};
use execution::client::ReplyMode;
use execution::clients::pause::PauseMode;
use execution::clients::tracking::{Mode, Tracker};
use execution::clients::{ClientHandle, Labels, Peer, Unblock};
use execution::command::registry;
use execution::context::{After, ServerCx};
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::settings::AppendFsync;
use numbers::parse_i64;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn id(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(cx.client.id() as i64);
    Ok(())
}

pub(super) fn getname(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.client.handle.name();
    if name.is_empty() {
        cx.reply.null()
    } else {
        cx.reply.bulk(&name)
    }
    Ok(())
}

pub(super) fn setname(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = valid_name(cx.args.bytes()?)?;
    set_name(cx.client, name);
    cx.reply.ok();
    Ok(())
}

pub(super) fn setinfo(cx: &mut ServerCx<'_>) -> CommandResult {
    let (option, value) = (cx.args.bytes()?, cx.args.bytes()?);
    let (is_name, is_version) = (is_word(option, "LIB-NAME"), is_word(option, "LIB-VER"));
    if !is_name && !is_version {
        return Err(CommandError::said(format!("ERR Unrecognized option '{}'", shown(option))));
    }
    if !is_label(value) {
        let option = shown(option);
        return Err(CommandError::said(format!("ERR {option} cannot contain spaces, newlines or special characters.")));
    }
    cx.client.handle.set_labels(|labels| match is_name {
        true => labels.library = value.into(),
        false => labels.library_version = value.into(),
    });
    cx.reply.ok();
    Ok(())
}

/// CLIENT DURABILITY: `appendfsync` for this connection only.
pub(super) fn durability(cx: &mut ServerCx<'_>) -> CommandResult {
    let word = cx.args.bytes()?;
    let policies = [
        ("ALWAYS", Some(AppendFsync::Always)),
        ("EVERYSEC", Some(AppendFsync::Everysec)),
        ("NO", Some(AppendFsync::No)),
        ("DEFAULT", None),
    ];
    let Some((_, policy)) = policies.iter().find(|(name, _)| is_word(word, name)) else {
        let word = shown(word);
        return Err(CommandError::said(format!(
            "ERR '{word}' is no durability: use ALWAYS, EVERYSEC, NO, or DEFAULT for what appendfsync says"
        )));
    };
    if *policy == Some(AppendFsync::Always) && cx.engine.restrictions.is_following() {
        // Perhaps it was the writer when the client connected: the client looks for the new one.
        cx.engine.restrictions.pass_write()?;
    }
    if *policy == Some(AppendFsync::Always) && !cx.engine.persistence.state().promises_durability() {
        return Err(CommandError::fixed("ERR there is no journal to write to: CONFIG SET appendonly yes first"));
    }
    if *policy == Some(AppendFsync::Always) && cx.engine.persistence.state().hides_unpersisted() {
        cx.engine.restrictions.pass_write()?;
    }
    cx.client.durability = *policy;
    cx.reply.ok();
    Ok(())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The type of a client, as in CLIENT LIST TYPE.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It runs commands, possibly MONITOR.
    Normal,
    Subscriber,
    Replica,
    Primary,
}

impl Purpose {
    fn parse(name: &[u8]) -> Result<Purpose, CommandError> {
        let names = [
            ("normal", Purpose::Normal),
            ("slave", Purpose::Replica),
            ("replica", Purpose::Replica),
            ("pubsub", Purpose::Subscriber),
            ("master", Purpose::Primary),
        ];
        let found = names.iter().find(|(word, _)| is_word(name, word));
        let unknown = || CommandError::said(format!("ERR Unknown client type '{}'", shown(name)));
        found.map(|(_, purpose)| *purpose).ok_or_else(unknown)
    }

    fn of(handle: &ClientHandle) -> Purpose {
        match handle.peer {
            Peer::Replica => Purpose::Replica,
            Peer::Primary => Purpose::Primary,
            Peer::Client if handle.is_subscriber() => Purpose::Subscriber,
            Peer::Client => Purpose::Normal,
        }
    }
}

pub(super) fn list(cx: &mut ServerCx<'_>) -> CommandResult {
    let clients = &cx.engine.clients;
    let listed = if cx.args.is_empty() {
        clients.all()
    } else if cx.args.left() == 2 && cx.args.take_word("TYPE") {
        let purpose = Purpose::parse(cx.args.bytes()?)?;
        clients.all().into_iter().filter(|handle| Purpose::of(handle) == purpose).collect()
    } else if cx.args.left() > 1 && cx.args.take_word("ID") {
        let ids: Option<Vec<i64>> = cx.args.rest().map(parse_i64).collect();
        let ids = ids.ok_or(CommandError::fixed("ERR Invalid client ID"))?;
        ids.iter().filter_map(|id| clients.get(u64::try_from(*id).ok()?)).collect()
    } else {
        return Err(CommandError::Syntax);
    };
    let mut text = String::new();
    for handle in listed {
        describe(cx.engine, &handle, cx.now_ms, &mut text);
    }
    cx.reply.verbatim(&text);
    Ok(())
}

pub(super) fn info(cx: &mut ServerCx<'_>) -> CommandResult {
    let mut text = String::new();
    describe(cx.engine, &cx.client.handle, cx.now_ms, &mut text);
    cx.reply.verbatim(&text);
    Ok(())
}

/// Writes one line of CLIENT LIST. An idle client owns no buffers, a short request is read into its worker's, and
/// arguments are never copied out of them: that is why some of Redis's figures are 0 here. All pending output is in
/// `omem`.
/// The line of a client in CLIENT LIST.
pub fn describe_client(engine: &Engine, handle: &ClientHandle) -> String {
    let mut line = String::new();
    describe(engine, handle, engine.clock.unix_us() / 1000, &mut line);
    line.truncate(line.trim_end().len());
    line
}

fn describe(engine: &Engine, handle: &ClientHandle, now_ms: u64, out: &mut String) {
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

fn shown_user(labels: &Labels) -> String {
    match labels.user.is_empty() {
        true => DEFAULT_USER.to_owned(),
        false => shown(&labels.user),
    }
}

fn flags(handle: &ClientHandle, tracker: Option<&Tracker>) -> String {
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
    ];
    let letters: String = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
    if letters.is_empty() { "N".into() } else { letters }
}

/// Which clients CLIENT KILL closes: those that match every filter that is set.
struct Filter<'a> {
    id: Option<u64>,
    purpose: Option<Purpose>,
    user: Option<&'a [u8]>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    age_min_s: u64,
    skip_me: bool,
}

impl<'a> Filter<'a> {
    fn parse(engine: &Engine, args: &mut Args<'a>) -> Result<Filter<'a>, CommandError> {
        let mut filter = Filter {
            id: None,
            purpose: None,
            user: None,
            address: None,
            local_address: None,
            age_min_s: 0,
            skip_me: true,
        };
        while let Some(option) = args.try_next() {
            let value = args.bytes()?;
            if is_word(option, "ID") {
                filter.id = Some(positive(value).ok_or(CommandError::fixed("ERR client-id should be greater than 0"))?);
            } else if is_word(option, "MAXAGE") {
                filter.age_min_s = age(value)?;
            } else if is_word(option, "TYPE") {
                filter.purpose = Some(Purpose::parse(value)?);
            } else if is_word(option, "ADDR") {
                filter.address = Some(value);
            } else if is_word(option, "LADDR") {
                filter.local_address = Some(value);
            } else if is_word(option, "USER") {
                if engine.acl.find(value).is_none() {
                    return Err(CommandError::said(format!("ERR No such user '{}'", shown(value))));
                }
                filter.user = Some(value);
            } else if is_word(option, "SKIPME") {
                filter.skip_me = yes_or_no(value, "YES", "NO")?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(filter)
    }

    fn passes(&self, handle: &ClientHandle, now_ms: u64) -> bool {
        self.id.is_none_or(|id| handle.id == id)
            && self.purpose.is_none_or(|purpose| Purpose::of(handle) == purpose)
            && self.user.is_none_or(|user| shown_user(&handle.labels()).as_bytes() == user)
            && self.address.is_none_or(|address| handle.address.as_bytes() == address)
            && self.local_address.is_none_or(|address| handle.local_address.as_bytes() == address)
            && now_ms.saturating_sub(handle.created_ms) / 1000 >= self.age_min_s
    }
}

fn positive(text: &[u8]) -> Option<u64> {
    parse_i64(text).filter(|number| *number > 0).map(|number| number as u64)
}

fn age(text: &[u8]) -> Result<u64, CommandError> {
    if parse_i64(text).is_none() {
        return Err(CommandError::fixed("ERR maxage is not an integer or out of range"));
    }
    positive(text).ok_or(CommandError::fixed("ERR maxage should be greater than 0"))
}

fn yes_or_no(word: &[u8], yes: &str, no: &str) -> Result<bool, CommandError> {
    match is_word(word, yes) {
        true => Ok(true),
        false if is_word(word, no) => Ok(false),
        false => Err(CommandError::Syntax),
    }
}

pub(super) fn kill(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 1 {
        let filter = Filter::parse(cx.engine, &mut cx.args)?;
        let killed = kill_all(cx, |handle, now_ms| filter.passes(handle, now_ms), filter.skip_me);
        cx.reply.integer(killed as i64);
        return Ok(());
    }
    // The old form: an address, which may be that of the caller.
    let address = cx.args.bytes()?;
    if kill_all(cx, |handle, _| handle.address.as_bytes() == address, false) == 0 {
        return Err(CommandError::fixed("ERR No such client"));
    }
    cx.reply.ok();
    Ok(())
}

/// Closes all clients for which `chosen` is true; the caller's own connection only after the reply.
fn kill_all(cx: &mut ServerCx<'_>, chosen: impl Fn(&ClientHandle, u64) -> bool, skip_me: bool) -> usize {
    let mut killed = 0;
    for handle in cx.engine.clients.all() {
        let is_me = handle.id == cx.client.id();
        if is_me && skip_me || !chosen(&handle, cx.now_ms) {
            continue;
        }
        killed += 1;
        match is_me {
            true => cx.after = After::Close,
            false => cx.engine.clients.kill(&handle),
        }
    }
    killed
}

pub(super) fn pause(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 2 {
        return Err(wrong_arguments(cx));
    }
    let (timeout_ms, mode) = (cx.args.bytes()?, cx.args.try_next());
    let mode = match mode {
        None => PauseMode::All,
        Some(mode) if is_word(mode, "ALL") => PauseMode::All,
        Some(mode) if is_word(mode, "WRITE") => PauseMode::Writes,
        Some(_) => return Err(CommandError::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms =
        parse_i64(timeout_ms).ok_or(CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout_ms = u64::try_from(timeout_ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))?;
    // As in Redis, whose pauses end at a point in unix time.
    if i64::try_from(cx.now_ms + timeout_ms).is_err() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    let now_ms = cx.worker.monotonic_ms();
    cx.engine.pause.begin(now_ms, now_ms + timeout_ms, mode);
    cx.reply.ok();
    Ok(())
}

pub(super) fn unpause(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.pause.end();
    cx.reply.ok();
    Ok(())
}

/// The error for too many arguments of a subcommand with one optional last argument, which an arity cannot express.
fn wrong_arguments(cx: &ServerCx<'_>) -> CommandError {
    let subcommand = shown(cx.args.request().arg(1));
    CommandError::said(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try CLIENT HELP."
    ))
}

pub(super) fn no_evict(cx: &mut ServerCx<'_>) -> CommandResult {
    let on = yes_or_no(cx.args.bytes()?, "ON", "OFF")?;
    cx.client.no_evict = on;
    cx.client.handle.no_evict.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

pub(super) fn no_touch(cx: &mut ServerCx<'_>) -> CommandResult {
    let on = yes_or_no(cx.args.bytes()?, "ON", "OFF")?;
    cx.client.no_touch = on;
    cx.client.handle.no_touch.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// CLIENT REPLY. OFF and SKIP themselves get no reply.
pub(super) fn reply(cx: &mut ServerCx<'_>) -> CommandResult {
    let mode = cx.args.bytes()?;
    if is_word(mode, "ON") {
        cx.client.reply_mode = ReplyMode::On;
        cx.reply.ok();
    } else if is_word(mode, "OFF") {
        cx.client.reply_mode = ReplyMode::Off;
    } else if is_word(mode, "SKIP") {
        if cx.client.reply_mode != ReplyMode::Off {
            cx.client.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

pub(super) fn unblock(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 2 {
        return Err(wrong_arguments(cx));
    }
    let (id, how) = (cx.args.bytes()?, cx.args.try_next());
    let how = match how {
        None => Unblock::Timeout,
        Some(how) if is_word(how, "TIMEOUT") => Unblock::Timeout,
        Some(how) if is_word(how, "ERROR") => Unblock::Error,
        Some(_) => return Err(CommandError::fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let id = parse_i64(id).ok_or(CommandError::NotInteger)?;
    let handle = u64::try_from(id).ok().and_then(|id| cx.engine.clients.get(id));
    cx.reply.integer(i64::from(handle.is_some_and(|handle| handle.unblock(how))));
    Ok(())
}
