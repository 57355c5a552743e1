//! Whether bytes are one whole reply, as [`Reply`](crate::Reply) writes them. Knows the grammar of replies; refuses to
//! know what they say.

use crate::Protocol;

/// True when the bytes are exactly one reply of this protocol. Pushes and attributes are no part of a reply: this server
/// writes none into one.
pub fn is_one_reply(bytes: &[u8], protocol: Protocol) -> bool {
    let (mut rest, mut values_left) = (bytes, 1u64);
    // A counter instead of a stack: replies may be nested to any depth.
    while values_left > 0 {
        let Some((within, behind)) = value(rest, protocol) else { return false };
        // No element is shorter than three bytes. So a count that the bytes cannot have ends the search here.
        if within > behind.len() as u64 {
            return false;
        }
        values_left = values_left - 1 + within;
        rest = behind;
    }
    rest.is_empty()
}

/// Takes the head of a value, or the whole of one without elements. Returns how many values are in it, and the rest.
fn value(bytes: &[u8], protocol: Protocol) -> Option<(u64, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let at = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let (line, rest) = rest.split_at(at);
    let rest = rest.strip_prefix(b"\r\n")?;
    let is_resp3 = protocol == Protocol::Resp3;
    let count = || std::str::from_utf8(line).ok()?.parse::<u64>().ok();
    let text = |least: usize| {
        let len = usize::try_from(count()?).ok().filter(|len| *len >= least)?;
        let (_, behind) = rest.split_at_checked(len)?;
        behind.strip_prefix(b"\r\n")
    };
    match kind {
        b'+' | b'-' => Some((0, rest)),
        b':' => std::str::from_utf8(line).ok()?.parse::<i64>().ok().map(|_| (0, rest)),
        b'$' | b'*' if !is_resp3 && line == b"-1" => Some((0, rest)),
        b'$' => text(0).map(|behind| (0, behind)),
        b'*' => Some((count()?, rest)),
        b'_' if is_resp3 => line.is_empty().then_some((0, rest)),
        b'#' if is_resp3 => (line == b"t" || line == b"f").then_some((0, rest)),
        b',' | b'(' if is_resp3 => (!line.is_empty()).then_some((0, rest)),
        // Three letters that name the format, and a colon.
        b'=' if is_resp3 => text(4).map(|behind| (0, behind)),
        b'!' if is_resp3 => text(0).map(|behind| (0, behind)),
        b'~' if is_resp3 => Some((count()?, rest)),
        b'%' if is_resp3 => Some((count()?.checked_mul(2)?, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    #[test]
    fn what_a_reply_writes_is_one_reply() {
        let writes: &[fn(&mut Reply<'_>)] = &[
            |reply| reply.ok(),
            |reply| reply.error("ERR no"),
            |reply| reply.integer(i64::MIN),
            |reply| reply.bulk(b"a\r\nb"),
            |reply| reply.bulk(b""),
            |reply| reply.null(),
            |reply| reply.null_array(),
            |reply| reply.array(0),
            |reply| {
                reply.array(2);
                reply.map(1);
                reply.bulk(b"k");
                reply.set(1);
                reply.double(1.5);
                reply.boolean(true);
            },
            |reply| reply.double(f64::INFINITY),
            |reply| reply.verbatim("text"),
        ];
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for write in writes {
                let mut bytes = Vec::new();
                write(&mut Reply::new(&mut bytes, protocol));
                let shown = bytes.escape_ascii().to_string();
                assert!(is_one_reply(&bytes, protocol), "{shown}");
                (0..bytes.len())
                    .for_each(|end| assert!(!is_one_reply(&bytes[..end], protocol), "{shown} cut at {end}"));
                bytes.extend_from_slice(b"+OK\r\n");
                assert!(!is_one_reply(&bytes, protocol), "{shown}");
            }
        }
    }

    #[test]
    fn anything_else_is_none() {
        for bytes in [
            &b""[..],
            b"OK\r\n",
            b"+a\nb\r\n",
            b":1.5\r\n",
            b":\r\n",
            b"$3\r\nab\r\n",
            b"$-2\r\n",
            b"*9999999999999999999999\r\n",
            b"*18446744073709551615\r\n+a\r\n",
            b"_\r\n",
            b"%1\r\n+a\r\n+b\r\n",
        ] {
            assert!(!is_one_reply(bytes, Protocol::Resp2), "{}", bytes.escape_ascii());
        }
        for bytes in
            [&b"$-1\r\n"[..], b"*-1\r\n", b"#x\r\n", b"=3\r\ntxt\r\n", b">1\r\n+a\r\n", b"|1\r\n+a\r\n+b\r\n+c\r\n"]
        {
            assert!(!is_one_reply(bytes, Protocol::Resp3), "{}", bytes.escape_ascii());
        }
    }
}
