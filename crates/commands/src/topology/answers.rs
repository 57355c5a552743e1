//! The replies. There is no cluster and no module, and a follower reads a data directory, not another server's stream;
//! where Redis would start something else, an error says what is missing here.

use crate::shared::help;
use execution::args::is_word;
use execution::context::{After, ServerCx};
use execution::error::{CommandError, CommandResult};
use execution::persistence::{Replication, Role, RoleChange};
use execution::waiting::{Blocked, Event};
use numbers::parse_i64;

pub(super) fn no_cluster(_: &mut ServerCx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR This instance has cluster support disabled"))
}

pub(super) fn role(cx: &mut ServerCx<'_>) -> CommandResult {
    let Replication { role, sequence, .. } = cx.engine.persistence.replication();
    match role {
        Role::Writer { followers } => {
            cx.reply.array(3);
            cx.reply.bulk(b"master");
            cx.reply.integer(sequence as i64);
            cx.reply.array(followers.len());
            for follower in followers {
                cx.reply.array(3);
                cx.reply.bulk(follower.host.as_bytes());
                cx.reply.bulk(follower.port.to_string().as_bytes());
                cx.reply.bulk(follower.sequence.to_string().as_bytes());
            }
        }
        Role::Follower(writer) => {
            cx.reply.array(5);
            cx.reply.bulk(b"slave");
            cx.reply.bulk(writer.host.as_bytes());
            cx.reply.integer(writer.port.into());
            cx.reply.bulk(match (writer.is_loading, writer.is_connected) {
                (true, _) => b"sync",
                (false, true) => b"connected",
                (false, false) => b"connect",
            });
            cx.reply.integer(sequence as i64);
        }
    }
    Ok(())
}

pub(super) fn replicaof(cx: &mut ServerCx<'_>) -> CommandResult {
    let (host, port) = (cx.args.bytes()?, cx.args.bytes()?);
    if is_word(host, "NO") && is_word(port, "ONE") {
        return promote(cx);
    }
    if !parse_i64(port).is_some_and(|port| (0..=65_535).contains(&port)) {
        return Err(CommandError::fixed("ERR Invalid master port"));
    }
    no_replication(cx)
}

/// Answered when the promotion is done: then writes are accepted.
fn promote(cx: &mut ServerCx<'_>) -> CommandResult {
    if !matches!(cx.engine.persistence.replication().role, Role::Follower(_)) {
        cx.reply.ok();
        return Ok(());
    }
    let number = cx.engine.persistence.change_role(RoleChange::Promote).map_err(failed)?;
    match cx.worker.batch.is_atomic {
        true => cx.reply.ok(),
        false => cx.after = After::Block(Blocked { until_ms: None, event: Event::Role(number), silent: false }),
    }
    Ok(())
}

fn failed(reason: String) -> CommandError {
    CommandError::said(format!("ERR {reason}"))
}

pub(super) fn no_replication(_: &mut ServerCx<'_>) -> CommandResult {
    Err(CommandError::fixed(
        "ERR this server neither follows a Redis nor feeds one: holdfast --follow DIR follows the data directory of another \
         Holdfast",
    ))
}

/// REPLCONF: accepted without effect. A replica learns from PSYNC that it gets no data here.
pub(super) fn replconf(cx: &mut ServerCx<'_>) -> CommandResult {
    if !cx.args.left().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    while let Some(option) = cx.args.try_next() {
        let value = cx.args.bytes()?;
        if is_word(option, "LISTENING-PORT") {
            parse_i64(value).ok_or(CommandError::NotInteger)?;
        } else if !["IP-ADDRESS", "CAPA", "RDB-ONLY", "RDB-FILTER-ONLY"].iter().any(|known| is_word(option, known)) {
            let option = String::from_utf8_lossy(option);
            return Err(CommandError::said(format!("ERR Unrecognized REPLCONF option: {option}")));
        }
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn failover(cx: &mut ServerCx<'_>) -> CommandResult {
    let replication = cx.engine.persistence.replication();
    if cx.args.left() == 1 && cx.args.take_word("ABORT") {
        if !replication.hands_over {
            return Err(CommandError::fixed("ERR No failover in progress."));
        }
        cx.engine.persistence.change_role(RoleChange::AbortHandOver).map_err(failed)?;
        cx.reply.ok();
        return Ok(());
    }
    let (mut timeout_ms, mut to, mut force) = (None, None, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "TIMEOUT") && !cx.args.is_empty() && timeout_ms.is_none() {
            let timeout = cx.args.int()?;
            if timeout <= 0 {
                return Err(CommandError::fixed("ERR FAILOVER timeout must be greater than 0"));
            }
            timeout_ms = Some(timeout.cast_unsigned());
        } else if is_word(word, "TO") && cx.args.left() >= 2 && to.is_none() {
            let host = String::from_utf8_lossy(cx.args.bytes()?).into_owned();
            to = Some((host, u16::try_from(cx.args.int()?).unwrap_or(0)));
        } else if is_word(word, "FORCE") && !force {
            force = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if replication.hands_over {
        return Err(CommandError::fixed("ERR FAILOVER already in progress."));
    }
    let Role::Writer { followers } = replication.role else {
        return Err(CommandError::fixed("ERR FAILOVER is not valid when server is a replica."));
    };
    if followers.is_empty() {
        return Err(CommandError::fixed("ERR FAILOVER requires connected replicas."));
    }
    if force && (timeout_ms.is_none() || to.is_none()) {
        let text = "ERR FAILOVER with force option requires both a timeout and target HOST and IP to be set.";
        return Err(CommandError::fixed(text));
    }
    let is_meant = |(host, port): &(String, u16)| {
        followers.iter().any(|follower| follower.port == *port && (follower.host == *host || host == "localhost"))
    };
    if to.as_ref().is_some_and(|to| !is_meant(to)) {
        return Err(CommandError::fixed("ERR FAILOVER target HOST and PORT is not a replica."));
    }
    cx.engine.persistence.change_role(RoleChange::HandOver { to, timeout_ms, force }).map_err(failed)?;
    cx.reply.ok();
    Ok(())
}

pub(super) fn module_list(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.array(0);
    Ok(())
}

pub(super) fn no_modules(_: &mut ServerCx<'_>) -> CommandResult {
    Err(CommandError::fixed(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a local \
         connection, otherwise you need to set this option in the configuration file, and then restart the server.",
    ))
}

pub(super) fn module_help(cx: &mut ServerCx<'_>) -> CommandResult {
    let lines =
        ["LIST", "    Return the modules that are loaded: there are none.", "LOAD, LOADEX, UNLOAD", "    Refused."];
    help::reply(&mut cx.reply, "MODULE", &lines);
    Ok(())
}
