//! Splits an inline request, a line typed by a person, into arguments. Knows quoting; refuses to know framing.

use crate::request::Span;

/// Why a line could not be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnbalancedQuotes;

/// Appends the unescaped arguments of `line` to `text`, and their positions to `spans`. The rules are those of
/// `redis-cli` and of Redis's inline protocol: "double quotes" know \xHH, \n, \r, \t, \b, \a; 'single quotes' know \'
/// only; a closing quote must be followed by white space or the end. The line contains no zero byte: the scanner
/// rejects those.
pub(crate) fn split(line: &[u8], text: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), UnbalancedQuotes> {
    let mut rest = line;
    loop {
        while let [first, tail @ ..] = rest
            && is_space(*first)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len();
        rest = one_argument(rest, text)?;
        spans.push(Span { start: start as u32, len: (text.len() - start) as u32 });
    }
}

/// Splits a line into arguments by the rules of inline requests.
pub fn split_line(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split(line, &mut text, &mut spans)?;
    Ok(spans.iter().map(|s| text[s.start as usize..(s.start + s.len) as usize].to_vec()).collect())
}

fn one_argument<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] => return Ok(rest),
            [b'"', tail @ ..] => return after_quote(double_quoted(tail, text)?),
            [b'\'', tail @ ..] => return after_quote(single_quoted(tail, text)?),
            // As in Redis, vertical tab and form feed do not end a word.
            [b' ' | b'\t' | b'\n' | b'\r', ..] => return Ok(rest),
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] => return Err(UnbalancedQuotes),
            [b'"', tail @ ..] => return Ok(tail),
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text.push(hex(*high) << 4 | hex(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] => return Err(UnbalancedQuotes),
            [b'\'', tail @ ..] => return Ok(tail),
            [b'\\', b'\'', tail @ ..] => {
                text.push(b'\'');
                rest = tail;
            }
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

fn after_quote(rest: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match rest {
        [byte, ..] if !is_space(*byte) => Err(UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_white_space() {
        assert_eq!(split_line(b"  SET  a\tb "), Ok(vec![b"SET".to_vec(), b"a".to_vec(), b"b".to_vec()]));
        assert_eq!(split_line(b""), Ok(vec![]));
    }

    /// Recorded from Redis 7.0.15, which skips vertical tabs and form feeds between arguments and keeps them inside.
    #[test]
    fn a_form_feed_does_not_end_a_word() {
        assert_eq!(split_line(b"a\x0bb\x0c \x0b\x0cc"), Ok(vec![b"a\x0bb\x0c".to_vec(), b"c".to_vec()]));
        assert_eq!(split_line(b"\"a\"\x0cb"), Ok(vec![b"a".to_vec(), b"b".to_vec()]));
    }

    #[test]
    fn quotes_and_escapes() {
        assert_eq!(
            split_line(br#"a "x y\x41\n" 'it\'s'"#),
            Ok(vec![b"a".to_vec(), b"x yA\n".to_vec(), b"it's".to_vec()])
        );
        assert_eq!(split_line(br#""""#), Ok(vec![vec![]]));
    }

    #[test]
    fn unbalanced_quotes_are_an_error() {
        for line in [&b"\"abc"[..], b"'abc", b"\"a\"b", b"'a'b"] {
            assert_eq!(split_line(line), Err(UnbalancedQuotes), "{line:?}");
        }
    }
}
