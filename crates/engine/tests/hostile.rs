//! Throws random requests at an engine: every command in the table, written as COMMAND DOCS says and then damaged, with
//! odd arguments, at a few keys. No request may panic or leave anything but one whole reply; one that is refused, and
//! one that only reads, must change nothing.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test hostile` runs the same again. The fuzz target
//! `execute` does the same for as long as it is let.

#[path = "common/host.rs"]
mod host;
#[path = "hostile/world.rs"]
mod world;

use engine::command::{Flags, registry};
use engine::execution::docs::{Argument, ArgumentKind};
use fastrand::Rng;
use std::collections::VecDeque;
use world::{World, reply_len, settings, shown};

/// Engines, one after the other: what CONFIG SET or AUTH have done to one ends with it.
const WORLDS: usize = 80;
const REQUESTS: usize = 250;

/// Commands that are left out, and why.
const EXCLUDED: &[(&str, &str)] = &[
    ("debug|sleep", "stops the thread, which is its purpose"),
    ("debug|populate", "makes as many keys as it is told to, which is its purpose"),
    ("debug|protocol", "has a type, push, that comes beside the reply"),
];

#[test]
fn no_request_panics_and_a_refused_one_changes_nothing() {
    let seed = match std::env::var("HOLDFAST_TEST_SEED") {
        Ok(text) => text.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    };
    println!("HOLDFAST_TEST_SEED={seed}");
    let mut source = Source { random: Rng::with_seed(seed), heard: VecDeque::new(), payload: Vec::new() };
    let (mut refused, mut answered) = (0, 0);
    for _ in 0..WORLDS {
        let mut world = World::new(settings(&[("enable-debug-command", "yes")]));
        let (mut before, mut history) = (world.snapshot(), History::default());
        for _ in 0..REQUESTS {
            if source.random.u8(..8) == 0 {
                world.pass_ms(source.random.u64(..3_000));
                before = world.snapshot();
            }
            let request = source.request();
            history.0.push(shown(&request));
            let reply = world.ask(&request);
            let after = world.snapshot();
            let is_refused = reply.as_ref().is_some_and(|reply| reply[0] == b'-');
            if is_refused || is_read_only(&request) {
                assert_eq!(before, after, "{} changed something", shown(&request));
            }
            if is_refused {
                refused += 1
            } else {
                answered += 1
            }
            source.hear(reply.as_deref().unwrap_or_default());
            if request[0].eq_ignore_ascii_case(b"dump")
                && let Some([b'$', b'0'..=b'9', ..]) = reply.as_deref()
            {
                source.payload = source.heard.back().cloned().unwrap_or_default();
            }
            before = after;
        }
    }
    // Were nearly all of them refused, or nearly none, this test would be worth little.
    println!("{answered} answered, {refused} refused");
    assert!(answered > refused / 4 && refused > answered / 4, "{answered} answered, {refused} refused");
}

/// What an engine was asked; shown when it did wrong.
#[derive(Default)]
struct History(Vec<String>);

impl Drop for History {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0.join("\n"));
        }
    }
}

/// Where requests come from.
struct Source {
    random: Rng,
    /// Strings from replies, which make good arguments: cursors, names, values.
    heard: VecDeque<Vec<u8>>,
    /// What DUMP replied last, for RESTORE.
    payload: Vec<u8>,
}

impl Source {
    fn request(&mut self) -> Vec<Vec<u8>> {
        let row = *self.pick(registry().rows());
        let mut request: Vec<Vec<u8>> = row.full_name.split('|').map(|word| word.as_bytes().to_vec()).collect();
        if row.full_name == "debug" {
            let known: &[&str] = &[
                "object",
                "digest",
                "digest-value",
                "htstats",
                "htstats-key",
                "listpack",
                "sdslen",
                "structsize",
                "reload",
                "error",
                "log",
                "stringmatch-len",
                "change-repl-id",
                "replybuffer",
                "quicklist",
                "leak",
                "set-active-expire",
                "panic",
                "help",
            ];
            request.push(self.pick(known).as_bytes().to_vec());
            request.extend((0..self.random.usize(..3)).map(|_| self.key_or_odd()));
        } else if row.full_name == "config|set" {
            let setting = self.pick(engine::settings::TABLE);
            request.push(setting.name.as_bytes().to_vec());
            request.push(if self.random.bool() { setting.default.into() } else { self.odd() });
        } else if row.full_name.starts_with("command|getkeys") {
            request.extend(self.request());
        } else {
            self.several(row.command.docs.arguments, &mut request);
        }
        while self.random.u8(..4) == 0 {
            self.damage(&mut request);
        }
        if is_excluded(&request) { self.request() } else { request }
    }

    /// Arguments as documented.
    fn several(&mut self, arguments: &[Argument], out: &mut Vec<Vec<u8>>) {
        let mut count_at = None;
        for argument in arguments {
            if argument.optional && self.random.bool() {
                continue;
            }
            let times = if argument.multiple { self.random.usize(1..4) } else { 1 };
            for time in 0..times {
                if let Some(token) = argument.token
                    && (time == 0 || argument.multiple_token)
                {
                    out.push(token.as_bytes().to_vec());
                }
                self.one(argument, out);
            }
            // A count of what follows should usually be right.
            if argument.name.starts_with("num") {
                count_at = Some(out.len() - 1);
            } else if let Some(at) = count_at.take().filter(|_| self.random.u8(..8) > 0) {
                out[at] = times.to_string().into_bytes();
            }
        }
    }

    fn one(&mut self, argument: &Argument, out: &mut Vec<Vec<u8>>) {
        let text = match argument.kind {
            ArgumentKind::PureToken => return,
            ArgumentKind::OneOf => {
                let chosen = *self.pick(argument.arguments);
                return self.several(&[Argument { optional: false, ..chosen }], out);
            }
            ArgumentKind::Block => return self.several(argument.arguments, out),
            ArgumentKind::Key => self.key(),
            ArgumentKind::Integer => self.integer(),
            ArgumentKind::Double => self.double(),
            ArgumentKind::Pattern => self.pattern(),
            ArgumentKind::UnixTime => self.time(),
            ArgumentKind::String if argument.name == "serialized-value" => self.payload(),
            ArgumentKind::String => self.string(),
        };
        out.push(text);
    }

    /// Few enough that commands of all kinds meet at each; some of them in one shard, most not.
    fn key(&mut self) -> Vec<u8> {
        self.pick(&["a", "b", "c", "d", "{a}b", "{a}c", "", "\u{e9}\n"]).as_bytes().to_vec()
    }

    fn string(&mut self) -> Vec<u8> {
        match self.random.u8(..8) {
            0 => self.odd(),
            1 => self.integer(),
            2 => self.double(),
            3 if !self.heard.is_empty() => self.heard[self.random.usize(..self.heard.len())].clone(),
            4 => self.pick(registry().rows()).full_name.clone().into_bytes(),
            _ => self.pick(&["f", "g", "h", "10", "3.5", "", "value", "\0\r\n"]).as_bytes().to_vec(),
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        if self.random.u8(..4) == 0 && !payload.is_empty() {
            let at = self.random.usize(..payload.len());
            payload[at] = self.random.u8(..);
        }
        payload
    }

    fn integer(&mut self) -> Vec<u8> {
        match self.random.u8(..8) {
            0 => self.odd(),
            1 => self.large().to_string().into_bytes(),
            2 => self.random.i32(-20..100).to_string().into_bytes(),
            3 => self.random.u8(..16).to_string().into_bytes(),
            _ => self.random.u8(..2).to_string().into_bytes(),
        }
    }

    /// Numbers at which something could overflow. None is so large that a string of that length would be slow to make
    /// and yet so small that it would be made.
    fn large(&mut self) -> i128 {
        const EDGES: &[i128] = &[
            i64::MIN as i128,
            i64::MAX as i128,
            u64::MAX as i128,
            i32::MIN as i128,
            i32::MAX as i128,
            u32::MAX as i128,
            i64::MAX as i128 / 1000,
            i64::MAX as i128 / 2,
            512 << 20,
            1 << 48,
            1 << 53,
        ];
        *self.pick(EDGES) + self.random.i128(-1..=1)
    }

    fn double(&mut self) -> Vec<u8> {
        const ODD: &[&str] = &[
            "1.5",
            "-0.0",
            "1e308",
            "-1e308",
            "1e4932",
            "1e-4950",
            "inf",
            "-inf",
            "nan",
            "0x1p3",
            "1e",
            " 1",
            "1.",
            ".5",
            "3.0000000000000000000000000001",
            "99999999999999999999999999999999",
        ];
        if self.random.u8(..4) == 0 { self.integer() } else { self.pick(ODD).as_bytes().to_vec() }
    }

    fn time(&mut self) -> Vec<u8> {
        let now_s = 1_763_172_000 + self.random.i64(-1_000..1_000);
        match self.random.u8(..4) {
            0 => self.integer(),
            1 | 2 => now_s.to_string().into_bytes(),
            _ => (now_s * 1000).to_string().into_bytes(),
        }
    }

    fn pattern(&mut self) -> Vec<u8> {
        const PATTERNS: &[&str] =
            &["*", "?", "a*", "[a-c]", "[^a]", "[", "[^", "\\", "*\\", "a*a*a*a*a*a*b", "{a}*", "[z-a]", "**?"];
        if self.random.u8(..8) == 0 { self.odd() } else { self.pick(PATTERNS).as_bytes().to_vec() }
    }

    /// An unusual argument.
    fn odd(&mut self) -> Vec<u8> {
        match self.random.u8(..5) {
            0 => (0..self.random.usize(..40)).map(|_| self.random.u8(..)).collect(),
            1 => {
                self.pick(&["", " ", "-", "+1", "01", "-0", "1 ", "\r\n", "#1", "i65", "u64", "1.0"]).as_bytes().into()
            }
            2 => vec![*self.pick(b"\xff\0a$*"); self.random.usize(..600)],
            3 => self.large().to_string().into_bytes(),
            _ => self.pick(TOKENS).as_bytes().to_vec(),
        }
    }

    fn key_or_odd(&mut self) -> Vec<u8> {
        if self.random.bool() { self.key() } else { self.odd() }
    }

    /// Makes a request a little wrong.
    fn damage(&mut self, request: &mut Vec<Vec<u8>>) {
        let at = self.random.usize(..request.len());
        let odd = if self.random.bool() { self.odd() } else { self.string() };
        match self.random.u8(..6) {
            0 if request.len() > 1 => drop(request.remove(at)),
            1 => request[at] = odd,
            2 => request.push(odd),
            3 => request.insert(at, odd),
            4 => request.push(request[at].clone()),
            _ => {
                let other = self.random.usize(..request.len());
                request.swap(at, other);
            }
        }
    }

    /// Keeps the short strings of a reply.
    fn hear(&mut self, reply: &[u8]) {
        let mut rest = reply;
        while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
            rest = &rest[at..];
            if let Some(len) = reply_len(rest, resp::Protocol::Resp2).filter(|len| (8..300).contains(len)) {
                let start = rest.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                self.heard.push_back(rest[start..len - 2].to_vec());
                if self.heard.len() > 32 {
                    self.heard.pop_front();
                }
                rest = &rest[len..];
            } else {
                rest = &rest[1..];
            }
        }
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.random.usize(..choices.len())]
    }
}

/// Option words, for where they do not belong.
const TOKENS: &[&str] = &[
    "NX",
    "XX",
    "GT",
    "LT",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "GET",
    "FIELDS",
    "FNX",
    "FXX",
    "MATCH",
    "COUNT",
    "TYPE",
    "NOVALUES",
    "WITHVALUES",
    "REPLACE",
    "ABSTTL",
    "IDLETIME",
    "FREQ",
    "DB",
    "BIT",
    "BYTE",
    "OVERFLOW",
    "SAT",
    "FAIL",
    "INCRBY",
    "IDX",
    "LEN",
    "MINMATCHLEN",
    "ASYNC",
    "SYNC",
    "LIMIT",
    "WEIGHTS",
    "AGGREGATE",
    "WITHSCORES",
    "BYLEX",
    "BYSCORE",
    "INCR",
    "CH",
    "REV",
    "(1",
    "[a",
    "IFEQ",
    "IFNE",
    "ON",
    "OFF",
    "SKIP",
];

/// True when the request, whatever it was meant to be, is a command that only reads. True when a request changes
/// nothing. PFCOUNT does, though it is marked as a read, as in Redis: it writes down what it has counted.
fn is_read_only(request: &[Vec<u8>]) -> bool {
    if request[0].eq_ignore_ascii_case(b"pfcount") {
        return false;
    }
    let command = registry().find(&request[0]);
    let subcommand = command.zip(request.get(1)).and_then(|(command, name)| command.subcommand(name));
    subcommand.or(command).is_some_and(|row| row.command.flags.has(Flags::READONLY))
}

fn is_excluded(request: &[Vec<u8>]) -> bool {
    let is = |at: usize, word: &str| request.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    EXCLUDED.iter().any(|(name, _)| name.split('|').enumerate().all(|(at, word)| is(at, word)))
}
