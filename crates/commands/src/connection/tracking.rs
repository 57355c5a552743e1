//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO: client-side caching. The state is in `clients::tracking`.

use execution::args::{Args, is_word};
use execution::caching;
use execution::clients::tracking::Mode;
use execution::clients::{Account, ClientHandle};
use execution::context::ServerCx;
use execution::error::{CommandError, CommandResult};
use std::sync::Arc;

/// True when a client is of the same user.
fn same_account(other: &ClientHandle, own: Option<&Arc<Account>>) -> bool {
    match own {
        Some(own) => other.is_of(own),
        None => other.account().is_none(),
    }
}

pub(super) fn tracking(cx: &mut ServerCx<'_>) -> CommandResult {
    let word = cx.args.bytes()?;
    // Messages to another user would be sent to who has not asked for them, and count among what that user takes.
    let own = cx.client.handle.account();
    let is_own = |id| cx.engine.clients.get(id).is_some_and(|other| same_account(&other, own.as_ref()));
    let options = Options::take(&mut cx.args, is_own)?;
    if is_word(word, "ON") {
        start(cx, &options)?;
    } else if is_word(word, "OFF") {
        caching::stop_tracking(cx.engine, cx.client);
        cx.client.settle_messages(&mut cx.reply);
    } else {
        return Err(CommandError::Syntax);
    }
    cx.reply.ok();
    Ok(())
}

/// The options after ON or OFF.
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

    /// The requested mode, if the client may switch to it.
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
        // Every name begins with the empty prefix.
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
    let Some(at) = first_overlap(given, existing) else { return Ok(()) };
    let prefix = given[at];
    if let Some(other) = existing.iter().find(|other| overlap(prefix, other)) {
        return Err(refuse(prefix, "an existing", other));
    }
    let other = given[at + 1..].iter().find(|other| overlap(prefix, other)).expect("no prefix before overlaps with it");
    Err(refuse(prefix, "another provided", other))
}

/// The place of the first given prefix that overlaps with another one. There may be very many: they are sorted, so that
/// the beginnings of a prefix come before it, one behind the other.
fn first_overlap(given: &[&[u8]], existing: &[Arc<[u8]>]) -> Option<usize> {
    let given = given.iter().enumerate().map(|(at, prefix)| (*prefix, at));
    let mut sorted: Vec<(&[u8], usize)> = given.chain(existing.iter().map(|prefix| (&**prefix, usize::MAX))).collect();
    sorted.sort_unstable();
    // The prefixes that the last one begins with, and itself.
    let mut beginnings: Vec<(&[u8], usize)> = Vec::new();
    let mut first = usize::MAX;
    for (prefix, at) in sorted {
        while beginnings.pop_if(|(beginning, _)| !prefix.starts_with(beginning)).is_some() {}
        if let Some((_, other)) = beginnings.last() {
            first = first.min(at).min(*other);
        }
        beginnings.push((prefix, at));
    }
    (first != usize::MAX).then_some(first)
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

/// The reply of GETREDIR without REDIRECT, and for a client that does not track.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap_of(given: &[&[u8]], existing: &[&[u8]]) -> Option<usize> {
        let existing: Vec<Arc<[u8]>> = existing.iter().map(|prefix| (*prefix).into()).collect();
        first_overlap(given, &existing)
    }

    #[test]
    fn the_first_prefix_that_overlaps_is_found() {
        assert_eq!(overlap_of(&[b"a", b"b"], &[b"c", b"d"]), None);
        assert_eq!(overlap_of(&[b"a", b"b"], &[b"c", b"bc"]), Some(1));
        assert_eq!(overlap_of(&[b"x", b"bc", b"ba", b"b"], &[]), Some(1));
        assert_eq!(overlap_of(&[b"x", b"y", b"x"], &[]), Some(0));
        assert_eq!(overlap_of(&[b"x", b"y"], &[b""]), Some(0));
        assert_eq!(overlap_of(&[], &[b"a"]), None);
    }

    #[test]
    fn it_is_the_one_that_a_look_at_all_pairs_finds() {
        let words: Vec<Vec<u8>> = (1..15_u8).map(|bits| format!("{bits:b}").into_bytes()).collect();
        for some in 0..1_u32 << words.len() {
            let chosen = |bit: usize| some & 1 << bit != 0;
            let chosen: Vec<&[u8]> = (0..words.len()).filter(|bit| chosen(*bit)).map(|bit| &*words[bit]).collect();
            let (existing, given) = chosen.split_at(chosen.len().min(1));
            let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
            let expected = (0..given.len()).find(|at| {
                let mut others = existing.iter().chain(&given[at + 1..]);
                others.any(|other| overlap(given[*at], other))
            });
            assert_eq!(overlap_of(given, existing), expected, "{given:?} {existing:?}");
        }
    }

    /// A look at all pairs would take minutes.
    #[test]
    fn very_many_prefixes_are_compared_with_their_neighbours() {
        let names: Vec<String> = (0..200_000).map(|number| format!("{number:06}")).collect();
        let mut given: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        assert_eq!(first_overlap(&given, &[]), None);
        given.push(b"199999:");
        assert_eq!(first_overlap(&given, &[]), Some(199_999));
    }
}
