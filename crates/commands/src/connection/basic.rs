//! Commands about the connection itself. CLIENT is in `client`.

use crate::shared::version::REDIS_VERSION;
use execution::acl::Context;
use execution::acl::user::DEFAULT_USER;
use execution::args::is_word;
use execution::client::Client;
use execution::clients::ClientHandle;
use execution::context::{After, ServerCx};
use execution::departure;
use execution::error::{BAD_NAME, CommandError, CommandResult, HELLO_NEEDS_AUTH, NO_PASSWORD_SET, WRONG_PASS};
use execution::sessions;
use execution::waiting::{Blocked, Event};
use keyspace::DATABASES;
use numbers::parse_i64;
use resp::Protocol;
use std::sync::atomic::Ordering::Relaxed;

const WRONG_PASS_REPLY: &[u8] = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";

pub(super) fn ping(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 1 {
        return Err(CommandError::WrongArity("ping".into()));
    }
    let message = cx.args.try_next();
    if cx.client.is_only_listening() {
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

pub(super) fn echo(cx: &mut ServerCx<'_>) -> CommandResult {
    let message = cx.args.bytes()?;
    cx.reply.bulk(message);
    Ok(())
}

pub(super) fn quit(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.ok();
    cx.after = After::Close;
    Ok(())
}

pub(super) fn select(cx: &mut ServerCx<'_>) -> CommandResult {
    let index = i32::try_from(cx.args.int()?)
        .map_err(|_| CommandError::fixed("ERR value is out of range, value must between -2147483648 and 2147483647"))?;
    match usize::try_from(index) {
        Ok(db) if db < DATABASES => {
            cx.client.db = db;
            cx.client.handle.db.store(db as u8, Relaxed);
            cx.reply.ok();
            Ok(())
        }
        _ => Err(CommandError::fixed("ERR DB index is out of range")),
    }
}

pub(super) fn auth(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.worker.secrets.extend(1..cx.args.request().len());
    let (first, second) = (cx.args.bytes()?, cx.args.try_next());
    cx.args.finish()?;
    let (user, password) = match second {
        Some(password) => (first, password),
        None if cx.engine.acl.default_needs_no_password() => return Err(NO_PASSWORD_SET),
        None => (DEFAULT_USER.as_bytes(), first),
    };
    pass_login(cx)?;
    if log_in(cx, user, password)? {
        cx.reply.ok();
        return Ok(());
    }
    refuse_login(cx)
}

/// The error for a wrong password, later each time. Only this connection waits for it.
fn refuse_login(cx: &mut ServerCx<'_>) -> CommandResult {
    if !may_wait(cx) {
        return Err(WRONG_PASS);
    }
    let until_ms = Some(cx.now_ms + delay_ms(&cx.client.handle));
    cx.after = After::Block(Blocked { until_ms, event: Event::Never(WRONG_PASS_REPLY), silent: false });
    Ok(())
}

/// Refuses another user where what the client has begun belongs to the one that it is.
fn pass_login(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.client.interactive.is_some() {
        return Err(CommandError::fixed(
            "ERR the user cannot change in a transaction: TXN.COMMIT or TXN.ROLLBACK first",
        ));
    }
    match sessions::attachments::is_attached(cx.engine, cx.worker, cx.client) {
        true => Err(CommandError::fixed("ERR the client is attached to a session of its user: DETACH first")),
        false => Ok(()),
    }
}

/// Makes the client that user, if the password is right. A wrong one is counted and logged. An error if the user has as
/// many clients as it may have.
///
/// In a transaction the error for a wrong one cannot be late. So there is only one guess in that time; outside of the
/// transaction a right password is accepted at once.
fn log_in(cx: &mut ServerCx<'_>, name: &[u8], password: &[u8]) -> Result<bool, CommandError> {
    let engine = cx.engine;
    if !may_wait(cx) && cx.now_ms < cx.client.no_guess_until_ms {
        return Err(CommandError::fixed(
            "ERR a password was wrong in a transaction of this connection just now: AUTH outside of a transaction",
        ));
    }
    match engine.acl.authenticate(name, password) {
        Some(user) => {
            cx.client.become_user(user)?;
            cx.client.handle.wrong_passwords.store(0, Relaxed);
            Ok(true)
        }
        None => {
            cx.client.handle.wrong_passwords.fetch_add(1, Relaxed);
            if !may_wait(cx) {
                cx.client.no_guess_until_ms = cx.now_ms + delay_ms(&cx.client.handle);
            }
            let context = if cx.client.transaction.is_some() { Context::Multi } else { Context::TopLevel };
            let (line, len_max) =
                ((engine.procedures.describe_client)(engine, &cx.client.handle), engine.settings.acllog_max_len());
            engine.acl.note_wrong_password(context, name, line, cx.now_ms, len_max as usize);
            Ok(false)
        }
    }
}

/// How long the error for a wrong password takes: longer each time, on the same connection.
fn delay_ms(handle: &ClientHandle) -> u64 {
    const FIRST_MS: u64 = 10;
    const DOUBLED_MAX: u32 = 7;
    FIRST_MS << handle.wrong_passwords.load(Relaxed).saturating_sub(1).min(DOUBLED_MAX)
}

/// False in a transaction or a script.
fn may_wait(cx: &ServerCx<'_>) -> bool {
    cx.client.transaction.is_none()
        && cx.client.interactive.is_none()
        && !cx.worker.batch.is_atomic
        && !cx.worker.in_script
}

pub(super) fn hello(cx: &mut ServerCx<'_>) -> CommandResult {
    // Before anything can be wrong: a request that is refused is shown too.
    let request = cx.args.request();
    for at in (1..request.len()).filter(|at| is_word(request.arg(*at), "AUTH")) {
        cx.worker.secrets.extend([at + 1, at + 2]);
    }
    let version = match cx.args.try_next() {
        None => None,
        Some(version) => Some(protocol(version)?),
    };
    let (mut credentials, mut name) = (None, None);
    while let Some(option) = cx.args.try_next() {
        if is_word(option, "AUTH") && cx.args.left() >= 2 {
            credentials = Some((cx.args.bytes()?, cx.args.bytes()?));
        } else if is_word(option, "SETNAME") && !cx.args.is_empty() {
            name = Some(valid_name(cx.args.bytes()?)?);
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(CommandError::said(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if version == Some(Protocol::Resp2) && sessions::attachments::is_attached(cx.engine, cx.worker, cx.client) {
        return Err(CommandError::fixed(
            "ERR the client is attached to a session, whose requests need RESP3: DETACH first",
        ));
    }
    match credentials {
        Some((user, password)) => {
            pass_login(cx)?;
            if !log_in(cx, user, password)? {
                return refuse_login(cx);
            }
        }
        None if cx.client.authenticated || cx.engine.acl.default_needs_no_password() => {}
        None => return Err(HELLO_NEEDS_AUTH),
    }
    if let Some(name) = name {
        set_name(cx.client, name);
    }
    if let Some(version) = version {
        cx.client.protocol = version;
        cx.client.handle.resp.store(version_number(version), Relaxed);
        cx.client.settle_messages(&mut cx.reply);
        cx.reply.set_protocol(version);
    }
    describe_server(cx);
    Ok(())
}

fn protocol(version: &[u8]) -> Result<Protocol, CommandError> {
    match parse_i64(version) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(CommandError::fixed("NOPROTO unsupported protocol version")),
        None => Err(CommandError::fixed("ERR Protocol version is not an integer or out of range")),
    }
}

fn version_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    }
}

fn describe_server(cx: &mut ServerCx<'_>) {
    let role = if cx.engine.restrictions.is_following() { "replica" } else { "master" };
    let reply = &mut cx.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(i64::from(version_number(cx.client.protocol)));
    reply.bulk(b"id");
    reply.integer(cx.client.id() as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(role.as_bytes());
    reply.bulk(b"modules");
    reply.array(0);
}

/// Refuses a name with characters that would break a line of CLIENT LIST.
pub(super) fn valid_name(name: &[u8]) -> Result<&[u8], CommandError> {
    if is_label(name) { Ok(name) } else { Err(BAD_NAME) }
}

/// True when the text has only printable characters and no space.
pub(super) fn is_label(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

pub(super) fn set_name(client: &Client, name: &[u8]) {
    client.handle.set_labels(|labels| labels.name = name.into());
}

pub(super) fn reset(cx: &mut ServerCx<'_>) -> CommandResult {
    let acl = &cx.engine.acl;
    // First: a client that cannot be the default user stays who it is.
    cx.client.begin_as_default(acl)?;
    if !acl.default_needs_no_password() {
        cx.client.handle.leave();
    }
    if cx.client.monitoring {
        cx.engine.monitors.remove(cx.client.id());
    }
    departure::forget(cx.engine, cx.client);
    cx.client.reset(acl.default_needs_no_password());
    cx.client.follow_limits(acl);
    cx.client.settle_messages(&mut cx.reply);
    cx.reply.simple("RESET");
    Ok(())
}
