//! The life of one attacking connection, drawn from its seed: counted, where every request must have one reply; loose,
//! where the connection subscribes, monitors, turns replies off; or broken, where it speaks bad RESP and hangs up.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::author::Author;
use crate::danger;
use crate::forms;
use crate::record::Record;
use crate::table::{Kind, Row, Table};
use crate::talk::{Talk, Trouble, encode};
use crate::vocabulary::{Vocabulary, bytes, some_filling};

/// What all sessions of a round share.
pub(crate) struct Attack<'a> {
    pub(crate) address: SocketAddr,
    /// The server's, if it is ours.
    pub(crate) process_id: Option<u32>,
    pub(crate) table: &'a Table,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) avoid: &'a [String],
    pub(crate) record: &'a Record,
    pub(crate) seed: u64,
}

impl Attack<'_> {
    /// Session after session on one connection at a time, until the time is over or the run has failed.
    pub(crate) fn run(&self, connection: usize, until: Instant) {
        let mut number = 0;
        while Instant::now() < until && !self.record.is_stopped() {
            number += 1;
            let random = Random::new(mix(self.seed, connection as u64, number));
            match self.session(connection, number, random) {
                Ok(()) => self.record.ended(connection, "answered or not wanted"),
                Err(Trouble::Closed) => self.record.ended(connection, "closed"),
                Err(Trouble::Stopped) => {}
                Err(Trouble::Wrong(what)) => {
                    self.record.fail(format!("connection {connection}, session {number}: {what}"))
                }
            }
        }
    }

    fn session(&self, connection: usize, number: u64, mut random: Random) -> Result<(), Trouble> {
        let kind = random.below(10);
        let author = Author::new(self.table, self.vocabulary, self.avoid, random);
        let mut talk = match Talk::open(self.address, &self.record.stop) {
            Ok(talk) => talk,
            Err(_) => {
                // No server, or too many connections: the one who checks for life finds out which.
                thread::sleep(Duration::from_millis(50));
                return Ok(());
            }
        };
        talk.learn_id()?;
        let mut session = Session { attack: self, connection, number, talk, author };
        match kind {
            0..5 => session.counted(),
            5..9 => session.loose(),
            _ => session.broken(),
        }
    }
}

/// A number for each session, so that one can be drawn without those before it.
pub(crate) fn mix(seed: u64, connection: u64, number: u64) -> u64 {
    let mut mixed = seed ^ connection.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether a command has one reply for each request. Those that have not change how replies come, or whether.
pub(crate) fn is_counted(row: &Row) -> bool {
    const UNCOUNTED: &[&str] = &["MONITOR", "QUIT", "CLIENT REPLY", "SYNC", "PSYNC"];
    let title = row.title();
    !title.ends_with("SUBSCRIBE") && !UNCOUNTED.contains(&title.as_str())
}

struct Session<'a> {
    attack: &'a Attack<'a>,
    connection: usize,
    number: u64,
    talk: Talk,
    author: Author<'a>,
}

impl Session<'_> {
    fn counted(&mut self) -> Result<(), Trouble> {
        let mut batch: Vec<Vec<Vec<u8>>> = Vec::new();
        if self.author.random.one_in(2) {
            batch.push(vec![b"HELLO".to_vec(), b"3".to_vec()]);
        }
        batch.extend((0..4).map(|_| some_filling(&mut self.author.random)));
        for turn in 0..1 + self.author.random.below(10) {
            for _ in 0..1 + self.author.random.below(6) {
                batch.extend(forms::draw(&mut self.author, is_counted).requests);
            }
            self.exchange(&batch, turn)?;
            batch.clear();
        }
        Ok(())
    }

    /// Sends a batch and reads exactly one reply for each request. A last request of our own shows that there is none too
    /// many; DISCARD and TXN.ROLLBACK before it, that it is part of no transaction.
    fn exchange(&mut self, batch: &[Vec<Vec<u8>>], turn: usize) -> Result<(), Trouble> {
        let marker = format!("marker:{}:{turn}", self.number);
        let end = [words(&["DISCARD"]), words(&["TXN.ROLLBACK"]), words(&["ECHO", &marker])];
        let requests: Vec<_> = batch.iter().chain(&end).collect();
        requests.iter().for_each(|args| self.attack.record.sent(self.connection, self.number, args));
        self.talk.send_cut(&encode(&requests), &mut self.author.random)?;
        let mut busy = false;
        let mut last = Reply::Closed;
        for _ in &requests {
            last = self.read_reply()?;
            self.attack.record.received(self.connection, &last);
            busy |= matches!(&last, Reply::Error(text) if text.starts_with(b"BUSY"));
        }
        match last {
            Reply::Bulk(echo) if echo == marker.as_bytes() => Ok(()),
            // A script on another connection runs long; DISCARD and ECHO may have been refused.
            _ if busy => Err(Trouble::Closed),
            other => Err(Trouble::Wrong(format!(
                "ECHO {marker} was answered with {}: some request had no reply, or two",
                other.excerpt()
            ))),
        }
    }

    /// The next that answers a request.
    fn read_reply(&mut self) -> Result<Reply, Trouble> {
        loop {
            match self.talk.read()? {
                Reply::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Anything goes. At the end the connection is brought back to where ECHO answers.
    fn loose(&mut self) -> Result<(), Trouble> {
        for _ in 0..2 + self.author.random.below(20) {
            let batch = if self.author.random.one_in(3) { self.burst() } else { self.batch() };
            batch.iter().for_each(|args| self.attack.record.sent(self.connection, self.number, args));
            let bytes = encode(&batch);
            if self.author.random.one_in(40) {
                let part = &bytes[..self.author.random.below(bytes.len())];
                self.attack.record.did(self.connection, self.number, "hung up in the middle");
                return self.talk.send(part);
            }
            self.talk.send_cut(&bytes, &mut self.author.random)?;
            while self.talk.has_more() {
                self.talk.read()?;
            }
        }
        let marker = format!("end:{}", self.number);
        let end = [vec![b"RESET".to_vec()], words(&["CLIENT", "REPLY", "ON"]), words(&["ECHO", &marker])];
        end.iter().for_each(|args| self.attack.record.sent(self.connection, self.number, args));
        self.talk.send(&encode(&end))?;
        loop {
            match self.talk.read()? {
                Reply::Bulk(echo) if echo == marker.as_bytes() => return Ok(()),
                Reply::Error(text) if text.starts_with(b"BUSY") => return Ok(()),
                _ => {}
            }
        }
    }

    /// Requests of all kinds, half of them such as change the connection.
    fn batch(&mut self) -> Vec<Vec<Vec<u8>>> {
        const GROUPS: &[&str] = &["transactions", "pubsub", "connection", "connection", "scripting"];
        let mut batch = Vec::new();
        for _ in 0..1 + self.author.random.below(5) {
            match self.author.random.one_in(2) {
                true => batch.extend(forms::draw(&mut self.author, |_| true).requests),
                false => {
                    let group = self.author.random.pick(GROUPS);
                    batch.push(self.author.request(|row| row.group == group || row.has("blocking")).args);
                }
            }
        }
        batch
    }

    /// Requests for one key, and those of transactions between them.
    fn burst(&mut self) -> Vec<Vec<Vec<u8>>> {
        self.author.is_focused = true;
        let burst = (0..2 + self.author.random.below(10)).map(|_| {
            let of_transactions = self.author.random.one_in(4);
            let has_key = |row: &Row| row.arguments.first().is_some_and(|first| first.kind == Kind::Key);
            self.author.request(|row| if of_transactions { row.group == "transactions" } else { has_key(row) }).args
        });
        let burst = burst.collect();
        self.author.is_focused = false;
        burst
    }

    /// Bad RESP, then silence and a hang-up.
    fn broken(&mut self) -> Result<(), Trouble> {
        const STARTS: &[&str] = &[
            "*1\r\n$4\r\nPING\r\n",
            "*1000000000\r\n",
            "*-5\r\n",
            "*3\r\n$3\r\nSET\r\n$1000000000\r\n",
            "$5\r\nhello\r\n",
            "*1\r\n$-1\r\n",
            "*0\r\n",
            "*2\r\n$3\r\nGET\r\n:1\r\n",
            "PING\r\n",
            "SET a \"b\r\n",
            "\r\n\r\n\r\n",
            "*1\r\n*1\r\n$4\r\nPING\r\n",
            "*99999999999999999999\r\n",
            "GET \"\\x\r\n",
            "*1\n$4\nPING\n",
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        ];
        for _ in 0..1 + self.author.random.below(4) {
            let mut bytes = match self.author.random.below(3) {
                0 => self.author.random.pick(STARTS).into(),
                1 => bytes(&mut self.author.random, 200),
                _ => {
                    let piece = forms::draw(&mut self.author, is_counted);
                    // Behind bytes that are no request, and with a byte changed, its arguments are inline requests.
                    if piece.requests.iter().any(|args| danger::is_listed(args)) {
                        continue;
                    }
                    encode(&piece.requests)
                }
            };
            if self.author.random.one_in(2) && !bytes.is_empty() {
                let at = self.author.random.below(bytes.len());
                bytes[at] = self.author.random.next_u64() as u8;
            }
            self.attack.record.did(self.connection, self.number, &wire::quote(&bytes[..bytes.len().min(300)]));
            self.talk.send_cut(&bytes, &mut self.author.random)?;
        }
        while self.talk.has_more() {
            self.talk.read()?;
        }
        Ok(())
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
