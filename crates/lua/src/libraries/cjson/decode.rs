//! JSON to Lua values. Knows nothing of Redis.

use super::settings::{Settings, settings};
use crate::context::{Context, Kind, Nesting};
use crate::vm::{Raise, Returned, Stack};

pub(super) fn decode(stack: Stack<'_>) -> Returned {
    if stack.len() != 1 {
        return Err(stack.bad_argument(1, format_args!("expected 1 argument")));
    }
    stack.with_pinned(1, |pinned| decode_bytes(stack, pinned.argument_bytes(1)?))
}

fn decode_bytes(stack: Stack<'_>, json: &[u8]) -> Returned {
    stack.charge_bytes(json.len());
    // The first character of JSON is ASCII, so two bytes are enough to see another encoding.
    if json.len() >= 2 && (json[0] == 0 || json[1] == 0) {
        return Err(stack.error(format_args!("JSON parser does not support UTF-16 or UTF-32")));
    }
    let context = Context::of(stack);
    let mut decoder = Decoder { stack, settings: settings(stack), json, at: 0, begin: 0 };
    decoder.all(&mut context.scratch(), &mut context.nesting())?;
    Ok(1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its text is in the buffer.
    String,
    /// As bits, so that tokens can be compared.
    Number(u64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Wrong(what) => what,
        }
    }
}

struct Decoder<'s> {
    /// The text is its first value.
    stack: Stack<'s>,
    settings: Settings,
    json: &'s [u8],
    at: usize,
    /// Where the last token began.
    begin: usize,
}

impl Decoder<'_> {
    fn all(&mut self, buffer: &mut Vec<u8>, open: &mut Vec<Nesting>) -> Result<(), Raise> {
        let mut token = self.token(buffer);
        loop {
            // A value is next.
            self.stack.check_memory(buffer.len())?;
            match token {
                Token::ObjectBegin => {
                    self.descend(open, 3)?;
                    self.stack.push_table(0, 0);
                    token = self.token(buffer);
                    if token != Token::ObjectEnd {
                        open.push(Nesting::new(Kind::Map, 0));
                        token = self.key(token, buffer)?;
                        continue;
                    }
                }
                Token::ArrayBegin => {
                    self.descend(open, 2)?;
                    self.stack.push_table(0, 0);
                    token = self.token(buffer);
                    if token != Token::ArrayEnd {
                        open.push(Nesting::new(Kind::Array, 0));
                        continue;
                    }
                }
                Token::String => self.stack.push_bytes(buffer),
                Token::Number(bits) => self.stack.push_number(f64::from_bits(bits)),
                Token::Boolean(value) => self.stack.push_boolean(value),
                // nil would delete the field.
                Token::Null => self.stack.push_null(),
                _ => return Err(self.unexpected("value", token)),
            }
            // The value on top is complete: store it, and close every table that ends here.
            loop {
                let Some(inner) = open.last_mut() else {
                    let end = self.token(buffer);
                    return if end == Token::End { Ok(()) } else { Err(self.unexpected("the end", end)) };
                };
                let map = inner.is_map();
                if map {
                    self.stack.raw_set(-3)?;
                } else {
                    inner.position += 1;
                    self.stack.raw_set_at(-2, inner.position)?;
                }
                token = self.token(buffer);
                match (token, map) {
                    (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => {
                        open.pop();
                    }
                    (Token::Comma, true) => {
                        let key = self.token(buffer);
                        token = self.key(key, buffer)?;
                        break;
                    }
                    (Token::Comma, false) => {
                        token = self.token(buffer);
                        break;
                    }
                    (_, true) => return Err(self.unexpected("comma or object end", token)),
                    (_, false) => return Err(self.unexpected("comma or array end", token)),
                }
            }
        }
    }

    /// Pushes a key, skips the colon, returns the token after it.
    fn key(&mut self, token: Token, buffer: &mut Vec<u8>) -> Result<Token, Raise> {
        if token != Token::String {
            return Err(self.unexpected("object key string", token));
        }
        self.stack.push_bytes(buffer);
        let colon = self.token(buffer);
        if colon != Token::Colon {
            return Err(self.unexpected("colon", colon));
        }
        Ok(self.token(buffer))
    }

    fn descend(&self, open: &[Nesting], room: i32) -> Result<(), Raise> {
        let depth = open.len() + 1;
        if depth <= self.settings.decode_depth_max as usize && self.stack.has_room(room + 1) {
            return Ok(());
        }
        let at = self.at;
        Err(self.stack.error(format_args!("Found too many nested data structures ({depth}) at character {at}")))
    }

    #[cold]
    fn unexpected(&self, expected: &str, token: Token) -> Raise {
        let (found, at) = (token.name(), self.begin + 1);
        self.stack.error(format_args!("Expected {expected} but found {found} at character {at}"))
    }

    /// A byte, or zero at the end, which ends the text wherever it stands.
    fn byte(&self, at: usize) -> u8 {
        self.json.get(at).copied().unwrap_or(0)
    }

    fn wrong(&mut self, what: &'static str) -> Token {
        self.begin = self.at;
        Token::Wrong(what)
    }

    fn token(&mut self, buffer: &mut Vec<u8>) -> Token {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.begin = self.at;
        let single = match self.byte(self.at) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(buffer),
            b'-' | b'0'..=b'9' => {
                if self.settings.decode_invalid_numbers == 0 && self.is_invalid_number() {
                    return self.wrong("invalid number");
                }
                return self.number();
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(),
            _ => return self.wrong("invalid token"),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
        let rest = &self.json[self.at..];
        for (word, token) in
            [(b"true".as_slice(), Token::Boolean(true)), (b"false", Token::Boolean(false)), (b"null", Token::Null)]
        {
            if rest.starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        if self.settings.decode_invalid_numbers != 0 && self.is_invalid_number() {
            return self.number();
        }
        self.wrong("invalid token")
    }

    /// Something that C would read as a number and JSON does not.
    fn is_invalid_number(&self) -> bool {
        let mut at = self.at;
        if self.byte(at) == b'+' {
            return true;
        }
        if self.byte(at) == b'-' {
            at += 1;
        }
        match self.byte(at) {
            b'0' => matches!(self.byte(at + 1), b'x' | b'X' | b'0'..=b'9'),
            // As a signed char, a byte above 127 is less than any digit.
            0..=b'9' | 0x80.. => false,
            _ => {
                let word = [self.byte(at), self.byte(at + 1), self.byte(at + 2)];
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn number(&mut self) -> Token {
        if let Some(token) = self.plain_integer() {
            return token;
        }
        let (number, len) = self.stack.c_number(1, self.at);
        if len == 0 {
            return self.wrong("invalid number");
        }
        self.at += len;
        Token::Number(number.to_bits())
    }

    /// Up to fifteen digits and nothing else: most numbers are, and they need no exact arithmetic.
    fn plain_integer(&mut self) -> Option<Token> {
        let rest = &self.json[self.at..];
        let (negative, digits) = match rest {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let len = digits.iter().take(16).take_while(|digit| digit.is_ascii_digit()).count();
        let after = digits.get(len).copied().unwrap_or(0);
        if !(1..=15).contains(&len) || matches!(after, b'.' | b'e' | b'E' | b'x' | b'X') {
            return None;
        }
        let value = digits[..len].iter().fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        self.at += len + usize::from(negative);
        let number = value as f64;
        Some(Token::Number(if negative { -number } else { number }.to_bits()))
    }

    fn string(&mut self, buffer: &mut Vec<u8>) -> Token {
        buffer.clear();
        self.at += 1;
        loop {
            let plain = self.json[self.at..].iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0));
            let Some(plain) = plain else {
                self.at = self.json.len();
                return self.wrong("unexpected end of string");
            };
            buffer.extend_from_slice(&self.json[self.at..self.at + plain]);
            self.at += plain;
            match self.json[self.at] {
                b'"' => {
                    self.at += 1;
                    return Token::String;
                }
                0 => return self.wrong("unexpected end of string"),
                _ => {}
            }
            let escape = match self.byte(self.at + 1) {
                b'u' => {
                    if !self.unicode_escape(buffer) {
                        return self.wrong("invalid unicode escape code");
                    }
                    continue;
                }
                same @ (b'"' | b'\\' | b'/') => same,
                b'b' => 8,
                b't' => 9,
                b'n' => 10,
                b'f' => 12,
                b'r' => 13,
                _ => return self.wrong("invalid escape code"),
            };
            buffer.push(escape);
            self.at += 2;
        }
    }

    /// `\uXXXX`, two of them for a character beyond the first plane.
    fn unicode_escape(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Some(mut code) = self.hex4(self.at + 2) else { return false };
        let mut len = 6;
        if code & 0xF800 == 0xD800 {
            if code & 0x400 != 0 || self.byte(self.at + 6) != b'\\' || self.byte(self.at + 7) != b'u' {
                return false;
            }
            let Some(low) = self.hex4(self.at + 8) else { return false };
            if low & 0xFC00 != 0xDC00 {
                return false;
            }
            code = ((code & 0x3FF) << 10 | low & 0x3FF) + 0x10000;
            len = 12;
        }
        let Some(character) = char::from_u32(code) else { return false };
        buffer.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        true
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        (0..4).try_fold(0, |code, i| Some(code << 4 | char::from(self.byte(at + i)).to_digit(16)?))
    }
}
