//! Watches every server at once, whatever it says it is: a counter that only grows. Knows when an answer is stale, and when
//! two servers have acknowledged what only one may; refuses to know why.
//!
//! Requests go to each server without waiting for replies, also while it is paused or cut off. What it answers later must
//! be as new as what any client was told before the request was sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wire::Reply;

use super::members::Addresses;
use super::pace::Pace;
use crate::connection::{Connection, Outcome, Trouble};
use crate::request::encode;

const COUNTER: &str = "shared:witness";
const ASK_EVERY: Duration = Duration::from_millis(25);
/// No more than that waits for a server that does not answer.
const OUTSTANDING_MAX: usize = 1500;

#[derive(Default)]
pub(crate) struct Witness {
    /// The largest value that was acknowledged, or read on a server that says it writes.
    floor: AtomicI64,
    /// Which server has acknowledged an increment to this value.
    acknowledged: Mutex<BTreeMap<i64, usize>>,
    pub(crate) acknowledgements: AtomicU64,
    pub(crate) reads: AtomicU64,
    /// Replies of servers that follow, which are no promise.
    pub(crate) reads_behind: AtomicU64,
}

const INCREMENT: &[&str] = &["INCR", COUNTER];

fn writes(role: &Reply) -> bool {
    matches!(role, Reply::Array(parts) if parts.first() == Some(&Reply::Bulk(b"master".to_vec())))
}

/// Connects again when a server has closed a connection, until it is over.
fn again_and_again(pace: &Pace, mut talk: impl FnMut() -> Outcome<()>) -> Result<(), String> {
    while !pace.is_over() {
        match talk() {
            Ok(()) | Err(Trouble::Closed | Trouble::ReadOnly) => std::thread::sleep(Duration::from_millis(30)),
            Err(Trouble::Wrong(what)) => return Err(what),
        }
    }
    Ok(())
}

impl Witness {
    /// Reads on one server until it is over.
    pub(crate) fn read(&self, addresses: &Addresses, server: usize, pace: &Pace) -> Result<(), String> {
        again_and_again(pace, || {
            let mut connection = addresses.connect(server)?;
            self.pour(&mut connection, pace, &[&["ROLE"], &["GET", COUNTER], &["ROLE"]], |floor, connection| {
                let replies = [connection.read()?, connection.read()?, connection.read()?];
                self.take_read(server, floor, &replies)
            })
        })
    }

    /// Adds on one server until it is over.
    pub(crate) fn add(&self, addresses: &Addresses, server: usize, pace: &Pace) -> Result<(), String> {
        again_and_again(pace, || {
            let mut connection = addresses.connect(server)?;
            self.pour(&mut connection, pace, &[INCREMENT], |floor, connection| {
                self.take_increment(server, floor, &connection.read()?)
            })
        })
    }

    /// Adds on one server while it says that it writes. So a server that is paused has nothing to write when it wakes, which
    /// would keep it from answering reads.
    pub(crate) fn add_with_care(&self, addresses: &Addresses, server: usize, pace: &Pace) -> Result<(), String> {
        again_and_again(pace, || {
            let mut connection = addresses.connect(server)?;
            while pace.may_write() {
                if !pace.is_avoided(server) && writes(&connection.run(&["ROLE"])?) {
                    let floor = self.floor.load(Ordering::SeqCst);
                    let reply = connection.run(INCREMENT)?;
                    self.take_increment(server, floor, &reply)?;
                }
                std::thread::sleep(3 * ASK_EVERY);
            }
            Ok(())
        })
    }

    /// Sends the same commands again and again without waiting for replies, which are read as they come.
    fn pour(
        &self,
        connection: &mut Connection,
        pace: &Pace,
        commands: &[&[&str]],
        take: impl Fn(i64, &mut Connection) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| encode(command, &mut bytes));
        let mut floors: VecDeque<i64> = VecDeque::new();
        let mut asked_at: Option<Instant> = None;
        while !pace.is_over() {
            if asked_at.is_none_or(|at| at.elapsed() >= ASK_EVERY) && floors.len() < OUTSTANDING_MAX {
                asked_at = Some(Instant::now());
                // IMPORTANT: before it is sent. What is acknowledged later may be missing in the answer.
                floors.push_back(self.floor.load(Ordering::SeqCst));
                connection.send(&bytes)?;
            }
            if connection.is_readable(Duration::from_millis(10))
                && let Some(floor) = floors.pop_front()
            {
                take(floor, connection)?;
            }
        }
        Ok(())
    }

    fn take_increment(&self, server: usize, floor: i64, reply: &Reply) -> Outcome<()> {
        let Reply::Integer(value) = reply else { return Ok(()) };
        if *value <= floor {
            return Err(Trouble::Wrong(format!(
                "server {server} acknowledged an increment of the counter to {value}, and {floor} had been told before it was asked"
            )));
        }
        let before = self.acknowledged.lock().expect("no thread panicked with it").insert(*value, server);
        if let Some(other) = before {
            return Err(Trouble::Wrong(format!(
                "two writers: servers {other} and {server} both acknowledged an increment of the counter to {value}"
            )));
        }
        self.floor.fetch_max(*value, Ordering::SeqCst);
        self.acknowledgements.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn take_read(&self, server: usize, floor: i64, replies: &[Reply; 3]) -> Outcome<()> {
        let value = match &replies[1] {
            Reply::Bulk(digits) => std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok()),
            Reply::NilBulk => Some(0),
            _ => None,
        };
        let Some(value) = value else { return Ok(()) };
        if !writes(&replies[0]) || !writes(&replies[2]) {
            self.reads_behind.fetch_add(u64::from(value < floor), Ordering::SeqCst);
            return Ok(());
        }
        if value < floor {
            return Err(Trouble::Wrong(format!(
                "a stale read: server {server} says that it writes and that the counter is {value}; {floor} had been told before it \
                 was asked"
            )));
        }
        self.floor.fetch_max(value, Ordering::SeqCst);
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// At the end, on any server.
    pub(crate) fn check(&self, connection: &mut Connection) -> Result<(), String> {
        let reply = connection.must_run(&["GET", COUNTER]).map_err(|trouble| trouble.describe("the counter"))?;
        let value = match &reply {
            Reply::Bulk(digits) => String::from_utf8_lossy(digits).parse().unwrap_or(-1),
            _ => 0,
        };
        let floor = self.floor.load(Ordering::SeqCst);
        if value < floor {
            return Err(format!("the counter is {value} at the end, and a client was told {floor}"));
        }
        Ok(())
    }
}
