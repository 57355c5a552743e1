//! Reads a request's arguments one after the other. Knows how numbers and option words are written; refuses to
//! know any command.

use crate::error::CommandError;
use keyspace::Key;
use numbers;
use resp::Request;

/// A cursor over the arguments behind the command's name.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    request: Request<'a>,
    next: usize,
    /// The first key and its position: the gate has hashed it already to find its shard.
    first_key: Option<(usize, Key<'a>)>,
}

impl<'a> Args<'a> {
    /// The arguments of `request` from position `next` on.
    #[inline]
    pub fn new(request: Request<'a>, next: usize, first_key: Option<(usize, Key<'a>)>) -> Args<'a> {
        Args { request, next, first_key }
    }

    /// The whole request, command name included.
    pub fn request(&self) -> Request<'a> {
        self.request
    }

    /// The position of the next argument in the request.
    pub fn position(&self) -> usize {
        self.next
    }

    /// How many arguments are left.
    #[inline]
    pub fn left(&self) -> usize {
        self.request.len() - self.next
    }

    /// True when all have been read.
    pub fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The next argument, if there is one.
    #[inline]
    pub fn try_next(&mut self) -> Option<&'a [u8]> {
        if self.next >= self.request.len() {
            return None;
        }
        self.next += 1;
        Some(self.request.arg(self.next - 1))
    }

    /// The next argument; a syntax error when there is none.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], CommandError> {
        self.try_next().ok_or(CommandError::Syntax)
    }

    /// The next argument as a key.
    #[inline]
    pub fn key(&mut self) -> Result<Key<'a>, CommandError> {
        match self.first_key {
            Some((at, key)) if at == self.next => {
                self.next += 1;
                Ok(key)
            }
            _ => self.bytes().map(Key::new),
        }
    }

    /// The next argument as a whole number.
    #[inline]
    pub fn int(&mut self) -> Result<i64, CommandError> {
        numbers::parse_i64(self.bytes()?).ok_or(CommandError::NotInteger)
    }

    /// The next argument, left in place.
    pub fn peek(&self) -> Option<&'a [u8]> {
        (self.next < self.request.len()).then(|| self.request.arg(self.next))
    }

    /// Takes the next argument if it is this option word, in any case.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        self.next += usize::from(found);
        found
    }

    /// All arguments that are left.
    #[inline]
    pub fn rest(&mut self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let (request, from) = (self.request, self.next);
        self.next = request.len();
        (from..request.len()).map(move |index| request.arg(index))
    }

    /// An error unless every argument has been read.
    pub fn finish(&self) -> Result<(), CommandError> {
        if self.is_empty() { Ok(()) } else { Err(CommandError::Syntax) }
    }
}

/// True when `arg` is this option word, in any case.
#[inline]
pub fn is_word(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}
