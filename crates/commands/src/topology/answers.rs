//! The replies. There is no cluster, no replica and no module; where Redis would start something, an error says what is
//! missing here.

use crate::shared::help;
use execution::args::is_word;
use execution::context::ServerCx;
use execution::error::{CommandError, CommandResult};
use numbers::parse_i64;

pub(super) fn no_cluster(_: &mut ServerCx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR This instance has cluster support disabled"))
}

pub(super) fn role(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.array(3);
    cx.reply.bulk(b"master");
    cx.reply.integer(0);
    cx.reply.array(0);
    Ok(())
}

pub(super) fn replicaof(cx: &mut ServerCx<'_>) -> CommandResult {
    let (host, port) = (cx.args.bytes()?, cx.args.bytes()?);
    if is_word(host, "NO") && is_word(port, "ONE") {
        cx.reply.ok();
        return Ok(());
    }
    if !parse_i64(port).is_some_and(|port| (0..=65_535).contains(&port)) {
        return Err(CommandError::fixed("ERR Invalid master port"));
    }
    no_replication(cx)
}

pub(super) fn no_replication(_: &mut ServerCx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR this server does not replicate: it neither follows a Redis nor feeds one"))
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
    if cx.args.left() == 1 && cx.args.take_word("ABORT") {
        return Err(CommandError::fixed("ERR No failover in progress."));
    }
    let (mut timeout, mut target, mut force) = (None, false, false);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "TIMEOUT") && !cx.args.is_empty() && timeout.is_none() {
            timeout = Some(cx.args.int()?);
            if timeout <= Some(0) {
                return Err(CommandError::fixed("ERR FAILOVER timeout must be greater than 0"));
            }
        } else if is_word(word, "TO") && cx.args.left() >= 2 && !target {
            cx.args.bytes()?;
            cx.args.int()?;
            target = true;
        } else if is_word(word, "FORCE") && !force {
            force = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Err(CommandError::fixed("ERR FAILOVER requires connected replicas."))
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
