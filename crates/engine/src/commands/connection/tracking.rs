//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO: client-side caching. The state is in `clients::tracking`.

use crate::args::{Args, is_word};
use crate::clients::tracking::Mode;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::ServerCx;
use std::sync::Arc;

pub(super) fn tracking(cx: &mut ServerCx<'_>) -> CommandResult {
    let word = cx.args.bytes()?;
    let options = Options::take(&mut cx.args, |id| cx.engine.clients.get(id).is_some())?;
    if is_word(word, "ON") {
        start(cx, &options)?;
    } else if is_word(word, "OFF") {
        cx.engine.stop_tracking(cx.client);
    } else {
        return Err(CommandError::Syntax);
    }
    cx.reply.ok();
    Ok(())
}

/// What may follow ON or OFF.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<u64>,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn take(args: &mut Args<'a>, is_connected: impl Fn(u64) -> bool) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.try_next() {
            if is_word(word, "REDIRECT") && !args.is_empty() {
                if options.redirect.is_some() {
                    return Err(CommandError::fixed("ERR A client can only redirect to a single other client"));
                }
                let id = u64::try_from(args.int()?).ok().filter(|id| is_connected(*id));
                let id = id.ok_or(CommandError::fixed("ERR The client ID you want redirect to does not exist"))?;
                options.redirect = Some(id);
            } else if is_word(word, "BCAST") {
                options.broadcast = true;
            } else if is_word(word, "OPTIN") {
                options.opt_in = true;
            } else if is_word(word, "OPTOUT") {
                options.opt_out = true;
            } else if is_word(word, "NOLOOP") {
                options.no_loop = true;
            } else if is_word(word, "PREFIX") && !args.is_empty() {
                options.prefixes.push(args.bytes()?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// The mode that is asked for, if it may follow the one before.
    fn mode(&self, before: Option<Mode>) -> Result<Mode, CommandError> {
        if !self.broadcast && !self.prefixes.is_empty() {
            return Err(CommandError::fixed("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if before.is_some_and(|before| (before == Mode::Broadcast) != self.broadcast) {
            return Err(CommandError::fixed(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            ));
        }
        match (self.broadcast, self.opt_in, self.opt_out) {
            (true, false, false) => Ok(Mode::Broadcast),
            (true, ..) => Err(CommandError::fixed("ERR OPTIN and OPTOUT are not compatible with BCAST")),
            (_, true, true) => Err(CommandError::fixed("ERR You can't specify both OPTIN mode and OPTOUT mode")),
            (_, true, _) if before == Some(Mode::OptOut) => Err(OPT_SWITCHED),
            (_, _, true) if before == Some(Mode::OptIn) => Err(OPT_SWITCHED),
            (_, true, _) => Ok(Mode::OptIn),
            (_, _, true) => Ok(Mode::OptOut),
            _ => Ok(Mode::Read),
        }
    }
}

const OPT_SWITCHED: CommandError = CommandError::fixed(
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a \
     different mode.",
);

fn start(cx: &mut ServerCx<'_>, options: &Options<'_>) -> CommandResult {
    let mode = options.mode(cx.client.tracker.as_ref().map(|tracker| tracker.mode))?;
    check_overlaps(&options.prefixes, &cx.engine.tracking.prefixes_of(cx.client.id()))?;
    let prefixes = match mode {
        // Everything begins with nothing.
        Mode::Broadcast if options.prefixes.is_empty() => &[&b""[..]][..],
        _ => &options.prefixes,
    };
    let handle = cx.client.handle.clone();
    let tracker = cx.engine.tracking.start(handle, mode, options.no_loop, options.redirect, prefixes);
    cx.client.tracker = Some(tracker);
    Ok(())
}

/// A client gets one invalidation per key, so none of its prefixes may begin with another.
fn check_overlaps(given: &[&[u8]], existing: &[Arc<[u8]>]) -> CommandResult {
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    let refuse = |prefix: &[u8], kind: &str, other: &[u8]| {
        let (prefix, other) = (String::from_utf8_lossy(prefix), String::from_utf8_lossy(other));
        CommandError::said(format!(
            "ERR Prefix '{prefix}' overlaps with {kind} prefix '{other}'. Prefixes for a single client must not overlap."
        ))
    };
    for (at, prefix) in given.iter().enumerate() {
        if let Some(other) = existing.iter().find(|other| overlap(prefix, other)) {
            return Err(refuse(prefix, "an existing", other));
        }
        if let Some(other) = given[at + 1..].iter().find(|other| overlap(prefix, other)) {
            return Err(refuse(prefix, "another provided", other));
        }
    }
    Ok(())
}

pub(super) fn caching(cx: &mut ServerCx<'_>) -> CommandResult {
    let Some(tracker) = &cx.client.tracker else {
        return Err(CommandError::fixed(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let word = cx.args.bytes()?;
    let refusal = match tracker.mode {
        _ if !is_word(word, "YES") && !is_word(word, "NO") => Some(CommandError::Syntax),
        Mode::OptIn if is_word(word, "YES") => None,
        Mode::OptOut if is_word(word, "NO") => None,
        _ if is_word(word, "YES") => {
            Some(CommandError::fixed("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."))
        }
        _ => Some(CommandError::fixed("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")),
    };
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    cx.client.caching = true;
    cx.reply.ok();
    Ok(())
}

/// What GETREDIR replies without REDIRECT, and for a client that does not track.
const NO_REDIRECT: i64 = 0;
const NOT_TRACKING: i64 = -1;

pub(super) fn getredir(cx: &mut ServerCx<'_>) -> CommandResult {
    let redirect = redirection(cx);
    cx.reply.integer(redirect);
    Ok(())
}

fn redirection(cx: &ServerCx<'_>) -> i64 {
    let tracker = cx.client.tracker.as_ref();
    tracker.map_or(NOT_TRACKING, |tracker| tracker.redirect.map_or(NO_REDIRECT, |id| id as i64))
}

pub(super) fn trackinginfo(cx: &mut ServerCx<'_>) -> CommandResult {
    let caching = cx.client.caching;
    let flags: Vec<&str> = match &cx.client.tracker {
        None => vec!["off"],
        Some(tracker) => {
            let mut flags = vec!["on"];
            match tracker.mode {
                Mode::Read => {}
                Mode::Broadcast => flags.push("bcast"),
                Mode::OptIn if caching => flags.extend(["optin", "caching-yes"]),
                Mode::OptIn => flags.push("optin"),
                Mode::OptOut if caching => flags.extend(["optout", "caching-no"]),
                Mode::OptOut => flags.push("optout"),
            }
            flags.extend(tracker.no_loop.then_some("noloop"));
            flags.extend(tracker.is_redirect_broken().then_some("broken_redirect"));
            flags
        }
    };
    let (redirect, prefixes) = (redirection(cx), cx.engine.tracking.prefixes_of(cx.client.id()));
    cx.reply.map(3);
    cx.reply.bulk(b"flags");
    cx.reply.set(flags.len());
    flags.iter().for_each(|flag| cx.reply.bulk(flag.as_bytes()));
    cx.reply.bulk(b"redirect");
    cx.reply.integer(redirect);
    cx.reply.bulk(b"prefixes");
    cx.reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| cx.reply.bulk(prefix));
    Ok(())
}
