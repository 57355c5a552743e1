//! Writes replies in RESP2 or RESP3. Knows the two encodings; refuses to know clients.

/// The version a client has chosen with HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// Writes a reply to the end of an output buffer. Types that RESP2 lacks are written as Redis writes them: maps and
/// sets as arrays, doubles as bulk strings, booleans as integers.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    /// Bulk strings that would make the output longer than this are left out: see [`Reply::limited`].
    bytes_max: usize,
}

/// An aggregate whose length is filled in when it is known.
#[must_use = "an open aggregate must be closed with its length"]
pub struct Open {
    at: usize,
    kind: u8,
}

impl<'a> Reply<'a> {
    /// A writer to the end of `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Reply { out, protocol, bytes_max: usize::MAX }
    }

    /// Limits the output to `bytes_max`. A reply that reaches the limit is no longer well-formed: the owner of the
    /// output sees that it is too long and closes the connection.
    #[inline]
    pub fn limited(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Lowers the limit of the output to `bytes_max`, if it is not lower already.
    #[inline]
    pub fn within(mut self, bytes_max: usize) -> Self {
        self.bytes_max = self.bytes_max.min(bytes_max);
        self
    }

    /// Reborrows the writer, for one of several replies.
    pub fn lend(&mut self) -> Reply<'_> {
        Reply { out: self.out, protocol: self.protocol, bytes_max: self.bytes_max }
    }

    /// The protocol the reply is written in.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes the rest of the reply in `protocol`: HELLO answers in the version that it has selected.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// The length of the output. [`Reply::truncate`] to this position removes a partial reply.
    #[inline]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// The bytes written since `position`.
    #[inline]
    pub fn written_since(&self, position: usize) -> &[u8] {
        &self.out[position..]
    }

    /// Reserves room for `times` times the bytes written since `position`, up to a limit. Otherwise a large output
    /// would be copied at each doubling, and touch as much fresh memory again.
    pub fn expect_times(&mut self, position: usize, times: usize) {
        const ROOM_MAX: usize = 64 * 1024 * 1024;
        let room = (self.out.len() - position).saturating_mul(times).min(ROOM_MAX);
        self.out.reserve(room.min(self.bytes_max.saturating_sub(self.out.len())));
    }

    /// Removes everything written since `position`.
    pub fn truncate(&mut self, position: usize) {
        self.out.truncate(position);
    }

    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A status line. The caller guarantees that it has no line break.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.crlf();
    }

    /// An error line, code first. Line breaks would end it early and are written as spaces.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.crlf();
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        match value {
            0 => self.out.extend_from_slice(b":0\r\n"),
            1 => self.out.extend_from_slice(b":1\r\n"),
            _ => self.header(b':', value),
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if self.out.len() > self.bytes_max {
            return;
        }
        self.bulk_header(bytes.len());
        self.out.extend_from_slice(bytes);
        self.crlf();
    }

    /// The first line of a bulk string. [`Reply::raw`] writes its bytes and [`Reply::bulk_end`] ends it.
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.header(b'$', len as i64);
    }

    /// Ends a bulk string begun with [`Reply::bulk_header`].
    #[inline]
    pub fn bulk_end(&mut self) {
        self.crlf();
    }

    /// Bytes that are already in wire form.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.out.len() > self.bytes_max {
            return;
        }
        self.out.extend_from_slice(bytes);
    }

    /// Bytes that are already in wire form. They are not copied if the output is empty.
    pub fn take_over(&mut self, bytes: Vec<u8>) {
        match self.out.is_empty() && bytes.len() <= self.bytes_max {
            true => *self.out = bytes,
            false => self.raw(&bytes),
        }
    }

    /// An integer as a bulk string, for values that are stored as numbers.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.bulk(digits.format(value).as_bytes());
    }

    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// A null array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    /// A map of `pairs` pairs; a flat array in RESP2.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', pairs as i64 * 2),
            Protocol::Resp3 => self.header(b'%', pairs as i64),
        }
    }

    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len as i64),
            Protocol::Resp3 => self.header(b'~', len as i64),
        }
    }

    /// An out-of-band message; an array in RESP2.
    pub fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len as i64),
            Protocol::Resp3 => self.header(b'>', len as i64),
        }
    }

    pub fn boolean(&mut self, value: bool) {
        match (self.protocol, value) {
            (Protocol::Resp2, _) => self.integer(i64::from(value)),
            (Protocol::Resp3, true) => self.out.extend_from_slice(b"#t\r\n"),
            (Protocol::Resp3, false) => self.out.extend_from_slice(b"#f\r\n"),
        }
    }

    pub fn double(&mut self, value: f64) {
        let mut buffer = zmij::Buffer::new();
        let text = double_text(value, &mut buffer);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.out.push(b',');
                self.out.extend_from_slice(text.as_bytes());
                self.crlf();
            }
        }
    }

    /// A double that the caller has formatted: there is more than one format.
    #[inline]
    pub fn double_text(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.out.push(b',');
                self.out.extend_from_slice(text);
                self.crlf();
            }
        }
    }

    /// Text that clients show to people unchanged.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.header(b'=', text.len() as i64 + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.crlf();
            }
        }
    }

    /// Begins an array whose length is not known yet.
    pub fn open_array(&mut self) -> Open {
        Open { at: self.out.len(), kind: b'*' }
    }

    /// Inserts the length before everything written since [`Reply::open_array`].
    pub fn close(&mut self, open: Open, len: usize) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(len).as_bytes();
        let body = self.out.len();
        self.out.push(open.kind);
        self.out.extend_from_slice(digits);
        self.crlf();
        let header = self.out.len() - body;
        self.out[open.at..].rotate_right(header);
    }

    #[inline]
    fn header(&mut self, kind: u8, value: i64) {
        // Nearly all lengths are one or two digits; those are written without a formatter.
        match value {
            0..=9 => self.out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']),
            10..=99 => {
                let (tens, ones) = (b'0' + (value / 10) as u8, b'0' + (value % 10) as u8);
                self.out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
            }
            _ => {
                let mut digits = itoa::Buffer::new();
                self.out.push(kind);
                self.out.extend_from_slice(digits.format(value).as_bytes());
                self.crlf();
            }
        }
    }

    #[inline]
    fn crlf(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

fn double_text(value: f64, buffer: &mut zmij::Buffer) -> &str {
    if value.is_nan() {
        "nan"
    } else if value.is_infinite() {
        if value > 0.0 { "inf" } else { "-inf" }
    } else if value == value.trunc() && value.abs() < 1e15 {
        // Whole numbers are written without a fraction, as Redis writes them.
        let text = buffer.format_finite(value);
        text.strip_suffix(".0").unwrap_or(text)
    } else {
        buffer.format_finite(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_protocol_has_its_own_null_map_and_double() {
        let write = |reply: &mut Reply<'_>| {
            reply.map(1);
            reply.bulk(b"a");
            reply.null();
            reply.double(1.5);
            reply.double(3.0);
            reply.boolean(true);
        };
        assert_eq!(written(Protocol::Resp2, write), "*2\r\n$1\r\na\r\n$-1\r\n$3\r\n1.5\r\n$1\r\n3\r\n:1\r\n");
        assert_eq!(written(Protocol::Resp3, write), "%1\r\n$1\r\na\r\n_\r\n,1.5\r\n,3\r\n#t\r\n");
    }

    #[test]
    fn an_open_array_gets_its_length_afterwards() {
        let text = written(Protocol::Resp2, |reply| {
            reply.integer(7);
            let open = reply.open_array();
            for value in 0..12 {
                reply.integer(value);
            }
            reply.close(open, 12);
        });
        assert!(text.starts_with(":7\r\n*12\r\n:0\r\n:1\r\n"), "{text}");
        assert!(text.ends_with(":11\r\n"));
    }

    #[test]
    fn errors_stay_on_one_line() {
        assert_eq!(written(Protocol::Resp2, |reply| reply.error("ERR a\r\nb")), "-ERR a  b\r\n");
    }
}
