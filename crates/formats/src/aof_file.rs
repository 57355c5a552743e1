//! Redis's append-only files, read from front to back one record at a time, and the manifest of a file that has several
//! parts. Knows the formats; refuses to know paths, and what the commands do.
//!
//! ```text
//! file     = RDB file, or nothing | line ...
//! line     = "#" annotation "\r\n"  |  command, as clients send it: *2\r\n$3\r\nDEL\r\n$1\r\na\r\n
//! manifest = line "file NAME seq NUMBER type b|h|i" ...       base, history (to be deleted), increment
//! ```
//!
//! As Redis does with `aof-load-truncated yes`, a file may end in the middle of a command or of a transaction: the
//! incomplete rest is ignored, and [`AofFile::cut`] reports it. The commands of a transaction are returned once its
//! EXEC has been read.

use super::input::{FileError, Input, Trouble};
use super::rdb_file::{self, Item, RdbFile};
use resp::{Limits, OwnedRequest, Scan, Scanner};
use std::collections::VecDeque;
use std::io::Read;

/// One record of a file.
pub enum Record {
    /// An item of the RDB file at the front.
    Item(Item),
    Command(OwnedRequest),
}

/// Where a file was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the incomplete command or transaction begins.
    pub offset: u64,
    /// The length of the incomplete rest in bytes.
    pub bytes: u64,
    pub in_transaction: bool,
}

/// The longest line that Redis reads before a command's arguments.
const LINE_BYTES_MAX: usize = 128;
/// The longest annotation that Redis writes.
const ANNOTATION_BYTES_MAX: usize = 1024;

const LIMITS: Limits = Limits {
    inline_bytes_max: LINE_BYTES_MAX,
    args_max: i32::MAX as usize,
    // Redis had its own limits when it wrote the file; the scanner limits a whole request.
    bulk_bytes_max: u32::MAX as usize,
    unauthenticated: false,
};

/// A file being read: an iterator over its records, which ends after the first error. It reads a single RDB file too.
pub struct AofFile<R> {
    stage: Stage<R>,
    rdb_only: bool,
    scanner: Scanner,
    /// Commands of a complete transaction.
    ready: VecDeque<OwnedRequest>,
    cut: Option<Cut>,
    ended: bool,
}

enum Stage<R> {
    /// Nothing is known yet. The number limits the decompressed size of the RDB file's values.
    Front(Input<R>, usize),
    Rdb(Box<RdbFile<R>>),
    Commands(Input<R>),
    /// Only during a change from one stage to another.
    Changing,
}

impl<R: Read> AofFile<R> {
    /// Starts to read a file. `bytes_max` limits the decompressed size of one value of the RDB file at its front.
    pub fn new(read: R, bytes_max: usize) -> AofFile<R> {
        AofFile {
            stage: Stage::Front(Input::new(read), bytes_max),
            rdb_only: false,
            scanner: Scanner::default(),
            ready: VecDeque::new(),
            cut: None,
            ended: false,
        }
    }

    /// Reads an RDB file that is not part of an AOF: bytes after its end are ignored, as in Redis.
    pub fn rdb_only(mut self) -> AofFile<R> {
        self.rdb_only = true;
        self
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        match &self.stage {
            Stage::Front(input, _) | Stage::Commands(input) => input.offset(),
            Stage::Rdb(file) => file.offset(),
            Stage::Changing => 0,
        }
    }

    /// After the last record: where the file was truncated, if it was.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    fn read(&mut self) -> Result<Option<Record>, FileError> {
        if let Some(command) = self.ready.pop_front() {
            return Ok(Some(Record::Command(command)));
        }
        loop {
            match &mut self.stage {
                Stage::Front(input, bytes_max) => {
                    let is_rdb = rdb_file::is_next(input)?;
                    let bytes_max = *bytes_max;
                    let Stage::Front(input, _) = self.change_stage() else { unreachable!() };
                    self.stage = match is_rdb || self.rdb_only {
                        true => Stage::Rdb(Box::new(RdbFile::from_input(input, bytes_max))),
                        false => Stage::Commands(input),
                    };
                }
                Stage::Rdb(file) => match file.next() {
                    Some(item) => return item.map(|item| Some(Record::Item(item))),
                    None if self.rdb_only => return Ok(None),
                    None => {
                        let Stage::Rdb(file) = self.change_stage() else { unreachable!() };
                        self.stage = Stage::Commands(file.into_input());
                    }
                },
                Stage::Commands(_) => return Ok(self.command_or_transaction()?.map(Record::Command)),
                Stage::Changing => unreachable!("only while one becomes another"),
            }
        }
    }

    fn change_stage(&mut self) -> Stage<R> {
        std::mem::replace(&mut self.stage, Stage::Changing)
    }

    /// Reads the next command. Commands of a transaction are returned once it is complete, without MULTI and EXEC.
    fn command_or_transaction(&mut self) -> Result<Option<OwnedRequest>, FileError> {
        loop {
            let Some(command) = self.command()? else {
                self.note_cut(None);
                return Ok(None);
            };
            if !is_alone(&command, b"multi") {
                return Ok(Some(command));
            }
            let Some(transaction) = self.transaction()? else { return Ok(None) };
            self.ready = transaction;
            if let Some(first) = self.ready.pop_front() {
                return Ok(Some(first));
            }
        }
    }

    /// Reads the commands between MULTI, which has been read, and EXEC; `None` when the file ends before EXEC.
    fn transaction(&mut self) -> Result<Option<VecDeque<OwnedRequest>>, FileError> {
        let Stage::Commands(input) = &self.stage else { return Ok(None) };
        let began = input.began();
        let mut commands = VecDeque::new();
        loop {
            match self.command()? {
                None => {
                    self.note_cut(Some(began));
                    return Ok(None);
                }
                Some(command) if is_alone(&command, b"exec") => return Ok(Some(commands)),
                Some(command) if is_alone(&command, b"multi") => {
                    let Stage::Commands(input) = &self.stage else { return Ok(None) };
                    return Err(input.error(Trouble::Nested));
                }
                Some(command) => commands.push_back(command),
            }
        }
    }

    /// At the end of the file: records an incomplete command, or the transaction that began there.
    fn note_cut(&mut self, transaction: Option<u64>) {
        let Stage::Commands(input) = &self.stage else { return };
        let end = input.offset() + input.unread().len() as u64;
        let offset = transaction.unwrap_or(input.offset());
        self.cut = (end > offset).then_some(Cut { offset, bytes: end - offset, in_transaction: transaction.is_some() });
    }

    /// Reads the next complete command; `None` at the end of the file, where an incomplete one is left unread.
    fn command(&mut self) -> Result<Option<OwnedRequest>, FileError> {
        let Stage::Commands(input) = &mut self.stage else { return Ok(None) };
        loop {
            input.begin("a command");
            if !input.want(1)? {
                return Ok(None);
            }
            match input.unread()[0] {
                b'*' => {}
                b'#' => match annotation(input)? {
                    true => continue,
                    false => return Ok(None),
                },
                other => return Err(input.error(Trouble::NotCommand(other))),
            }
            loop {
                let (command, len) = match self.scanner.scan(input.unread(), &LIMITS) {
                    Scan::Complete(request, len) => (request.iter().collect::<OwnedRequest>(), len),
                    // A command without a name: Redis refuses the file.
                    Scan::Empty(_) => return Err(input.error(Trouble::Malformed)),
                    Scan::Broken(error) => return Err(input.error(Trouble::Command(error))),
                    Scan::Incomplete(_) => match input.more()? {
                        true => continue,
                        false => return Ok(None),
                    },
                };
                input.consume(len);
                self.scanner.shrink();
                return Ok(Some(command));
            }
        }
    }
}

/// Skips a line that begins with `#`; false when the file ends before the line does.
fn annotation<R: Read>(input: &mut Input<R>) -> Result<bool, FileError> {
    input.now_reading("an annotation");
    loop {
        // No further than the longest line, so that the result does not depend on how much is buffered.
        let line = &input.unread()[..input.unread().len().min(ANNOTATION_BYTES_MAX)];
        if let Some(end) = memchr::memchr(b'\n', line) {
            input.consume(end + 1);
            return Ok(true);
        }
        if line.len() == ANNOTATION_BYTES_MAX {
            return Err(input.error(Trouble::Malformed));
        }
        if !input.more()? {
            return Ok(false);
        }
    }
}

fn is_alone(command: &OwnedRequest, name: &[u8]) -> bool {
    let request = command.as_request();
    request.len() == 1 && request.arg(0).eq_ignore_ascii_case(name)
}

impl<R: Read> Iterator for AofFile<R> {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Result<Record, FileError>> {
        if self.ended {
            return None;
        }
        let record = self.read();
        self.ended = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}

// Manifests -----------------------------------------------------------------------------------------------------------

/// The size limit of a manifest; Redis's have about three lines.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Returns the files that a manifest names, in the order in which they are to be read: the base, if there is one, and
/// the increments. Files of the history are left out.
pub fn parse_manifest(text: &[u8]) -> Result<Vec<String>, BadManifest> {
    let (mut base, mut increments) = (None, Vec::new());
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let refuse = |why| BadManifest { line: index + 1, why };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let entry = entry(line).map_err(refuse)?;
        match entry.kind {
            'b' if base.is_some() => return Err(refuse("a second base file")),
            'b' => base = Some(entry.name),
            'h' => {}
            'i' => match increments.last() {
                Some((before, _)) if *before >= entry.number => {
                    return Err(refuse("an increment that is not newer than the one before it"));
                }
                _ => increments.push((entry.number, entry.name)),
            },
            _ => return Err(refuse("a type of file other than b, h and i")),
        }
    }
    let files: Vec<String> = base.into_iter().chain(increments.into_iter().map(|(_, name)| name)).collect();
    match files.is_empty() {
        true => Err(BadManifest { line: 1, why: "no file at all" }),
        false => Ok(files),
    }
}

/// Why a manifest was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadManifest {
    pub line: usize,
    pub why: &'static str,
}

impl std::error::Error for BadManifest {}

impl std::fmt::Display for BadManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} of the manifest: {}", self.line, self.why)
    }
}

struct Entry {
    name: String,
    number: u64,
    kind: char,
}

/// Parses a line with the quoting of inline commands, as Redis does.
fn entry(line: &[u8]) -> Result<Entry, &'static str> {
    const UNREADABLE: &str = "not of the form \"file NAME seq NUMBER type TYPE\"";
    let line = [line, b"\n"].concat();
    let mut scanner = Scanner::default();
    let Scan::Complete(words, _) = scanner.scan(&line, &Limits::default()) else { return Err(UNREADABLE) };
    let (mut name, mut number, mut kind) = (None, None, None);
    let words: Vec<&[u8]> = words.iter().collect();
    for pair in words.chunks(2) {
        let [word, value] = *pair else { return Err(UNREADABLE) };
        let value = std::str::from_utf8(value).map_err(|_| "a name that is not UTF-8")?;
        match word.to_ascii_lowercase().as_slice() {
            b"file" => name = Some(value.to_string()),
            b"seq" => number = value.parse().ok(),
            b"type" => kind = value.chars().next(),
            // As Redis does, skip words that a later version may add.
            _ => {}
        }
    }
    let (Some(name), Some(number), Some(kind)) = (name, number, kind) else { return Err(UNREADABLE) };
    // As in Redis: a manifest names files of its own directory only.
    match name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." {
        true => Err("a path where the name of a file should be"),
        false => Ok(Entry { name, number, kind }),
    }
}

#[cfg(test)]
mod tests;
