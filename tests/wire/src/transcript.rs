//! A conversation with the server, written down: parses it, holds it, compares. `README.md` describes the notation.

use std::collections::BTreeMap;
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::pattern::{ParseError, Pattern};
use crate::reply::Reply;
use crate::rows::{Row, RowReply};
use crate::session::{Product, Session};
use crate::skip::skip;
use crate::text::{quote, split_args};

/// How long `# eventually` and `# until` keep asking.
const EVENTUALLY_DEADLINE: Duration = Duration::from_secs(20);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(5);

pub(crate) struct Transcript<'a> {
    lines: Vec<&'a str>,
    steps: Vec<Step>,
    caller: &'static Location<'static>,
}

struct Step {
    /// Counted from 0, from the start of the transcript.
    line: usize,
    action: Action,
}

enum Action {
    Send {
        peer: Peer,
        args: Vec<Vec<u8>>,
    },
    SendRaw {
        peer: Peer,
        bytes: Vec<u8>,
    },
    Expect {
        peer: Peer,
        pattern: Pattern,
    },
    ExpectRaw {
        peer: Peer,
        bytes: Vec<u8>,
    },
    /// Sends until the expected reply comes.
    Eventually {
        peer: Peer,
        args: Vec<Vec<u8>>,
        pattern: Pattern,
    },
    /// Asks INFO until this line is in it.
    Until {
        info_line: String,
    },
    Sleep(Duration),
    Config {
        name: String,
        value: String,
    },
    /// Leave the rest of the transcript out unless the server is one of these.
    Only(Servers),
}

enum Servers {
    Holdfast,
    Redis,
    HoldfastOrRedisSince(String),
}

/// The number in front of `1>`: each peer is one connection.
type Peer = u32;

impl<'a> Transcript<'a> {
    pub(crate) fn parse(text: &'a str, caller: &'static Location<'static>) -> Transcript<'a> {
        let transcript = Transcript { lines: text.lines().collect(), steps: Vec::new(), caller };
        let mut parser = Parser { transcript, at: 0, peer: 1, eventually: None, shared: None };
        while parser.at < parser.transcript.lines.len() {
            parser.read_line();
        }
        if let Some(line) = parser.eventually {
            parser.transcript.fail(line, "# eventually needs one command and one reply");
        }
        parser.transcript
    }

    pub(crate) fn run(&self, session: &Session) {
        let mut peers = Peers { session, connections: BTreeMap::new() };
        let mut restore = RestoreConfig { session, settings: Vec::new() };
        let mut compared = false;
        for step in &self.steps {
            match &step.action {
                Action::Send { peer, args } => peers.get(*peer).queue(args),
                Action::SendRaw { peer, bytes } => peers.get(*peer).queue_raw(bytes),
                Action::Expect { peer, pattern } => {
                    compared = true;
                    let reply = peers.get(*peer).read();
                    if !pattern.matches(&reply) {
                        self.fail_reply(step.line, session, &reply);
                    }
                }
                Action::ExpectRaw { peer, bytes } => {
                    compared = true;
                    let received = peers.get(*peer).read_raw(bytes.len());
                    if received != *bytes {
                        self.fail(step.line, &format!("received from {}: {}", session.product(), quote(&received)));
                    }
                }
                Action::Eventually { peer, args, pattern } => {
                    compared = true;
                    let deadline = Instant::now() + EVENTUALLY_DEADLINE;
                    loop {
                        let reply = peers.get(*peer).run_args(args);
                        if pattern.matches(&reply) {
                            break;
                        }
                        if Instant::now() > deadline {
                            self.fail_reply(step.line, session, &reply);
                        }
                        thread::sleep(ASK_AGAIN_AFTER);
                    }
                }
                Action::Until { info_line } => {
                    peers.flush();
                    let mut asker = session.connect();
                    let deadline = Instant::now() + EVENTUALLY_DEADLINE;
                    while !asker.run("INFO").text().lines().any(|line| line == info_line) {
                        if Instant::now() > deadline {
                            self.fail(step.line, "INFO never said so");
                        }
                        thread::sleep(ASK_AGAIN_AFTER);
                    }
                }
                Action::Sleep(pause) => {
                    peers.flush();
                    thread::sleep(*pause);
                }
                Action::Config { name, value } => {
                    if let Err(why) = restore.change(name, value) {
                        self.fail(step.line, &why);
                    }
                }
                Action::Only(servers) => {
                    let included = match servers {
                        Servers::Holdfast => session.product() == Product::Holdfast,
                        Servers::Redis => session.product() != Product::Holdfast,
                        Servers::HoldfastOrRedisSince(version) => session.has_redis(version),
                    };
                    if !included {
                        let directive = self.lines[step.line].trim();
                        match compared {
                            true => println!("{}: {}, so the rest is left out", self.place(step.line), directive),
                            false => skip(&format!("{directive}, this is {}", session.product())),
                        }
                        break;
                    }
                }
            }
        }
        for (peer, connection) in &mut peers.connections {
            if let Some(reply) = connection.unread().filter(|reply| *reply != Reply::Closed) {
                let why = format!("connection {peer} has a reply that no line expects: {}", reply.excerpt());
                self.fail(self.lines.len() - 1, &why);
            }
        }
    }

    fn fail_reply(&self, line: usize, session: &Session, reply: &Reply) -> ! {
        self.fail(line, &format!("received from {}: {}", session.product(), reply.excerpt()))
    }

    /// Panics with the lines up to the one in question, and what is wrong with it.
    fn fail(&self, line: usize, why: &str) -> ! {
        const LINES_BEFORE: usize = 12;
        const CHARS_MAX: usize = 500;
        let mut excerpt = String::new();
        for number in line.saturating_sub(LINES_BEFORE)..=line {
            let mark = if number == line { "-->" } else { "   " };
            let text: String = self.lines[number].trim().chars().take(CHARS_MAX).collect();
            excerpt.push_str(&format!("{mark} {text}\n"));
        }
        panic!("{}\n{excerpt}    {why}\n", self.place(line));
    }

    /// The line in the test's source, where rustfmt puts it: the text opens on the line after `check(`.
    fn place(&self, line: usize) -> String {
        let opens_on_its_own_line = self.lines.first().is_some_and(|line| line.trim().is_empty());
        let first = self.caller.line() as usize + usize::from(opens_on_its_own_line);
        format!("{}:{}", self.caller.file(), first + line)
    }
}

/// Reads a transcript line by line.
struct Parser<'a> {
    transcript: Transcript<'a>,
    /// The next line.
    at: usize,
    /// The connection that spoke last.
    peer: Peer,
    /// The line of an `# eventually` whose reply has not been read yet.
    eventually: Option<usize>,
    /// The reply to each of the requests below it.
    shared: Option<Pattern>,
}

impl<'a> Parser<'a> {
    fn read_line(&mut self) {
        let line = self.at;
        let text = self.transcript.lines[line].trim();
        self.at += 1;
        if is_blank(text) {
            return;
        }
        if let Some(row) = Row::split(text) {
            return self.add_row(row, line);
        }
        self.shared = None;
        if text == "# eventually" {
            self.eventually = Some(line);
        } else if let Some(marked) = Marked::split(text) {
            self.add_marked(&marked, line);
        } else if let Some(directive) = text.strip_prefix("# ") {
            let action = Action::directive(directive)
                .unwrap_or_else(|| self.transcript.fail(line, "there is no such directive (a comment starts with //)"));
            self.add(action, line);
        } else {
            let pattern = self.pattern(text, line);
            if self.is_above_requests() {
                self.shared = Some(pattern);
            } else {
                self.add(Action::Expect { peer: self.peer, pattern }, line);
            }
        }
    }

    fn add_row(&mut self, row: Row<'a>, line: usize) {
        let pattern = match row.reply {
            RowReply::Written(reply) => self.pattern(reply, line),
            RowReply::Success => Pattern::Success,
            RowReply::Above => self.shared.clone().unwrap_or_else(|| {
                self.transcript.fail(line, "expected a reply, or one above this request and those beside it")
            }),
        };
        if !matches!(row.reply, RowReply::Above) {
            self.shared = None;
        }
        self.peer = row.peer;
        self.add(Action::Send { peer: row.peer, args: self.words(row.request, line) }, line);
        self.add(Action::Expect { peer: row.peer, pattern }, line);
    }

    fn add_marked(&mut self, marked: &Marked<'a>, line: usize) {
        let Marked { peer, mark, content } = *marked;
        self.peer = peer.unwrap_or(if mark.starts_with('>') { 1 } else { self.peer });
        let peer = self.peer;
        let action = match mark {
            ">" => Action::Send { peer, args: self.words(content, line) },
            ">>" => Action::SendRaw { peer, bytes: self.words(content, line).concat() },
            "<<" => Action::ExpectRaw { peer, bytes: self.words(content, line).concat() },
            _ => Action::Expect { peer, pattern: self.pattern(content, line) },
        };
        self.add(action, line);
    }

    /// Adds a step. `# eventually` turns the command and the reply after it into one step.
    fn add(&mut self, action: Action, line: usize) {
        let action = match (self.eventually, action) {
            (None, action) | (Some(_), action @ Action::Send { .. }) => action,
            (Some(_), Action::Expect { peer, pattern }) => match self.transcript.steps.pop() {
                Some(Step { action: Action::Send { peer: sender, args }, .. }) if peer == sender => {
                    self.eventually = None;
                    Action::Eventually { peer, args, pattern }
                }
                _ => self.transcript.fail(line, "# eventually needs a command first"),
            },
            (Some(_), _) => self.transcript.fail(line, "# eventually needs one command and one reply"),
        };
        self.transcript.steps.push(Step { line, action });
    }

    fn words(&self, text: &str, line: usize) -> Vec<Vec<u8>> {
        split_args(text).unwrap_or_else(|e| self.transcript.fail(line, &e))
    }

    /// Reads a pattern from `text` and as many of the lines after it as its open brackets need.
    fn pattern(&mut self, text: &str, line: usize) -> Pattern {
        let mut text = text.to_owned();
        loop {
            match (Pattern::parse(&text), self.transcript.lines.get(self.at)) {
                (Ok(pattern), _) => return pattern,
                (Err(ParseError::Unfinished), Some(next)) => {
                    text.push('\n');
                    text.push_str(next);
                    self.at += 1;
                }
                (Err(ParseError::Unfinished), None) => self.transcript.fail(line, "a bracket is never closed"),
                (Err(ParseError::Wrong(why)), _) => self.transcript.fail(line, &why),
            }
        }
    }

    /// Returns true if the next line is a request that has the reply above it.
    fn is_above_requests(&self) -> bool {
        let next = self.transcript.lines[self.at..].iter().map(|line| line.trim()).find(|line| !is_blank(line));
        next.and_then(Row::split).is_some_and(|row| matches!(row.reply, RowReply::Above))
    }
}

fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with("//")
}

impl Action {
    fn directive(text: &str) -> Option<Action> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(match words.as_slice() {
            ["needs", "redis", ">=", version] => Action::Only(Servers::HoldfastOrRedisSince((*version).into())),
            ["holdfast", "only"] => Action::Only(Servers::Holdfast),
            ["redis", "only"] => Action::Only(Servers::Redis),
            ["sleep", pause] => Action::Sleep(Duration::from_millis(pause.strip_suffix("ms")?.parse().ok()?)),
            ["until", ..] => Action::Until { info_line: text.strip_prefix("until ")?.into() },
            ["config", name, value @ ..] if !value.is_empty() => {
                Action::Config { name: (*name).into(), value: value.join(" ") }
            }
            _ => return None,
        })
    }
}

/// A line that names who speaks: `> SET a 1`, `2> GET a`, `2< "1"`, `>> "PING\r\n"`, `<< "+PONG\r\n"`.
struct Marked<'a> {
    peer: Option<Peer>,
    mark: &'a str,
    content: &'a str,
}

impl<'a> Marked<'a> {
    fn split(line: &'a str) -> Option<Marked<'a>> {
        let (digits, rest) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
        let mark = [">>", "<<", ">", "<"].into_iter().find(|mark| rest.starts_with(mark))?;
        Some(Marked { peer: digits.parse().ok(), mark, content: rest[mark.len()..].trim() })
    }
}

struct Peers<'a> {
    session: &'a Session,
    connections: BTreeMap<Peer, Connection>,
}

impl Peers<'_> {
    /// The peer's connection. What other peers have queued is sent first.
    fn get(&mut self, peer: Peer) -> &mut Connection {
        for (_, other) in self.connections.iter_mut().filter(|(number, _)| **number != peer) {
            other.flush();
        }
        self.connections.entry(peer).or_insert_with(|| self.session.connect())
    }

    fn flush(&mut self) {
        self.connections.values_mut().for_each(Connection::flush);
    }
}

/// Puts settings back when the transcript ends, even if it fails.
struct RestoreConfig<'a> {
    session: &'a Session,
    settings: Vec<(String, String)>,
}

impl RestoreConfig<'_> {
    fn change(&mut self, name: &str, value: &str) -> Result<(), String> {
        let mut connection = self.session.connect();
        let old = match connection.run_args(&["CONFIG", "GET", name]) {
            Reply::Array(pair) if pair.len() == 2 => pair[1].text().to_owned(),
            other => return Err(format!("CONFIG GET {name}: {other}")),
        };
        match connection.run_args(&["CONFIG", "SET", name, value]) {
            Reply::Simple(_) => self.settings.push((name.into(), old)),
            other => return Err(format!("CONFIG SET {name} {value}: {other}")),
        }
        Ok(())
    }
}

impl Drop for RestoreConfig<'_> {
    fn drop(&mut self) {
        if self.settings.is_empty() {
            return;
        }
        let mut connection = self.session.connect();
        for (name, value) in self.settings.iter().rev() {
            connection.run_args(&["CONFIG", "SET", name, value]);
        }
    }
}
