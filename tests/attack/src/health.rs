//! Asks a server whether it can be reached: a new connection each time, at a steady pace, as long as it is attacked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::record::Record;
use crate::talk::{Talk, Trouble, encode};

const PAUSE: Duration = Duration::from_millis(20);
/// How long connections may be refused or closed: as long as it takes to accept the others'.
const REFUSED_MAX: Duration = Duration::from_secs(3);

/// Errors that answer PING: a script runs long, the data is loaded, a password is set, `maxclients` is reached.
const ANSWERS: &[&str] = &["BUSY", "LOADING", "NOAUTH", "ERR max number of clients"];

/// Visit after visit until the round is over; fails it when one is not answered within `ping_max`. Clients pause the server
/// for less than a tenth of a second only, so a pause is no excuse, and neither is a script: it is what SCRIPT KILL is for.
pub(crate) fn watch(
    address: SocketAddr,
    ping_max: Duration,
    mut random: Random,
    record: &Record,
    is_over: &dyn Fn() -> bool,
) {
    let mut refused_since: Option<Instant> = None;
    while !is_over() && !record.is_stopped() {
        let began = Instant::now();
        match visit(address, ping_max, &mut random) {
            Ok(()) => {
                refused_since = None;
                record.waited(began.elapsed());
            }
            // Killed by an attacker, unless it stays so.
            Err(Trouble::Closed) => {
                if refused_since.get_or_insert(began).elapsed() > REFUSED_MAX {
                    return record.fail("the server refuses or closes every new connection".into());
                }
            }
            Err(Trouble::Stopped) => return,
            Err(Trouble::Wrong(what)) => {
                return record.fail(format!("a new connection, after {:?}: {what}", began.elapsed()));
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Connects, sends PING, and then what an operator would send next.
fn visit(address: SocketAddr, ping_max: Duration, random: &mut Random) -> Result<(), Trouble> {
    // The others stop when the run fails; this one waits for its reply all the same.
    let mut talk = Talk::open(address, &Arc::default()).map_err(|_| Trouble::Closed)?;
    talk.set_deadline(ping_max);
    let mut ask = |args: &[&str]| {
        talk.send(&encode(&[args]))?;
        talk.read().map_err(|trouble| match trouble {
            Trouble::Wrong(what) => Trouble::Wrong(format!("{}: {what}", args.join(" "))),
            other => other,
        })
    };
    let next: &[&str] = match ask(&["PING"])? {
        Reply::Simple(text) if text == b"PONG" => match random.one_in(8) {
            true => &["INFO"],
            false => return Ok(()),
        },
        Reply::Error(text) if text.starts_with(b"BUSY") => match random.below(8) {
            0 => &["SCRIPT", "KILL"],
            1 => &["FUNCTION", "KILL"],
            _ => return Ok(()),
        },
        Reply::Error(text) if ANSWERS.iter().any(|answer| text.starts_with(answer.as_bytes())) => return Ok(()),
        other => return Err(Trouble::Wrong(format!("PING was answered with {}", other.excerpt()))),
    };
    match ask(next)? {
        // Whatever there is to say: that no script runs, that it has written.
        Reply::Simple(_) | Reply::Bulk(_) | Reply::Verbatim { .. } | Reply::Error(_) => Ok(()),
        other => Err(Trouble::Wrong(format!("{} was answered with {}", next.join(" "), other.excerpt()))),
    }
}
