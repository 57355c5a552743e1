//! What a client asks for in one step, how it is sent and how it is written down. Knows nothing of what it means.

use std::fmt;

use wire::Reply;

use crate::scripts::SCRIPTS;

/// One step of a client: it takes effect at one instant, or never.
#[derive(Clone)]
pub(crate) enum Action {
    Run(Command),
    Watch(Vec<String>),
    Unwatch,
    Transaction(Vec<Command>, Ending),
}

#[derive(Clone)]
pub(crate) enum Command {
    Plain(Vec<String>),
    Script { script: usize, by: By, keys: Vec<String>, args: Vec<String> },
}

/// How a script is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// EVAL
    Source,
    /// EVALSHA
    Digest,
    /// FCALL of the function that is the same script.
    Function,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exec,
    /// EXEC after a request that could not be queued.
    ExecInVain,
    Discard,
}

/// What cannot be queued: too few arguments.
const REFUSED: &str = "INCR";

impl Command {
    /// A command without blanks in its arguments.
    pub(crate) fn plain(line: impl AsRef<str>) -> Command {
        Command::Plain(line.as_ref().split_whitespace().map(str::to_owned).collect())
    }

    /// Whether it leaves everything as it is, in every state.
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Command::Plain(words) => {
                const READS: &str =
                    "GET MGET EXISTS DBSIZE HGET HLEN HGETALL ZSCORE ZCARD ZRANGE LRANGE LLEN IDX.RANGE RUN.EVENTS";
                READS.split(' ').any(|read| read == words[0])
            }
            Command::Script { script, .. } => SCRIPTS[*script].only_reads,
        }
    }

    /// Whether this reply says that nothing was changed.
    pub(crate) fn changed_nothing(&self, told: &Reply) -> bool {
        let words = match self {
            _ if self.only_reads() => return true,
            // What it did before its error stays.
            Command::Script { .. } => return false,
            Command::Plain(words) => words,
        };
        match (words[0].as_str(), told) {
            (_, Reply::Error(_)) => true,
            ("DEL" | "HDEL" | "COPY" | "MSETNX" | "HCAS" | "ZREM", told) => *told == Reply::Integer(0),
            ("SET" | "GETDEL", told) => *told == Reply::NilBulk,
            ("LPOP" | "RPOP" | "LMOVE", told) => *told == Reply::NilBulk,
            ("BLPOP" | "BRPOP" | "BLMOVE", told) => told.is_nil(),
            ("ZPOPMIN", told) => told.items().is_empty(),
            ("RUN.APPEND", told) => *part(told, "persisted") == Reply::Integer(0),
            _ => false,
        }
    }

    fn request(&self, digests: &[String]) -> Vec<String> {
        match self {
            Command::Plain(words) => words.clone(),
            Command::Script { script, by, keys, args } => {
                let what = match by {
                    By::Source => SCRIPTS[*script].source,
                    By::Digest => &digests[*script],
                    By::Function => SCRIPTS[*script].name,
                };
                [by.command(), what]
                    .map(str::to_owned)
                    .into_iter()
                    .chain([keys.len().to_string()])
                    .chain(keys.iter().chain(args).cloned())
                    .collect()
            }
        }
    }
}

impl By {
    pub(crate) fn command(self) -> &'static str {
        match self {
            By::Source => "EVAL",
            By::Digest => "EVALSHA",
            By::Function => "FCALL",
        }
    }
}

impl Action {
    /// The requests that make it up. The reply to the last one is the reply to the action.
    pub(crate) fn requests(&self, digests: &[String]) -> Vec<Vec<String>> {
        let word = |word: &str| vec![word.to_owned()];
        match self {
            Action::Run(command) => vec![command.request(digests)],
            Action::Watch(keys) => vec![[&word("WATCH"), keys.as_slice()].concat()],
            Action::Unwatch => vec![word("UNWATCH")],
            Action::Transaction(commands, ending) => {
                let queued = commands.iter().map(|command| command.request(digests));
                let refused = (*ending == Ending::ExecInVain).then(|| word(REFUSED));
                let end = if *ending == Ending::Discard { "DISCARD" } else { "EXEC" };
                [word("MULTI")].into_iter().chain(queued).chain(refused).chain([word(end)]).collect()
            }
        }
    }

    /// Its reply, with sorted what has no order of its own and without what a script's error tells about the script.
    pub(crate) fn tidy(&self, reply: Reply) -> Reply {
        match (self, reply) {
            (Action::Run(command), reply) => tidy(command, reply),
            (Action::Transaction(commands, _), Reply::Array(replies)) => {
                Reply::Array(commands.iter().zip(replies).map(|(command, reply)| tidy(command, reply)).collect())
            }
            (_, reply) => reply,
        }
    }
}

fn tidy(command: &Command, reply: Reply) -> Reply {
    match (command, reply) {
        (Command::Plain(words), Reply::Array(items)) if words[0] == "HGETALL" => {
            let mut fields: Vec<&[Reply]> = items.chunks(2).collect();
            fields.sort_by_key(|field| field[0].bytes());
            Reply::Array(fields.concat())
        }
        // Where it cannot wait, in a transaction, it is the other null.
        (Command::Plain(words), Reply::NilArray) if words[0] == "BLMOVE" => Reply::NilBulk,
        // Without the times, which are the server's own.
        (Command::Plain(words), appended @ Reply::Array(_)) if words[0] == "RUN.APPEND" => {
            parts(&appended, &["runSeq", "idempotent", "persisted", "eventId", "mismatch"])
        }
        (Command::Plain(words), Reply::Array(events)) if words[0] == "RUN.EVENTS" => {
            let event = |event: &Reply| parts(event, &["runSeq", "eventId", "idempotencyKey", "eventData"]);
            Reply::Array(events.iter().map(event).collect())
        }
        (_, Reply::Error(text)) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            let text = text.split(" script: ").next().unwrap_or_default();
            // Commands that Redis does not have tell the key's type.
            Reply::Error(text.split(": the key's type is ").next().unwrap_or_default().into())
        }
        (_, reply) => reply,
    }
}

/// Some pairs of a map.
fn parts(map: &Reply, names: &[&str]) -> Reply {
    let pair = |name: &&str| [Reply::Bulk((*name).into()), part(map, name).clone()];
    Reply::Array(names.iter().flat_map(pair).collect())
}

/// What a map says under a name.
fn part<'a>(map: &'a Reply, name: &str) -> &'a Reply {
    let found = map.items().chunks(2).find(|pair| pair[0] == Reply::Bulk(name.into()));
    found.map_or_else(|| panic!("{map} has no {name}"), |pair| &pair[1])
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Run(command) => write!(f, "{command}"),
            Action::Watch(keys) => write!(f, "WATCH {}", keys.join(" ")),
            Action::Unwatch => f.write_str("UNWATCH"),
            Action::Transaction(commands, ending) => {
                f.write_str("MULTI; ")?;
                commands.iter().try_for_each(|command| write!(f, "{command}; "))?;
                match ending {
                    Ending::Exec => f.write_str("EXEC"),
                    Ending::ExecInVain => write!(f, "{REFUSED}; EXEC"),
                    Ending::Discard => f.write_str("DISCARD"),
                }
            }
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Plain(words) => f.write_str(&words.join(" ")),
            Command::Script { script, by, keys, args } => {
                write!(f, "{} {} {}", by.command(), SCRIPTS[*script].name, keys.len())?;
                keys.iter().chain(args).try_for_each(|word| write!(f, " {word}"))
            }
        }
    }
}
