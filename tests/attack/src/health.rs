//! Asks a server whether it lives, on a connection of its own, as long as it is attacked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wire::Reply;

use crate::record::Record;
use crate::talk::{Talk, Trouble, encode};

const PAUSE: Duration = Duration::from_millis(20);
/// How long connections may be refused: as long as it takes to accept the others'.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// PING after PING until the round is over; fails it when one is not answered. Clients pause the server for less than a
/// tenth of a second only, so a pause is no excuse.
pub(crate) fn watch(address: SocketAddr, ping_max: Duration, record: &Record, is_over: &dyn Fn() -> bool) {
    // The others stop when the run fails; this one waits for its reply all the same.
    let never = Arc::default();
    let mut talk = None;
    let mut refused_since: Option<Instant> = None;
    while !is_over() && !record.is_stopped() {
        let open = match talk.take() {
            Some(open) => Ok(open),
            None => Talk::open(address, &never),
        };
        let Ok(mut open) = open else {
            if refused_since.get_or_insert_with(Instant::now).elapsed() > CONNECT_MAX {
                return record.fail("the server takes no connections".into());
            }
            thread::sleep(PAUSE);
            continue;
        };
        open.set_deadline(ping_max);
        let reply = open.send(&encode(&[&["PING"]])).and_then(|()| open.read());
        match reply {
            // BUSY is an answer too.
            Ok(Reply::Simple(_) | Reply::Error(_)) => {
                refused_since = None;
                talk = Some(open);
            }
            Ok(other) => return record.fail(format!("PING was answered with {other}")),
            // Killed by an attacker, unless it stays so.
            Err(Trouble::Closed) => {
                if refused_since.get_or_insert_with(Instant::now).elapsed() > CONNECT_MAX {
                    return record.fail("the server closes every connection".into());
                }
            }
            Err(Trouble::Stopped) => return,
            Err(Trouble::Wrong(_)) => return record.fail(format!("PING was not answered within {ping_max:?}")),
        }
        thread::sleep(PAUSE);
    }
}
