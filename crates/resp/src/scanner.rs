//! Finds complete requests in a buffer, without copying arguments. Knows framing and its limits; refuses to
//! know what the arguments mean.

use crate::inline;
use crate::request::{Pipeline, Request, Span};
use memchr::{memchr, memchr2};
use std::fmt;

/// The limits of a request. The defaults are Redis's, except that Redis accepts 2³¹ − 1 arguments since 7.0.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest inline request and longest count line.
    pub inline_bytes_max: usize,
    /// Most arguments in one request.
    pub args_max: usize,
    /// Longest single argument.
    pub bulk_bytes_max: usize,
    /// True until the client has authenticated; until then only small requests are accepted.
    pub unauthenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            inline_bytes_max: 64 * 1024,
            args_max: 1024 * 1024,
            bulk_bytes_max: 512 * 1024 * 1024,
            unauthenticated: false,
        }
    }
}

/// Limits for clients that have not authenticated yet, as in Redis.
const UNAUTHENTICATED_ARGS_MAX: usize = 10;
const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 * 1024;

/// The range of a [`Span`], whatever the settings allow.
const REQUEST_BYTES_MAX: usize = u32::MAX as usize;

/// The result of a scan.
pub enum Scan<'a> {
    /// A whole request, and how many bytes of the buffer it took.
    Complete(Request<'a>, usize),
    /// An empty request (`*0`, a blank line), to be skipped.
    Empty(usize),
    /// More bytes are needed; at least this many, as far as is known yet.
    Incomplete(usize),
    /// The client violates the protocol; reply with the error and close.
    Broken(ProtocolError),
}

/// A violation of the protocol, worded as Redis words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    TooBigInline,
    UnbalancedQuotes,
    TooBigCountLine,
    TooBigBulkLine,
    InvalidCount,
    UnauthenticatedCount,
    ExpectedBulk(u8),
    InvalidBulkLength,
    UnauthenticatedBulk,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::TooBigInline => f.write_str("Protocol error: too big inline request"),
            ProtocolError::UnbalancedQuotes => f.write_str("Protocol error: unbalanced quotes in request"),
            ProtocolError::TooBigCountLine => f.write_str("Protocol error: too big mbulk count string"),
            ProtocolError::TooBigBulkLine => f.write_str("Protocol error: too big bulk count string"),
            ProtocolError::InvalidCount => f.write_str("Protocol error: invalid multibulk length"),
            ProtocolError::UnauthenticatedCount => f.write_str("Protocol error: unauthenticated multibulk length"),
            ProtocolError::ExpectedBulk(got) => {
                write!(f, "Protocol error: expected '$', got '{}'", char::from(*got))
            }
            ProtocolError::InvalidBulkLength => f.write_str("Protocol error: invalid bulk length"),
            ProtocolError::UnauthenticatedBulk => f.write_str("Protocol error: unauthenticated bulk length"),
        }
    }
}

/// Scans one client's requests. It remembers its position in an unfinished request, so that a request of a million
/// arguments that arrives in a thousand pieces is scanned once. Between two calls that end in [`Scan::Incomplete`] the
/// caller may append to the buffer, but not shift it.
#[derive(Default)]
pub struct Scanner {
    spans: Vec<Span>,
    /// Unescaped arguments of an inline request.
    text: Vec<u8>,
    /// How far the unfinished request has been read.
    position: usize,
    /// Arguments still missing; 0 = at the start of a request.
    missing: usize,
}

/// Span lists longer than this are freed after the request, so that an idle client stays small.
const SPANS_KEPT: usize = 32;

impl Scanner {
    /// Looks for a request at the start of `buffer`.
    #[inline]
    pub fn scan<'a>(&'a mut self, buffer: &'a [u8], limits: &Limits) -> Scan<'a> {
        if self.missing == 0 {
            match buffer.first() {
                None => return Scan::Incomplete(1),
                Some(b'*') => {}
                Some(_) => return self.scan_inline(buffer, limits),
            }
            match self.count_line(buffer, limits) {
                Ok(Some(0)) => {
                    let consumed = self.position;
                    self.position = 0;
                    return Scan::Empty(consumed);
                }
                Ok(Some(count)) => self.missing = count,
                Ok(None) => return Scan::Incomplete(buffer.len() + 1),
                Err(error) => return Scan::Broken(error),
            }
        }
        match self.arguments(buffer, limits) {
            Ok(None) => {
                let consumed = self.position;
                self.position = 0;
                Scan::Complete(Request::new(buffer, &self.spans), consumed)
            }
            Ok(Some(needed)) => Scan::Incomplete(needed),
            Err(error) => Scan::Broken(error),
        }
    }

    /// Scans up to `count_max` complete array requests from the start of `buffer` into `pipeline`. It stops before an
    /// inline request, an unfinished request and a protocol violation; [`Scanner::scan`] handles those when the
    /// pipeline is used up. A caller that drops the pipeline earlier calls [`Scanner::restart`].
    pub fn scan_pipeline(&mut self, buffer: &[u8], limits: &Limits, count_max: usize, pipeline: &mut Pipeline) {
        pipeline.clear();
        let mut at = 0;
        while pipeline.len() < count_max && self.missing == 0 && buffer.get(at) == Some(&b'*') {
            let Scan::Complete(request, len) = self.scan(&buffer[at..], limits) else { return };
            pipeline.push(request, at, len);
            at += len;
        }
    }

    /// Forgets an unfinished request: the next scan starts over.
    pub fn restart(&mut self) {
        self.position = 0;
        self.missing = 0;
    }

    /// Heap bytes held between requests.
    pub fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    /// Frees the memory of an unusually large request. Only between requests.
    pub fn shrink(&mut self) {
        if self.missing == 0 && self.spans.capacity() > SPANS_KEPT {
            self.spans = Vec::new();
        }
        if self.missing == 0 && self.text.capacity() > 0 {
            self.text = Vec::new();
        }
    }

    /// Reads `*count\r\n` at the start of the buffer and moves `position` after it.
    fn count_line(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        self.spans.clear();
        let Some((line, next)) = line_at(buffer, 1) else {
            return too_long(buffer.len(), limits, ProtocolError::TooBigCountLine);
        };
        let count = parse_i64(line).ok_or(ProtocolError::InvalidCount)?;
        self.position = next;
        if count <= 0 {
            return Ok(Some(0));
        }
        let count = count as usize;
        if count > limits.args_max {
            return Err(ProtocolError::InvalidCount);
        }
        if limits.unauthenticated && count > UNAUTHENTICATED_ARGS_MAX {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        Ok(Some(count))
    }

    /// Reads the missing arguments. Returns `Some(needed)` when the buffer ends first: its length must reach `needed`.
    #[inline]
    fn arguments(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        while self.missing > 0 {
            let at = self.position;
            match buffer.get(at) {
                None => return Ok(Some(at + 1)),
                Some(b'$') => {}
                Some(other) => return Err(ProtocolError::ExpectedBulk(*other)),
            }
            let Some((line, start)) = line_at(buffer, at + 1) else {
                return too_long(buffer.len() - at, limits, ProtocolError::TooBigBulkLine)
                    .map(|_: Option<usize>| Some(buffer.len() + 1));
            };
            let len = match parse_i64(line) {
                Some(len) if len >= 0 && len as usize <= limits.bulk_bytes_max => len as usize,
                _ => return Err(ProtocolError::InvalidBulkLength),
            };
            if limits.unauthenticated && len > UNAUTHENTICATED_BULK_BYTES_MAX {
                return Err(ProtocolError::UnauthenticatedBulk);
            }
            let end = start + len + 2;
            if end > REQUEST_BYTES_MAX {
                return Err(ProtocolError::InvalidBulkLength);
            }
            if buffer.len() < end {
                return Ok(Some(end));
            }
            // As in Redis, the two bytes after the argument are skipped unread.
            self.spans.push(Span { start: start as u32, len: len as u32 });
            self.position = end;
            self.missing -= 1;
        }
        Ok(None)
    }

    fn scan_inline<'a>(&'a mut self, buffer: &'a [u8], limits: &Limits) -> Scan<'a> {
        // As in Redis, where lines are C strings, a zero byte hides the end of its line: nothing in it is executed.
        let newline = memchr2(b'\n', 0, buffer).filter(|at| buffer[*at] == b'\n');
        let Some(newline) = newline else {
            return match buffer.len() > limits.inline_bytes_max {
                true => Scan::Broken(ProtocolError::TooBigInline),
                false => Scan::Incomplete(buffer.len() + 1),
            };
        };
        if newline > limits.inline_bytes_max {
            return Scan::Broken(ProtocolError::TooBigInline);
        }
        let line = buffer[..newline].strip_suffix(b"\r").unwrap_or(&buffer[..newline]);
        self.spans.clear();
        self.text.clear();
        if inline::split(line, &mut self.text, &mut self.spans).is_err() {
            return Scan::Broken(ProtocolError::UnbalancedQuotes);
        }
        match self.spans.is_empty() {
            true => Scan::Empty(newline + 1),
            false => Scan::Complete(Request::new(&self.text, &self.spans), newline + 1),
        }
    }
}

fn too_long<T>(pending: usize, limits: &Limits, error: ProtocolError) -> Result<Option<T>, ProtocolError> {
    if pending > limits.inline_bytes_max { Err(error) } else { Ok(None) }
}

/// The line that begins at `from`, and the start of the next line. As in Redis, a line ends at `\r` and includes the
/// byte after it, which must be in the buffer.
#[inline]
fn line_at(buffer: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = &buffer[from..];
    // Count lines have a digit or two: a byte-by-byte loop is faster than any search.
    let end = match rest.iter().take(8).position(|byte| *byte == b'\r') {
        Some(end) => end,
        None => memchr(b'\r', rest)?,
    };
    if end + 1 < rest.len() { Some((&rest[..end], from + end + 2)) } else { None }
}

/// Reads a decimal number as Redis does: no sign but a minus, no leading zeros, no spaces.
#[inline]
fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [digit] => digit.is_ascii_digit().then(|| i64::from(digit - b'0')),
        [b'-', first, rest @ ..] if (b'1'..=b'9').contains(first) => {
            rest.iter().try_fold(-i64::from(first - b'0'), |sum, digit| {
                digit.is_ascii_digit().then(|| sum.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))).flatten()
            })
        }
        [first, rest @ ..] if (b'1'..=b'9').contains(first) => {
            rest.iter().try_fold(i64::from(first - b'0'), |sum, digit| {
                digit.is_ascii_digit().then(|| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0'))).flatten()
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_all(input: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
        let (mut scanner, limits) = (Scanner::default(), Limits::default());
        let (mut requests, mut buffer) = (Vec::new(), Vec::new());
        for chunk in input.chunks(piece) {
            buffer.extend_from_slice(chunk);
            loop {
                let consumed = match scanner.scan(&buffer, &limits) {
                    Scan::Complete(request, consumed) => {
                        requests.push(request.iter().map(<[u8]>::to_vec).collect());
                        consumed
                    }
                    Scan::Empty(consumed) => consumed,
                    Scan::Incomplete(needed) => {
                        assert!(needed > buffer.len());
                        break;
                    }
                    Scan::Broken(error) => return (requests, Some(error)),
                };
                buffer.drain(..consumed);
            }
        }
        (requests, None)
    }

    #[test]
    fn a_request_split_anywhere_reads_the_same() {
        let input = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhe\r\no\r\n*0\r\nPING x\r\n\r\n*1\r\n$4\r\nQUIT\r\n";
        let (whole, error) = scan_all(input, input.len());
        assert_eq!(error, None);
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[0][2], b"he\r\no");
        for piece in 1..input.len() {
            assert_eq!(scan_all(input, piece), (whole.clone(), None), "in pieces of {piece}");
        }
    }

    #[test]
    fn a_batch_has_the_requests_that_single_scans_find_and_leaves_the_rest_to_them() {
        let limits = Limits::default();
        let whole = b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nxy\r\n";
        for tail in [&b""[..], b"PING inline\r\n", b"*0\r\n", b"*2\r\n$3\r\nGE", b"*1\r\n:1\r\n"] {
            let input = [whole.as_slice(), tail].concat();
            let (mut scanner, mut pipeline) = (Scanner::default(), Pipeline::default());
            scanner.scan_pipeline(&input, &limits, 8, &mut pipeline);
            let found: Vec<Vec<Vec<u8>>> =
                pipeline.requests(&input).map(|request| request.iter().map(<[u8]>::to_vec).collect()).collect();
            assert_eq!(found, scan_all(whole, whole.len()).0);
            assert_eq!(pipeline.bytes_through(2), whole.len());
            // Dropped after the first request: the following ones are still found.
            scanner.restart();
            let first = pipeline.bytes_through(0);
            assert!(matches!(scanner.scan(&input[first..], &limits), Scan::Complete(request, _) if request.len() == 2));
            scanner.scan_pipeline(&input, &limits, 2, &mut pipeline);
            assert_eq!((pipeline.len(), pipeline.request(&input, 1).arg(1)), (2, b"a".as_slice()));
        }
    }

    #[test]
    fn violations_are_named() {
        let cases: &[(&[u8], ProtocolError)] = &[
            (b"*99999999999\r\n", ProtocolError::InvalidCount),
            (b"*x\r\n", ProtocolError::InvalidCount),
            (b"*3\r\n$-1\r\n", ProtocolError::InvalidBulkLength),
            (b"*3\r\n$9999999999\r\n", ProtocolError::InvalidBulkLength),
            (b"*3\r\n:1\r\n", ProtocolError::ExpectedBulk(b':')),
            (b"SET \"a\r\n", ProtocolError::UnbalancedQuotes),
        ];
        for (input, expected) in cases {
            assert_eq!(scan_all(input, input.len()).1, Some(*expected), "{input:?}");
        }
        assert_eq!(scan_all(&vec![b'a'; 70_000], 4096).1, Some(ProtocolError::TooBigInline));
        assert_eq!(
            scan_all(&[b"*".as_slice(), &[b'1'; 70_000]].concat(), 4096).1,
            Some(ProtocolError::TooBigCountLine)
        );
        let bulk = [b"*1\r\n$".as_slice(), &[b'1'; 70_000]].concat();
        assert_eq!(scan_all(&bulk, 4096).1, Some(ProtocolError::TooBigBulkLine));
    }

    #[test]
    fn a_request_beyond_the_reach_of_its_spans_is_refused() {
        let limits = Limits { bulk_bytes_max: usize::MAX, ..Limits::default() };
        let scan = |input: &[u8]| match Scanner::default().scan(input, &limits) {
            Scan::Incomplete(needed) => Ok(needed),
            Scan::Broken(error) => Err(error),
            Scan::Complete(..) | Scan::Empty(_) => panic!("there is more to come"),
        };
        assert_eq!(scan(b"*1\r\n$4294967276\r\n"), Ok(u32::MAX as usize));
        assert_eq!(scan(b"*1\r\n$4294967277\r\n"), Err(ProtocolError::InvalidBulkLength));
    }

    #[test]
    fn a_line_with_a_zero_byte_is_not_executed() {
        assert_eq!(scan_all(b"DEL a\0b\r\nPING\r\n", 4), (Vec::new(), None));
        assert_eq!(
            scan_all(&[b"DEL\0\r\n".as_slice(), &[b'\n'; 70_000]].concat(), 4096).1,
            Some(ProtocolError::TooBigInline)
        );
    }

    #[test]
    fn strangers_may_only_send_small_requests() {
        let limits = Limits { unauthenticated: true, ..Limits::default() };
        assert!(matches!(
            Scanner::default().scan(b"*11\r\n", &limits),
            Scan::Broken(ProtocolError::UnauthenticatedCount)
        ));
        assert!(matches!(
            Scanner::default().scan(b"*1\r\n$16385\r\n", &limits),
            Scan::Broken(ProtocolError::UnauthenticatedBulk)
        ));
    }

    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for (text, value) in [
            ("0", Some(0)),
            ("-5", Some(-5)),
            ("10", Some(10)),
            ("01", None),
            ("+1", None),
            ("-0", None),
            ("", None),
            ("-", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), value, "{text}");
        }
    }
}
