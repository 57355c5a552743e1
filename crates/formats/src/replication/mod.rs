//! What Redis and Valkey send to a replica: replies to the handshake, all data as an RDB file, then every change as a command.
//! Knows the order and the framing of these; refuses to know sockets, what the replica says, and what is done with it.
//!
//! ```text
//! handshake = a line for each request: "+OK" | "-ERR why", ...
//! PSYNC     = "+FULLRESYNC" id offset, payload, commands  |  "+CONTINUE" [id], commands  |  "-ERR why"
//! payload   = "\n" ... | "$" length "\r\n" RDB file                                          (from a file)
//!           | "\n" ... | "$EOF:" mark "\r\n" RDB file, mark                                  (while it is written)
//! commands  = as clients send them: *2\r\n$3\r\nDEL\r\n$1\r\na\r\n
//! ```
//!
//! The offset is that of the last byte before the commands; each byte of a command counts one. A server that has to prepare
//! sends empty lines meanwhile, so that the connection does not look dead.

mod sync_reply;
#[cfg(test)]
mod tests;

pub use crate::input::{FileError, Trouble};
pub use sync_reply::{ReplicationId, SyncReply};

use crate::input::Input;
use crate::rdb::reader::Source;
use crate::rdb_file::{Item, RdbFile};
use resp::{Limits, OwnedRequest, Scan, Scanner};
use std::io::{self, Read};

/// The longest line of a handshake.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The bytes that end an RDB file whose length nobody knew when it began.
const MARK_BYTES: usize = 40;

/// The longest command: places in a request are numbers of 32 bits.
const COMMAND_BYTES_MAX: usize = 4_000_000_000;

/// The source has accepted these requests: only [`ReplicationStream::with_command_bytes_max`] limits them.
const LIMITS: Limits = Limits {
    inline_bytes_max: LINE_BYTES_MAX,
    args_max: i32::MAX as usize,
    bulk_bytes_max: u32::MAX as usize,
    unauthenticated: false,
};

/// What a source sends, read from front to back. Call [`Self::line`] for the handshake, then [`Self::sync_reply`]; after a
/// full resynchronisation [`Self::begin_payload`] and [`Self::item`] until there is none; then [`Self::advance`].
pub struct ReplicationStream<R> {
    stage: Stage<R>,
    /// Limits the decompressed size of one value of the RDB file.
    bytes_max: usize,
    command_bytes_max: usize,
    scanner: Scanner,
    stream_db: Option<u64>,
}

enum Stage<R> {
    /// Between two lines or commands.
    Text(Input<R>),
    Rdb {
        file: Box<RdbFile<R>>,
        payload: Payload,
        began: u64,
    },
    /// Only during a change from one stage to another.
    Changing,
}

/// How the end of the RDB file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    Length(u64),
    /// It is followed by these bytes.
    Mark([u8; MARK_BYTES]),
}

/// What comes next in the stream of commands.
pub enum Next {
    Command {
        command: OwnedRequest,
        /// How far it brings the offset.
        bytes: u64,
    },
    /// Nothing whole has arrived: the source of bytes reported a timeout.
    NotYet,
    /// The connection was closed, perhaps within a command.
    Ended,
}

impl<R: Read> ReplicationStream<R> {
    pub fn new(read: R, bytes_max: usize) -> ReplicationStream<R> {
        ReplicationStream {
            stage: Stage::Text(Input::new(read)),
            bytes_max,
            command_bytes_max: COMMAND_BYTES_MAX,
            scanner: Scanner::default(),
            stream_db: None,
        }
    }

    /// Refuses a command of more bytes, before all of it has come.
    pub fn with_command_bytes_max(mut self, bytes: u64) -> ReplicationStream<R> {
        self.command_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX).min(COMMAND_BYTES_MAX);
        self
    }

    /// How many bytes have come, as far as that is known.
    pub fn bytes_read(&self) -> u64 {
        match &self.stage {
            Stage::Text(input) => input.offset() + input.unread().len() as u64,
            Stage::Rdb { file, .. } => file.offset(),
            Stage::Changing => 0,
        }
    }

    /// The database that is selected where the commands begin, if the RDB file says so.
    pub fn stream_db(&self) -> Option<u64> {
        self.stream_db
    }

    /// The next line that is not empty, without its end. [`Trouble::Ended`] when there is none.
    pub fn line(&mut self) -> Result<String, FileError> {
        let input = self.text("a reply");
        loop {
            let line = &input.unread()[..input.unread().len().min(LINE_BYTES_MAX)];
            let Some(end) = memchr::memchr(b'\n', line) else {
                if line.len() == LINE_BYTES_MAX {
                    return Err(input.error(Trouble::Malformed));
                }
                match input.more()? {
                    true => continue,
                    false => return Err(input.error(Trouble::Ended)),
                }
            };
            let text = String::from_utf8_lossy(line[..end].trim_ascii()).into_owned();
            input.consume(end + 1);
            if !text.is_empty() {
                return Ok(text);
            }
        }
    }

    /// The reply to PSYNC.
    pub fn sync_reply(&mut self) -> Result<SyncReply, FileError> {
        let line = self.line()?;
        let reply = SyncReply::parse(&line);
        reply.ok_or_else(|| self.text("the reply to PSYNC").error(Trouble::Malformed))
    }

    /// Reads what precedes the RDB file. A timeout of the source of bytes is an error, after which this can be called again.
    pub fn begin_payload(&mut self) -> Result<Payload, FileError> {
        let line = self.line()?;
        let input = self.text("the length of the RDB file");
        let payload = match line.strip_prefix('$').map(|rest| (rest, rest.strip_prefix("EOF:"))) {
            Some((_, Some(mark))) => mark.as_bytes().try_into().ok().map(Payload::Mark),
            Some((length, None)) => length.parse().ok().map(Payload::Length),
            None => None,
        };
        let payload = payload.ok_or_else(|| input.error(Trouble::Malformed))?;
        let Stage::Text(input) = std::mem::replace(&mut self.stage, Stage::Changing) else { unreachable!() };
        let began = input.offset();
        let file = Box::new(RdbFile::from_input(input, self.bytes_max));
        self.stage = Stage::Rdb { file, payload, began };
        Ok(payload)
    }

    /// The next item of the RDB file; `None` at its end, once.
    ///
    /// # Panics
    ///
    /// If no payload has begun.
    pub fn item(&mut self) -> Result<Option<Item>, FileError> {
        let Stage::Rdb { file, .. } = &mut self.stage else { panic!("no RDB file is being read") };
        if let Some(item) = file.next() {
            return item.map(Some);
        }
        let Stage::Rdb { file, payload, began } = std::mem::replace(&mut self.stage, Stage::Changing) else {
            unreachable!()
        };
        self.stream_db = file.stream_db();
        let mut input = file.into_input();
        input.begin("the end of the RDB file");
        match payload {
            Payload::Length(length) if input.offset() - began != length => return Err(input.error(Trouble::Malformed)),
            Payload::Length(_) => {}
            Payload::Mark(mark) if input.array::<MARK_BYTES>()? != mark => return Err(input.error(Trouble::Malformed)),
            Payload::Mark(_) => {}
        }
        self.stage = Stage::Text(input);
        Ok(None)
    }

    /// The next command. Empty lines count into the offset of the one behind them.
    pub fn advance(&mut self) -> Result<Next, FileError> {
        let Stage::Text(input) = &mut self.stage else { panic!("the RDB file is not at its end") };
        input.begin("a command");
        let mut empty = 0;
        loop {
            // Only what is certain to be empty is consumed, so that a timeout loses no byte of the offset.
            let found = match input.unread().get(empty..) {
                None | Some([]) => None,
                Some([b'\n' | b'\r', ..]) => {
                    empty += 1;
                    continue;
                }
                Some([b'*', ..]) => match self.scanner.scan(&input.unread()[empty..], &LIMITS) {
                    Scan::Complete(request, len) => Some((OwnedRequest::copy_of(request), len)),
                    Scan::Incomplete(_) => None,
                    Scan::Empty(_) => return Err(input.error(Trouble::Malformed)),
                    Scan::Broken(error) => return Err(input.error(Trouble::Command(error))),
                },
                Some([other, ..]) => return Err(input.error(Trouble::NotCommand(*other))),
            };
            if let Some((command, len)) = found {
                input.consume(empty + len);
                self.scanner.shrink();
                return Ok(Next::Command { command, bytes: (empty + len) as u64 });
            }
            if input.unread().len() > self.command_bytes_max {
                return Err(input.error(Trouble::CommandTooLong(self.command_bytes_max)));
            }
            match input.more() {
                Ok(true) => {}
                Ok(false) => return Ok(Next::Ended),
                Err(FileError { trouble: Trouble::Io(error), .. }) if is_timeout(&error) => return Ok(Next::NotYet),
                Err(error) => return Err(error),
            }
        }
    }

    /// The input, between two lines.
    fn text(&mut self, reading: &'static str) -> &mut Input<R> {
        let Stage::Text(input) = &mut self.stage else { panic!("the RDB file is not at its end") };
        input.begin(reading);
        input
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl FileError {
    /// True when no bytes came in time. What has come is kept: between two commands or lines, reading can go on.
    pub fn is_timeout(&self) -> bool {
        matches!(&self.trouble, Trouble::Io(error) if is_timeout(error))
    }
}
