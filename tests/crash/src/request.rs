//! One request of the load: whole or absent after a crash. Knows its bytes and what it does to the model.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use wire::Reply;

use crate::model::State;

/// A command's name and arguments.
pub(crate) type Command = Vec<Vec<u8>>;

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) db: u32,
    pub(crate) commands: Vec<Command>,
    /// How several commands are made one request.
    pub(crate) bracket: Bracket,
    pub(crate) sent_ms: i64,
    pub(crate) subject: Subject,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Bracket {
    /// MULTI … EXEC
    Multi,
    /// TXN.BEGIN … TXN.COMMIT: each command is answered at once.
    Txn,
}

/// Whose data a request changes, and so who can say what is right after it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Subject {
    /// The client's own keys: the model knows the state and the reply.
    Own,
    /// The client's own keys that expire during the test: the model knows the state, the reply depends on the moment.
    Near,
    /// A counter that all clients add to.
    Counter { number: usize, by: i64 },
    /// A group of keys that all clients set and delete as a whole; `write` is the number of this write in its history.
    Group { number: usize, write: usize },
    /// An amount that goes from one account to another.
    Transfer,
    /// A version of a register that all clients write.
    Register { number: usize, version: u64 },
    /// A snapshot of those registers.
    Checkpoint,
    /// A restore of that snapshot, which keeps what is newer.
    Merge,
    /// A write of a job of the queue that all clients share.
    Job,
    /// Claims of such jobs.
    Claim,
    /// A look at the groups of that queue.
    Groups,
}

impl Request {
    pub(crate) fn new(db: u32, command: Command) -> Request {
        Request { db, commands: vec![command], bracket: Bracket::Multi, sent_ms: now_ms(), subject: Subject::Own }
    }

    pub(crate) fn about(self, subject: Subject) -> Request {
        Request { subject, ..self }
    }

    /// Changes the model. Returns the reply the server must give, `None` if that cannot be known.
    pub(crate) fn apply(&self, state: &mut State) -> Option<Reply> {
        if !matches!(self.subject, Subject::Own | Subject::Near) {
            return None;
        }
        let mut replies: Vec<Option<Reply>> =
            self.commands.iter().map(|command| state.apply(self.db, command, self.sent_ms)).collect();
        match self.subject {
            Subject::Near => None,
            _ if replies.len() == 1 => replies.remove(0),
            _ => replies.into_iter().collect::<Option<Vec<Reply>>>().map(Reply::Array),
        }
    }

    /// The same after the reply came, which may say what the client could not know.
    pub(crate) fn settle(&self, state: &mut State, reply: &Reply) {
        self.apply(state);
        if let [command] = self.commands.as_slice() {
            state.learn(self.db, command, reply);
        }
    }

    /// The request as bytes.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        match self.commands.as_slice() {
            [command] => encode(command, into),
            several => {
                let (begin, end) = match self.bracket {
                    Bracket::Multi => ("MULTI", "EXEC"),
                    Bracket::Txn => ("TXN.BEGIN", "TXN.COMMIT"),
                };
                encode(&[begin], into);
                several.iter().for_each(|command| encode(command, into));
                encode(&[end], into);
            }
        }
    }

    /// What the replies to all of it say: that of EXEC, or those that a transaction gave before COMMIT.
    pub(crate) fn reply(&self, before: Vec<Reply>, last: Reply) -> Reply {
        match self.commands.len() > 1 && self.bracket == Bracket::Txn {
            true => Reply::Array(before.into_iter().rev().take(self.commands.len()).rev().collect()),
            false => last,
        }
    }

    /// How many replies come before the one that acknowledges the request: those of MULTI and what it queues.
    pub(crate) fn replies_before(&self) -> usize {
        if self.commands.len() == 1 { 0 } else { self.commands.len() + 1 }
    }
}

/// As one would type it, cut short.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "db {}:", self.db)?;
        for (number, command) in self.commands.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { ";" })?;
            for arg in command.iter().take(ARGS_SHOWN_MAX) {
                write!(f, " {}", excerpt(arg))?;
            }
            if command.len() > ARGS_SHOWN_MAX {
                write!(f, " … ({} arguments)", command.len())?;
            }
        }
        Ok(())
    }
}

const ARGS_SHOWN_MAX: usize = 12;
const BYTES_SHOWN_MAX: usize = 60;

/// Bytes in readable form, cut short.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let plain = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic) && !bytes.contains(&b'"');
    match bytes.len() {
        ..=BYTES_SHOWN_MAX if plain => String::from_utf8_lossy(bytes).into_owned(),
        ..=BYTES_SHOWN_MAX => wire::quote(bytes),
        len => format!("{}…({len} bytes)", wire::quote(&bytes[..BYTES_SHOWN_MAX])),
    }
}

pub(crate) fn encode(args: &[impl AsRef<[u8]>], into: &mut Vec<u8>) {
    into.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        into.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        into.extend_from_slice(arg.as_ref());
        into.extend_from_slice(b"\r\n");
    }
}

/// A command from parts of any byte-like type.
pub(crate) fn command(parts: &[&dyn AsRef<[u8]>]) -> Command {
    parts.iter().map(|part| part.as_ref().to_vec()).collect()
}

pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as i64
}
