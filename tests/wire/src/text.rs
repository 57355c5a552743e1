//! Bytes as readable text, the way redis-cli quotes them. Knows nothing of replies or sockets.

/// `abc\n` becomes `"abc\n"`; whatever is not printable ASCII becomes `\xHH`.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'"' => text.push_str("\\\""),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// Splits a command line into arguments: bare words, `"..."` with escapes, `'...'` without.
pub fn split_args(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut rest = line.as_bytes();
    let mut args = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        match rest.first() {
            None => return Ok(args),
            Some(b'"') => {
                let (arg, after) = unquote(rest)?;
                if after.first().is_some_and(|b| !b.is_ascii_whitespace()) {
                    return Err("a closing quote must be followed by a space".into());
                }
                args.push(arg);
                rest = after;
            }
            Some(b'\'') => {
                let end = rest[1..].iter().position(|&b| b == b'\'').ok_or("missing closing '")?;
                args.push(rest[1..=end].to_vec());
                rest = &rest[end + 2..];
            }
            Some(_) => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                args.push(rest[..end].to_vec());
                rest = &rest[end..];
            }
        }
    }
}

/// Reads a `"..."` at the start of `text`; returns its bytes and what follows it.
pub(crate) fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), String> {
    let mut bytes = Vec::new();
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => return Ok((bytes, &text[at..])),
            b'\\' => {
                let &escaped = text.get(at).ok_or("a \\ at the end")?;
                at += 1;
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'x' => {
                        let digits = text.get(at..at + 2).and_then(|d| std::str::from_utf8(d).ok());
                        at += 2;
                        digits.and_then(|d| u8::from_str_radix(d, 16).ok()).ok_or("\\x needs two hex digits")?
                    }
                    other => other,
                });
            }
            other => bytes.push(other),
        }
    }
    Err("missing closing \"".into())
}

/// Whether `text` matches `pattern`, where `*` is any run of bytes and `?` any one byte.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    // Backtracks to the latest `*` only, which is enough: an earlier one could not match more.
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((star_p, star_t)) => {
                    star = Some((star_p, star_t + 1));
                    p = star_p + 1;
                    t = star_t + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_redis_cli_does() {
        let args = split_args(r#"SET  key "a b\x00\"\n" 'c "d' "" "#).unwrap();
        let expected: &[&[u8]] = &[b"SET", b"key", b"a b\0\"\n", b"c \"d", b""];
        assert_eq!(args, expected);
        assert!(split_args(r#"SET "a"b"#).is_err());
        assert!(split_args(r#"SET "a"#).is_err());
        assert!(split_args("SET 'a").is_err());
    }

    #[test]
    fn quoting_survives_a_round_trip() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let quoted = quote(&every_byte);
        assert!(quoted.is_ascii());
        assert_eq!(split_args(&quoted).unwrap(), [every_byte]);
    }

    #[test]
    fn globs() {
        assert!(glob(b"*", b""));
        assert!(glob(b"a*c*e", b"abcde"));
        assert!(glob(b"a?c", b"abc"));
        assert!(glob(b"*b", b"abab"));
        assert!(!glob(b"a?", b"a"));
        assert!(!glob(b"a*x", b"abc"));
    }
}
