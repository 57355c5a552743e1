//! A conversation with the server, written down: parses it, holds it, compares. `README.md` describes the notation.

use std::collections::BTreeMap;
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::pattern::{ParseError, Pattern};
use crate::reply::Reply;
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
        let mut transcript = Transcript { lines: text.lines().collect(), steps: Vec::new(), caller };
        let mut peer = 1;
        let mut eventually = None;
        let mut at = 0;
        while at < transcript.lines.len() {
            let line = at;
            let text = transcript.lines[at].trim();
            at += 1;
            if text.is_empty() || text.starts_with("//") {
                continue;
            }
            if text == "# eventually" {
                eventually = Some(line);
                continue;
            }
            let action = match Marked::split(text) {
                Some(Marked { peer: named, mark, content }) => {
                    peer = named.unwrap_or(if mark.starts_with('>') { 1 } else { peer });
                    let words = || split_args(content).unwrap_or_else(|e| transcript.fail(line, &e));
                    match mark {
                        ">" => Action::Send { peer, args: words() },
                        ">>" => Action::SendRaw { peer, bytes: words().concat() },
                        "<<" => Action::ExpectRaw { peer, bytes: words().concat() },
                        _ => Action::Expect { peer, pattern: transcript.pattern(content, line, &mut at) },
                    }
                }
                None => match text.strip_prefix("# ") {
                    Some(directive) => Action::directive(directive).unwrap_or_else(|| {
                        transcript.fail(line, "there is no such directive (a comment starts with //)")
                    }),
                    None => Action::Expect { peer, pattern: transcript.pattern(text, line, &mut at) },
                },
            };
            // `# eventually` turns the command and the reply after it into one step.
            let action = match (eventually, action) {
                (None, action) => action,
                (Some(_), Action::Send { peer, args }) => {
                    transcript.steps.push(Step { line, action: Action::Send { peer, args } });
                    continue;
                }
                (Some(_), Action::Expect { peer, pattern }) => match transcript.steps.pop() {
                    Some(Step { action: Action::Send { peer: sender, args }, .. }) if peer == sender => {
                        eventually = None;
                        Action::Eventually { peer, args, pattern }
                    }
                    _ => transcript.fail(line, "# eventually needs a command first"),
                },
                (Some(_), _) => transcript.fail(line, "# eventually needs one command and one reply"),
            };
            transcript.steps.push(Step { line, action });
        }
        if let Some(line) = eventually {
            transcript.fail(line, "# eventually needs one command and one reply");
        }
        transcript
    }

    /// Reads a pattern from `text` and as many of the lines after it as its open brackets need.
    fn pattern(&self, text: &str, line: usize, next: &mut usize) -> Pattern {
        let mut text = text.to_owned();
        loop {
            match Pattern::parse(&text) {
                Ok(pattern) => return pattern,
                Err(ParseError::Unfinished) if *next < self.lines.len() => {
                    text.push('\n');
                    text.push_str(self.lines[*next]);
                    *next += 1;
                }
                Err(ParseError::Unfinished) => self.fail(line, "a bracket is never closed"),
                Err(ParseError::Wrong(why)) => self.fail(line, &why),
            }
        }
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
