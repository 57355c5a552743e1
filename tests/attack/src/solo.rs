//! One connection alone with the server, one request at a time: what is answered with an error has changed nothing, and
//! neither has what is not flagged as a write.

use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::author::Author;
use crate::forms::{self, Piece};
use crate::session::{Attack, is_counted, mix};
use crate::state::{State, expired};
use crate::table::Row;
use crate::talk::{Talk, Trouble, encode};
use crate::vocabulary::fill;

/// How long the server may take to count what has expired.
const COUNTED_MAX: Duration = Duration::from_secs(5);
const ARG_BYTES_MAX: usize = 3_000;

impl Attack<'_> {
    /// Runs until the time is over or the run has failed. Uses `connection`'s place in the record.
    pub(crate) fn run_alone(&self, connection: usize, until: Instant) {
        if let Err(what) = self.alone(connection, until) {
            self.record.fail(format!("alone: {what}"));
        }
    }

    fn alone(&self, connection: usize, until: Instant) -> Result<(), String> {
        let mut watch =
            Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"))?;
        watch.must(&["CLIENT", "UNPAUSE"])?;
        let mut session = 0;
        while Instant::now() < until {
            session += 1;
            // Not the numbers of the other sessions.
            let random = Random::new(mix(self.seed, 1_000_000, session));
            match self.alone_once(connection, session, random, &mut watch, until) {
                Ok(()) | Err(Trouble::Closed) => {}
                Err(Trouble::Stopped) => return Ok(()),
                Err(Trouble::Wrong(what)) => return Err(what),
            }
            self.revive(&mut watch)?;
        }
        Ok(())
    }

    /// Connects again if the connection was ended by CLIENT KILL, which may end any.
    fn revive(&self, watch: &mut Talk) -> Result<(), String> {
        if watch.run(&["PING"]).is_err() {
            *watch = Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"))?;
        }
        Ok(())
    }

    fn alone_once(
        &self,
        connection: usize,
        session: u64,
        random: Random,
        watch: &mut Talk,
        until: Instant,
    ) -> Result<(), Trouble> {
        let mut author = Author::new(self.table, self.vocabulary, self.avoid, random);
        let mut talk = Talk::open(self.address, &self.record.stop)
            .map_err(|error| Trouble::Wrong(format!("cannot connect: {error}")))?;
        talk.learn_id()?;
        let wrong = Trouble::Wrong;
        if author.random.one_in(2) {
            talk.run(&["HELLO", "3"]).map_err(wrong)?;
        }
        // Every session begins alike, so that it can be repeated without those before it.
        talk.run(&["FLUSHALL"]).map_err(wrong)?;
        fill(&mut talk).map_err(wrong)?;
        let mut expired_before = expired(watch).map_err(wrong)?;
        let mut before = State::read(watch).map_err(wrong)?;
        for _ in 0..60 {
            if Instant::now() > until || self.record.is_stopped() {
                return Ok(());
            }
            let mut piece = forms::draw(&mut author, is_counted);
            // A digest of megabytes after each request would take most of the time.
            piece.requests.iter_mut().flatten().for_each(|arg| arg.truncate(ARG_BYTES_MAX));
            let mut last = Reply::Closed;
            for args in &piece.requests {
                self.record.sent(connection, session, args);
                talk.send(&encode(&[args]))?;
                last = loop {
                    match talk.read()? {
                        Reply::Push(_) => {}
                        reply => break reply,
                    }
                };
                self.record.received(connection, &last);
            }
            if piece.single.is_some_and(|row| self.table.rows[row].group == "transactions") {
                // What follows would be part of it, and judged when it takes effect later.
                talk.run(&["DISCARD"]).map_err(wrong)?;
                talk.run(&["TXN.ROLLBACK"]).map_err(wrong)?;
            }
            if let Some(row) = piece.single {
                self.record.reached(self.table.rows[row].title(), !is_failed(&last));
            }
            self.revive(watch).map_err(wrong)?;
            let expired_after = expired(watch).map_err(wrong)?;
            let after = State::read(watch).map_err(wrong)?;
            if after != before
                && let Some(why) = self.must_not_change(&piece, &last)
            {
                // What expires by itself is no change; the server counts it once it has removed it. No reader removes a session.
                watch.must(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"]).map_err(wrong)?;
                let changed = Instant::now();
                let mut by_itself = false;
                while !by_itself && changed.elapsed() < COUNTED_MAX {
                    thread::sleep(Duration::from_millis(20));
                    by_itself = expired(watch).map_err(wrong)? != expired_before;
                }
                if !by_itself {
                    let requests: Vec<_> = piece.requests.iter().map(|args| readable(args)).collect();
                    return Err(wrong(format!(
                        "{why}, and the state has changed: {}\n{}",
                        requests.join(" ; "),
                        before.difference(&after)
                    )));
                }
            }
            (expired_before, before) = (expired_after, after);
        }
        Ok(())
    }

    /// Why the state must be as before, if it must.
    fn must_not_change(&self, piece: &Piece, last: &Reply) -> Option<String> {
        let row = &self.table.rows[piece.single?];
        if runs_others(row) {
            return None;
        }
        if is_failed(last) {
            return Some(format!("{} was answered with an error", row.title()));
        }
        // The one reader of its group, PFCOUNT, keeps its result in the value, as in Redis.
        let is_reading = !row.has("write") && !["debug", "hyperloglog"].contains(&row.group.as_str());
        is_reading.then(|| format!("{} is not flagged as a write", row.title()))
    }
}

/// Commands that run others: what those have done before the error stays, as in Redis.
fn runs_others(row: &Row) -> bool {
    row.group == "transactions"
        || (row.group == "scripting" && row.has("movablekeys"))
        || row.title().starts_with("DEBUG")
        // A call runs a request, and a session that is opened or closed its hook.
        || ["SESSION.CALL", "SESSION.OPEN", "SESSION.CLOSE"].contains(&row.title().to_uppercase().as_str())
}

/// An error, also as the one reply of a transaction.
fn is_failed(reply: &Reply) -> bool {
    match reply {
        Reply::Error(_) => true,
        Reply::Array(items) => matches!(items.as_slice(), [Reply::Error(_)]),
        _ => false,
    }
}

fn readable(args: &[Vec<u8>]) -> String {
    let words: Vec<_> = args.iter().take(40).map(|arg| wire::quote(&arg[..arg.len().min(300)])).collect();
    words.join(" ")
}
