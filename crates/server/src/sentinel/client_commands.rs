//! Commands about a connection itself: AUTH, HELLO, CLIENT, PING, subscriptions. Refuses to know servers.

use super::command::{After, Cx};
use super::session::SUBSCRIPTIONS_MAX;
use engine::REDIS_VERSION;
use engine::args::is_word;
use engine::error::{BAD_NAME, CommandError, CommandResult, HELLO_NEEDS_AUTH, NO_PASSWORD_SET, WRONG_PASS};
use numbers::parse_i64;
use resp::{Protocol, Reply};
use std::time::Duration;

/// The handler of commands that only have subcommands: without one, their arity does not fit.
pub(super) fn unreachable(_: &mut Cx<'_>) -> CommandResult {
    Err(CommandError::Syntax)
}

pub(super) fn auth(cx: &mut Cx<'_>) -> CommandResult {
    let mut args = cx.args(1);
    let (user, password) = match (args.next(), args.next(), args.next()) {
        (Some(user), Some(password), None) => (user, password),
        (Some(_), None, _) if cx.room.engine.acl.default_needs_no_password() => return Err(NO_PASSWORD_SET),
        (Some(password), None, _) => (&b"default"[..], password),
        _ => return Err(CommandError::Syntax),
    };
    match cx.session.log_in(cx.room, user, password) {
        Ok(()) => cx.reply.ok(),
        Err(pause) => refuse_login(cx, pause),
    }
    Ok(())
}

fn refuse_login(cx: &mut Cx<'_>, pause: Duration) {
    cx.reply.error(&WRONG_PASS.to_string());
    cx.after = After::Pause(pause);
}

pub(super) fn hello(cx: &mut Cx<'_>) -> CommandResult {
    let mut args = cx.args(1);
    let version = match args.next().map(parse_i64) {
        None => None,
        Some(Some(2)) => Some(Protocol::Resp2),
        Some(Some(3)) => Some(Protocol::Resp3),
        Some(Some(_)) => return Err(CommandError::fixed("NOPROTO unsupported protocol version")),
        Some(None) => return Err(CommandError::fixed("ERR Protocol version is not an integer or out of range")),
    };
    let (mut credentials, mut name) = (None, None);
    while let Some(option) = args.next() {
        let wrong = || {
            let option = String::from_utf8_lossy(option);
            CommandError::said(format!("ERR Syntax error in HELLO option '{option}'"))
        };
        if is_word(option, "AUTH") {
            credentials = Some((args.next().ok_or_else(wrong)?, args.next().ok_or_else(wrong)?));
        } else if is_word(option, "SETNAME") {
            name = Some(valid_name(args.next().ok_or_else(wrong)?)?);
        } else {
            return Err(wrong());
        }
    }
    match credentials {
        Some((user, password)) => {
            if let Err(pause) = cx.session.log_in(cx.room, user, password) {
                refuse_login(cx, pause);
                return Ok(());
            }
        }
        None if cx.session.is_authenticated(cx.room) => {}
        None => return Err(HELLO_NEEDS_AUTH),
    }
    if let Some(name) = name {
        cx.session.name = name.to_vec();
    }
    if let Some(version) = version {
        cx.session.protocol = version;
        cx.reply.set_protocol(version);
    }
    let reply = &mut cx.reply;
    reply.map(6);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if cx.session.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(cx.session.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"sentinel");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

pub(super) fn ping(cx: &mut Cx<'_>) -> CommandResult {
    if cx.request.len() > 2 {
        return Err(CommandError::WrongArity("ping".into()));
    }
    let message = cx.args(1).next();
    if cx.session.is_listening() && cx.session.protocol == Protocol::Resp2 {
        cx.reply.array(2);
        cx.reply.bulk(b"pong");
        cx.reply.bulk(message.unwrap_or_default());
        return Ok(());
    }
    match message {
        Some(message) => cx.reply.bulk(message),
        None => cx.reply.simple("PONG"),
    }
    Ok(())
}

/// As on the port for clients. A Sentinel does not know it, which no client can need.
pub(super) fn quit(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.ok();
    cx.after = After::Close;
    Ok(())
}

/// As on the port for clients, like QUIT.
pub(super) fn reset(cx: &mut Cx<'_>) -> CommandResult {
    cx.session.reset();
    cx.reply.set_protocol(Protocol::Resp2);
    cx.reply.simple("RESET");
    Ok(())
}

// CLIENT.

pub(super) fn id(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.integer(cx.session.id as i64);
    Ok(())
}

pub(super) fn get_name(cx: &mut Cx<'_>) -> CommandResult {
    match cx.session.name.is_empty() {
        true => cx.reply.null(),
        false => cx.reply.bulk(&cx.session.name),
    }
    Ok(())
}

pub(super) fn set_name(cx: &mut Cx<'_>) -> CommandResult {
    cx.session.name = valid_name(cx.request.arg(2))?.to_vec();
    cx.reply.ok();
    Ok(())
}

/// Refuses a name with characters that would break a line of CLIENT INFO.
fn valid_name(name: &[u8]) -> Result<&[u8], CommandError> {
    match name.iter().all(u8::is_ascii_graphic) {
        true => Ok(name),
        false => Err(BAD_NAME),
    }
}

pub(super) fn set_info(cx: &mut Cx<'_>) -> CommandResult {
    let (option, value) = (cx.request.arg(2), cx.request.arg(3));
    let name = String::from_utf8_lossy(option).into_owned();
    let field = match () {
        () if is_word(option, "LIB-NAME") => &mut cx.session.library,
        () if is_word(option, "LIB-VER") => &mut cx.session.library_version,
        () => return Err(CommandError::said(format!("ERR Unrecognized option '{name}'"))),
    };
    if !value.iter().all(u8::is_ascii_graphic) {
        return Err(CommandError::said(format!("ERR {name} cannot contain spaces, newlines or special characters.")));
    }
    *field = value.to_vec();
    cx.reply.ok();
    Ok(())
}

pub(super) fn info(cx: &mut Cx<'_>) -> CommandResult {
    let session = &*cx.session;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = format!(
        "id={} addr={} laddr={} name={} flags={} db=0 sub={} psub={} ssub=0 multi=-1 cmd=client|info user={} redir=-1 \
         resp={} lib-name={} lib-ver={}\n",
        session.id,
        session.peer,
        session.local,
        text(&session.name),
        if session.is_listening() { "P" } else { "N" },
        session.channels.len(),
        session.patterns.len(),
        session.user_name(cx.room),
        if session.protocol == Protocol::Resp3 { 3 } else { 2 },
        text(&session.library),
        text(&session.library_version),
    );
    cx.reply.verbatim(&line);
    Ok(())
}

/// CLIENT NO-EVICT and NO-TOUCH: there is nothing to evict or to touch.
pub(super) fn on_or_off(cx: &mut Cx<'_>) -> CommandResult {
    if !is_word(cx.request.arg(2), "ON") && !is_word(cx.request.arg(2), "OFF") {
        return Err(CommandError::Syntax);
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn reply_on(cx: &mut Cx<'_>) -> CommandResult {
    if !is_word(cx.request.arg(2), "ON") {
        return Err(CommandError::fixed("ERR this port answers every request"));
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn help(cx: &mut Cx<'_>) -> CommandResult {
    let lines = [
        "CLIENT <subcommand> [<arg> ...]. Subcommands are:",
        "GETNAME, ID, INFO, NO-EVICT, NO-TOUCH, REPLY ON, SETINFO, SETNAME",
    ];
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.simple(line));
    Ok(())
}

// Subscriptions.

pub(super) fn subscribe(cx: &mut Cx<'_>) -> CommandResult {
    begin(cx, "subscribe", |cx| &mut cx.session.channels)
}

pub(super) fn psubscribe(cx: &mut Cx<'_>) -> CommandResult {
    begin(cx, "psubscribe", |cx| &mut cx.session.patterns)
}

pub(super) fn unsubscribe(cx: &mut Cx<'_>) -> CommandResult {
    end(cx, "unsubscribe", |cx| &mut cx.session.channels)
}

pub(super) fn punsubscribe(cx: &mut Cx<'_>) -> CommandResult {
    end(cx, "punsubscribe", |cx| &mut cx.session.patterns)
}

type List = for<'c, 'a> fn(&'c mut Cx<'a>) -> &'c mut Vec<Vec<u8>>;

fn begin(cx: &mut Cx<'_>, kind: &str, list: List) -> CommandResult {
    let names: Vec<&[u8]> = cx.args(1).collect();
    if cx.session.channels.len() + cx.session.patterns.len() + names.len() > SUBSCRIPTIONS_MAX {
        return Err(CommandError::said(format!(
            "ERR a client of this port listens to {SUBSCRIPTIONS_MAX} channels at most"
        )));
    }
    for name in names {
        let listened = list(cx);
        if !listened.iter().any(|known| known == name) {
            listened.push(name.to_vec());
        }
        confirm(cx, kind, Some(name));
    }
    Ok(())
}

fn end(cx: &mut Cx<'_>, kind: &str, list: List) -> CommandResult {
    let mut names: Vec<Vec<u8>> = cx.args(1).map(<[u8]>::to_vec).collect();
    if names.is_empty() {
        names = list(cx).clone();
    }
    if names.is_empty() {
        confirm(cx, kind, None);
    }
    for name in names {
        list(cx).retain(|known| *known != name);
        confirm(cx, kind, Some(&name));
    }
    Ok(())
}

fn confirm(cx: &mut Cx<'_>, kind: &str, name: Option<&[u8]>) {
    let count = cx.session.channels.len() + cx.session.patterns.len();
    let reply: &mut Reply<'_> = &mut cx.reply;
    reply.push(3);
    reply.bulk(kind.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}
