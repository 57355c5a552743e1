//! Throws random requests at an engine: every command in the table, written as COMMAND DOCS says and then damaged, with
//! odd arguments, at a few keys. No request may panic or leave anything but one whole reply; one that is refused, and
//! one that only reads, must change nothing.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test hostile` runs the same again. The fuzz target
//! `execute` does the same for as long as it is let.

mod common;
#[path = "hostile/world.rs"]
mod world;

use common::{host, requests, seed};
use engine::command::{Flags, registry};
use engine::execution::docs::Argument;
use std::collections::VecDeque;
use world::{World, reply_len, settings, shown};

/// Engines, one after the other: what CONFIG SET or AUTH have done to one ends with it.
const WORLDS: usize = 30;
const REQUESTS: usize = 250;

/// Commands that are left out, and why.
const EXCLUDED: &[(&str, &str)] = &[
    ("debug|sleep", "stops the thread, which is its purpose"),
    ("debug|populate", "makes as many keys as it is told to, which is its purpose"),
    ("debug|protocol", "has a type, push, that comes beside the reply"),
];

#[test]
fn no_request_panics_and_a_refused_one_changes_nothing() {
    let mut source = Source::new(seed());
    let (mut refused, mut answered) = (0, 0);
    for _ in 0..WORLDS {
        let mut world = World::new(settings(&[("enable-debug-command", "yes")]));
        let (mut before, mut history) = (world.snapshot(), History::default());
        for _ in 0..REQUESTS {
            if source.base.random.u8(..8) == 0 {
                world.pass_ms(source.base.random.u64(..3_000));
                before = world.snapshot();
            }
            source.base.now_ms = world.now_ms();
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
            source.hear(&request, reply.as_deref().unwrap_or_default());
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
    /// Knows requests as they are documented, at keys where all commands meet.
    base: requests::Source,
    /// Strings from replies, which make good arguments: cursors, names, values.
    heard: VecDeque<Vec<u8>>,
    /// Option words of all commands, for where they do not belong.
    tokens: Vec<&'static str>,
}

impl Source {
    fn new(seed: u64) -> Source {
        let mut tokens = vec!["(1", "[a", "i65", "#1"];
        registry().rows().iter().for_each(|row| collect_tokens(row.command.docs.arguments, &mut tokens));
        Source { base: requests::Source::new(seed), heard: VecDeque::new(), tokens }
    }

    fn request(&mut self) -> Vec<Vec<u8>> {
        let row = *self.pick(registry().rows());
        let mut request: Vec<Vec<u8>> = row.full_name.split('|').map(|word| word.as_bytes().to_vec()).collect();
        if row.full_name == "debug" {
            let known: Vec<&str> = "object digest digest-value htstats htstats-key listpack sdslen structsize reload error log \
                                    stringmatch-len change-repl-id replybuffer quicklist leak set-active-expire panic help"
                .split_whitespace()
                .collect();
            request.push(self.pick(&known).as_bytes().to_vec());
            for _ in 0..self.base.random.usize(..3) {
                request.push(if self.base.random.bool() { self.base.key() } else { self.odd() });
            }
        } else if row.full_name == "config|set" {
            let setting = self.pick(engine::settings::TABLE);
            request.push(setting.name.as_bytes().to_vec());
            request.push(if self.base.random.bool() { setting.default.into() } else { self.odd() });
        } else if row.full_name.starts_with("command|getkeys") {
            request.extend(self.request());
        } else {
            self.base.several(row.command.docs.arguments, &mut request);
        }
        while self.base.random.u8(..5) < 2 {
            self.damage(&mut request);
        }
        if is_excluded(&request) { self.request() } else { request }
    }

    /// Makes a request a little wrong.
    fn damage(&mut self, request: &mut Vec<Vec<u8>>) {
        let at = self.base.random.usize(..request.len());
        let odd = match self.base.random.u8(..4) {
            0 => self.base.value(),
            1 if !self.heard.is_empty() => self.heard[self.base.random.usize(..self.heard.len())].clone(),
            _ => self.odd(),
        };
        match self.base.random.u8(..7) {
            0 if request.len() > 1 => drop(request.remove(at)),
            1 | 2 => request[at] = odd,
            3 => request.push(odd),
            4 => request.insert(at, odd),
            5 => request.push(request[at].clone()),
            _ => {
                let other = self.base.random.usize(..request.len());
                request.swap(at, other);
            }
        }
    }

    /// An unusual argument.
    fn odd(&mut self) -> Vec<u8> {
        const TEXTS: &[&str] = &["", " ", "-", "+1", "01", "-0", "1 ", "\r\n", "u64", "1.0"];
        const NUMBERS: &[&str] = &[
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
        const PATTERNS: &[&str] =
            &["*", "?", "a*", "[a-c]", "[^a]", "[", "[^", "\\", "*\\", "a*a*a*a*a*a*b", "{a}*", "[z-a]", "**?"];
        match self.base.random.u8(..8) {
            0 => (0..self.base.random.usize(..40)).map(|_| self.base.random.u8(..)).collect(),
            1 => vec![*self.pick(b"\xff\0a$*"); self.base.random.usize(..600)],
            2 | 3 => self.large().to_string().into_bytes(),
            4 => self.pick(TEXTS).as_bytes().into(),
            5 => self.pick(NUMBERS).as_bytes().into(),
            6 => self.pick(PATTERNS).as_bytes().into(),
            _ => {
                let tokens = std::mem::take(&mut self.tokens);
                let token = self.pick(&tokens).as_bytes().to_vec();
                self.tokens = tokens;
                token
            }
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
        *self.pick(EDGES) + self.base.random.i128(-1..=1)
    }

    /// Keeps the short strings of a reply.
    fn hear(&mut self, request: &[Vec<u8>], reply: &[u8]) {
        if reply.starts_with(b"$") && request.len() > 1 {
            self.base.hear(request, reply);
        }
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
        &choices[self.base.random.usize(..choices.len())]
    }
}

fn collect_tokens(arguments: &[Argument], tokens: &mut Vec<&'static str>) {
    for argument in arguments {
        tokens.extend(argument.token);
        collect_tokens(argument.arguments, tokens);
    }
}

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
