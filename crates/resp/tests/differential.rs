//! Holds our scanner and our replies against an implementation by others: the `redis-protocol` crate.
//!
//! Every test is random and prints its seed; `HOLDFAST_TEST_SEED=… cargo test` runs the same again.
//!
//! Where the two differ, ours does what Redis 7.0.15 does:
//! - Numbers in headers. `redis-protocol` reads what Rust parses: `+3`, `003`, `-0`. Redis refuses these.
//! - Line ends. Redis takes the byte behind a header's `\r`, and the two behind an argument, without reading them.
//!   `redis-protocol` wants `\r\n` behind a header; behind an argument it does not look either.
//! - Nothing to do. `*0` and `*-1` are an empty array and a null to `redis-protocol`; a server passes them over.
//! - Other types. An array of anything but bulk strings, nulls included, is a frame but no request.
//! - Inline requests. What does not begin with `*` is a line of words, even if it looks like a frame.
//!
//! And where ours differs from Redis: an argument that does not begin with `$` is refused at that byte, not at the end
//! of its line; a zero byte in a header is a bad number at once, not a reason to wait for 64 KiB more; and the limit on
//! a line's length does not depend on how the network cut it.

use fastrand::Rng;
use redis_protocol::resp2::decode::decode as decode_resp2;
use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::decode::complete::decode as decode_resp3;
use redis_protocol::resp3::types::{OwnedFrame as Frame3, VerbatimStringFormat};
use resp::{Limits, Protocol, ProtocolError, Reply, Scan, Scanner};

type Args = Vec<Vec<u8>>;

#[test]
fn well_formed_pipelines_give_the_same_arguments() {
    let mut random = seeded();
    for _ in 0..1_500 {
        let requests: Vec<Args> = (0..random.usize(1..8)).map(|_| args(&mut random)).collect();
        let input = requests.iter().flat_map(encoded).collect::<Vec<u8>>();
        assert_eq!(theirs(&input), requests);
        assert_eq!(ours(&input, |_| usize::MAX), (requests.clone(), None));
        assert_eq!(ours(&input, |_| random.usize(1..=input.len())), (requests.clone(), None));
        let piece_max = random.usize(1..64);
        assert_eq!(ours(&input, |_| random.usize(1..=piece_max)), (requests, None));
    }
}

#[test]
fn an_unfinished_request_asks_for_no_more_than_it_lacks() {
    let mut random = seeded();
    for _ in 0..1_500 {
        let input = encoded(&args(&mut random));
        let cut = random.usize(..input.len());
        match Scanner::default().scan(&input[..cut], &Limits::default()) {
            Scan::Incomplete(needed) => {
                assert!(needed > cut && needed <= input.len(), "{needed} of {} at {cut}", input.len());
            }
            other => panic!("{} at {cut} of {}", described(&other), shown(&input)),
        }
    }
}

#[test]
fn damaged_requests_are_read_as_redis_reads_them() {
    let mut random = seeded();
    for _ in 0..20_000 {
        let mut input: Vec<u8> = (0..random.usize(1..4)).flat_map(|_| encoded(&small_args(&mut random))).collect();
        for _ in 0..random.usize(1..4) {
            damage(&mut random, &mut input);
        }
        check_hostile(&mut random, &input);
    }
}

#[test]
fn garbage_is_read_as_redis_reads_it() {
    let mut random = seeded();
    const ALPHABETS: &[&[u8]] =
        &[b"*$\r\n0123", b"*$\r\n-+123:_,#%~>", b"PING \"'\\x41\r\n\t\x0b\x0c\0", b"*1\r\n$0\r\n\r\n"];
    for _ in 0..20_000 {
        let len = random.usize(..200);
        let input: Vec<u8> = match random.usize(..=ALPHABETS.len()) {
            at if at < ALPHABETS.len() => (0..len).map(|_| *pick(&mut random, ALPHABETS[at])).collect(),
            _ => (0..len).map(|_| random.u8(..)).collect(),
        };
        check_hostile(&mut random, &input);
    }
}

#[test]
fn replies_decode_to_what_was_written() {
    let mut random = seeded();
    for _ in 0..4_000 {
        let said = Said::random(&mut random, 4);
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = b"before".to_vec();
            said.write(&mut Reply::new(&mut out, protocol));
            let wire = &out[b"before".len()..];
            // With more behind it, a reply still ends where it ends.
            let followed = [wire, b":1\r\n"].concat();
            match protocol {
                Protocol::Resp2 => {
                    let (frame, len) = decode_resp2(&followed).unwrap().expect("a whole reply");
                    assert_eq!(len, wire.len(), "{}", shown(wire));
                    assert!(said.is_resp2(&frame), "{said:?} became {frame:?}");
                }
                Protocol::Resp3 => {
                    let (frame, len) = decode_resp3(&followed).unwrap().expect("a whole reply");
                    assert_eq!(len, wire.len(), "{}", shown(wire));
                    assert!(said.is_resp3(&frame), "{said:?} became {frame:?}");
                }
            }
        }
    }
}

// What both sides make of bytes -----------------------------------------------------------------------------------

/// All requests in `input` as our scanner finds them when it arrives in pieces, and the error that ended it.
fn ours(input: &[u8], mut piece: impl FnMut(usize) -> usize) -> (Vec<Args>, Option<ProtocolError>) {
    let (mut scanner, limits) = (Scanner::default(), Limits::default());
    let (mut requests, mut buffer, mut arrived) = (Vec::new(), Vec::new(), 0);
    while arrived < input.len() {
        let end = arrived.saturating_add(piece(arrived)).min(input.len());
        buffer.extend_from_slice(&input[arrived..end]);
        arrived = end;
        loop {
            let consumed = match scanner.scan(&buffer, &limits) {
                Scan::Complete(request, consumed) => {
                    assert!(!request.is_empty(), "a request has at least its name");
                    requests.push(request.iter().map(<[u8]>::to_vec).collect());
                    consumed
                }
                Scan::Empty(consumed) => consumed,
                Scan::Incomplete(needed) => {
                    assert!(needed > buffer.len(), "{needed} wanted, {} there", buffer.len());
                    break;
                }
                Scan::Broken(error) => return (requests, Some(error)),
            };
            assert!(consumed > 0 && consumed <= buffer.len(), "{consumed} of {}", buffer.len());
            buffer.drain(..consumed);
            scanner.shrink();
        }
    }
    (requests, None)
}

/// All requests in a well-formed `input` as `redis-protocol` finds them.
fn theirs(mut input: &[u8]) -> Vec<Args> {
    let mut requests = Vec::new();
    while !input.is_empty() {
        let (args, consumed) = their_request(input).expect("a whole request");
        requests.push(args);
        input = &input[consumed..];
    }
    requests
}

/// The array of bulk strings at the start of `input`, if `redis-protocol` finds a whole one there.
fn their_request(input: &[u8]) -> Option<(Args, usize)> {
    let Ok(Some((Frame2::Array(frames), consumed))) = decode_resp2(input) else { return None };
    let args = frames.into_iter().map(|frame| match frame {
        Frame2::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    Some((args.collect::<Option<Args>>()?, consumed))
}

/// Whatever the bytes are: ours does not care how they are cut, and each request of either side is one of the other,
/// but for the differences named above.
fn check_hostile(random: &mut Rng, input: &[u8]) {
    let whole = ours(input, |_| usize::MAX);
    let piece_max = random.usize(1..16);
    let in_pieces = ours(input, |_| random.usize(1..=piece_max));
    assert_eq!(in_pieces, whole, "cut in pieces up to {piece_max}: {}", shown(input));

    let (mut scanner, limits) = (Scanner::default(), Limits::default());
    let mut rest = input;
    loop {
        let theirs = their_request(rest).filter(|(args, _)| !args.is_empty());
        let consumed = match (scanner.scan(rest, &limits), theirs) {
            (Scan::Complete(request, consumed), theirs) => {
                let args: Args = request.iter().map(<[u8]>::to_vec).collect();
                if rest[0] == b'*' && has_plain_line_ends(rest, &args, consumed) {
                    assert_eq!(theirs, Some((args, consumed)), "{}", shown(rest));
                } else {
                    assert_eq!(theirs, None, "{}", shown(rest));
                }
                consumed
            }
            (Scan::Broken(error), Some((args, consumed))) => {
                let is_number = matches!(error, ProtocolError::InvalidCount | ProtocolError::InvalidBulkLength);
                let is_odd = encoded(&args).len() < consumed; // a sign or zeros that Redis does not take
                assert!(is_number && is_odd, "{error} for {}", shown(rest));
                return;
            }
            (Scan::Empty(consumed), None) => consumed,
            (Scan::Incomplete(_) | Scan::Broken(_), None) => return,
            (scan, Some(theirs)) => panic!("{} but they {theirs:?} for {}", described(&scan), shown(rest)),
        };
        rest = &rest[consumed..];
    }
}

/// True when the request that was scanned has `\r\n` behind each header. That every other byte is as it must be, but
/// for those that Redis does not read, is asserted.
fn has_plain_line_ends(input: &[u8], args: &Args, consumed: usize) -> bool {
    let mut rest = &input[..consumed];
    let mut plain = step_over_header(&mut rest, '*', args.len());
    for arg in args {
        plain &= step_over_header(&mut rest, '$', arg.len());
        let (bytes, behind) = rest.split_at(arg.len());
        assert_eq!(bytes, arg, "{}", shown(input));
        rest = &behind[2..];
    }
    assert!(rest.is_empty(), "{}", shown(input));
    plain
}

/// True when the header ends in `\r\n`.
fn step_over_header(rest: &mut &[u8], kind: char, number: usize) -> bool {
    let header = format!("{kind}{number}\r");
    let behind = rest.strip_prefix(header.as_bytes()).unwrap_or_else(|| panic!("no {header:?} in {}", shown(rest)));
    *rest = &behind[1..];
    behind[0] == b'\n'
}

fn described(scan: &Scan<'_>) -> String {
    match scan {
        Scan::Complete(request, consumed) => format!("{} arguments in {consumed} bytes", request.len()),
        Scan::Empty(consumed) => format!("nothing in {consumed} bytes"),
        Scan::Incomplete(needed) => format!("needs {needed} bytes"),
        Scan::Broken(error) => error.to_string(),
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("b\"{}\"", bytes.escape_ascii())
}

// Random requests -------------------------------------------------------------------------------------------------

/// A generator that each test begins anew, so that one can be run again alone.
fn seeded() -> Rng {
    let seed = match std::env::var("HOLDFAST_TEST_SEED") {
        Ok(text) => text.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    };
    println!("HOLDFAST_TEST_SEED={seed}");
    Rng::with_seed(seed)
}

fn pick<'a, T>(random: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[random.usize(..choices.len())]
}

/// Usually a few short arguments, now and then many or long ones.
fn args(random: &mut Rng) -> Args {
    match random.u8(..40) {
        0 => (0..random.usize(1..2_000)).map(|_| bytes(random, 4)).collect(),
        1 => (0..random.usize(1..4)).map(|_| bytes(random, 70_000)).collect(),
        _ => small_args(random),
    }
}

fn small_args(random: &mut Rng) -> Args {
    (0..random.usize(1..6)).map(|_| bytes(random, 24)).collect()
}

/// Fewer than `limit` bytes, half of the time such as would confuse a careless reader.
fn bytes(random: &mut Rng, limit: usize) -> Vec<u8> {
    let len = random.usize(..limit);
    match random.bool() {
        true => (0..len).map(|_| *pick(random, b"\r\n$*0123\0 ")).collect(),
        false => (0..len).map(|_| random.u8(..)).collect(),
    }
}

fn encoded(args: &Args) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Changes a byte or a few.
fn damage(random: &mut Rng, input: &mut Vec<u8>) {
    let at = random.usize(..=input.len());
    match random.u8(..7) {
        0 => input.truncate(at),
        1 => input.insert(at, *pick(random, b"\r\n$*0123-+:_\0 \"'")),
        2 => {
            let number = *pick(random, &["-1", "0", "+2", "03", "1048577", "536870913", "9223372036854775808"]);
            input.splice(at..at, number.bytes());
        }
        3 => {
            let end = random.usize(at..=input.len());
            let copy = input[at..end].to_vec();
            let to = random.usize(..=input.len());
            input.splice(to..to, copy);
        }
        _ if at == input.len() => {}
        4 => drop(input.remove(at)),
        5 => input[at] = random.u8(..),
        _ => input[at] = *pick(random, b"\r\n$*0123-+"),
    }
}

// Random replies --------------------------------------------------------------------------------------------------

/// One reply as a handler would say it.
#[derive(Debug)]
enum Said {
    Ok,
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    BulkInPieces(Vec<u8>),
    BulkInteger(i64),
    Null,
    NullArray,
    Boolean(bool),
    Double(f64),
    Verbatim(String),
    Array(Vec<Said>),
    OpenArray(Vec<Said>),
    Push(Vec<Said>),
    /// Integers, each of them once: the decoder keeps a set.
    Set(Vec<i64>),
    /// Values by the names `0`, `1`…: the decoder keeps a map.
    Map(Vec<Said>),
}

impl Said {
    fn random(random: &mut Rng, depth: usize) -> Said {
        match random.u8(..if depth > 0 { 17 } else { 12 }) {
            0 => Said::Ok,
            1 => Said::Simple(line(random)),
            2 => Said::Error(format!("ERR {}\r{}\n", line(random), line(random))),
            3 => Said::Integer(integer(random)),
            4 => Said::Bulk(bytes(random, 200)),
            5 => Said::BulkInPieces(bytes(random, 200)),
            6 => Said::BulkInteger(integer(random)),
            7 => Said::Null,
            8 => Said::NullArray,
            9 => Said::Boolean(random.bool()),
            10 => Said::Double(double(random)),
            11 => Said::Verbatim(line(random) + "\r\n" + &line(random)),
            12 => Said::Array(Said::several(random, depth)),
            13 => Said::OpenArray(Said::several(random, depth)),
            14 => Said::Push(Said::several(random, depth)),
            15 => Said::Set((0..random.i64(..120)).collect()),
            _ => Said::Map(Said::several(random, depth)),
        }
    }

    fn several(random: &mut Rng, depth: usize) -> Vec<Said> {
        let count = if random.u8(..20) == 0 { random.usize(..120) } else { random.usize(..5) };
        let depth = if count > 5 { 0 } else { depth - 1 };
        (0..count).map(|_| Said::random(random, depth)).collect()
    }

    fn write(&self, reply: &mut Reply<'_>) {
        let each = |items: &[Said], reply: &mut Reply<'_>| items.iter().for_each(|item| item.write(reply));
        match self {
            Said::Ok => reply.ok(),
            Said::Simple(text) => reply.simple(text),
            Said::Error(text) => reply.error(text),
            Said::Integer(value) => reply.integer(*value),
            Said::Bulk(bytes) => reply.bulk(bytes),
            Said::BulkInPieces(bytes) => {
                let (head, tail) = bytes.split_at(bytes.len() / 2);
                reply.bulk_header(bytes.len());
                reply.raw(head);
                reply.raw(tail);
                reply.bulk_end();
            }
            Said::BulkInteger(value) => reply.bulk_integer(*value),
            Said::Null => reply.null(),
            Said::NullArray => reply.null_array(),
            Said::Boolean(value) => reply.boolean(*value),
            Said::Double(value) => reply.double(*value),
            Said::Verbatim(text) => reply.verbatim(text),
            Said::Array(items) => {
                reply.array(items.len());
                each(items, reply);
            }
            Said::OpenArray(items) => {
                let open = reply.open_array();
                each(items, reply);
                reply.close(open, items.len());
            }
            Said::Push(items) => {
                reply.push(items.len());
                each(items, reply);
            }
            Said::Set(members) => {
                reply.set(members.len());
                members.iter().for_each(|member| reply.integer(*member));
            }
            Said::Map(values) => {
                reply.map(values.len());
                for (name, value) in values.iter().enumerate() {
                    reply.bulk_integer(name as i64);
                    value.write(reply);
                }
            }
        }
    }

    fn is_resp2(&self, frame: &Frame2) -> bool {
        match (self, frame) {
            (Said::Ok, Frame2::SimpleString(text)) => text == b"OK",
            (Said::Simple(said), Frame2::SimpleString(text)) => text == said.as_bytes(),
            (Said::Error(said), Frame2::Error(text)) => *text == on_one_line(said),
            (Said::Integer(said), Frame2::Integer(value)) => value == said,
            (Said::Bulk(said) | Said::BulkInPieces(said), Frame2::BulkString(bytes)) => bytes == said,
            (Said::BulkInteger(said), Frame2::BulkString(text)) => text == said.to_string().as_bytes(),
            (Said::Null | Said::NullArray, Frame2::Null) => true,
            (Said::Boolean(said), Frame2::Integer(value)) => *value == i64::from(*said),
            (Said::Double(said), Frame2::BulkString(text)) => {
                let text = std::str::from_utf8(text).expect("a double is written in ASCII");
                is_same_double(*said, text.parse().expect("a double can be read"))
            }
            (Said::Verbatim(said), Frame2::BulkString(text)) => text == said.as_bytes(),
            (Said::Array(said) | Said::OpenArray(said) | Said::Push(said), Frame2::Array(frames)) => {
                said.len() == frames.len() && said.iter().zip(frames).all(|(said, frame)| said.is_resp2(frame))
            }
            (Said::Set(said), Frame2::Array(frames)) => {
                frames.iter().eq(said.iter().map(|member| Frame2::Integer(*member)).collect::<Vec<_>>().iter())
            }
            (Said::Map(said), Frame2::Array(frames)) => {
                let names = (0..said.len()).map(|name| Frame2::BulkString(name.to_string().into_bytes()));
                frames.len() == said.len() * 2
                    && names.eq(frames.iter().step_by(2).cloned())
                    && said.iter().zip(frames.iter().skip(1).step_by(2)).all(|(said, frame)| said.is_resp2(frame))
            }
            _ => false,
        }
    }

    fn is_resp3(&self, frame: &Frame3) -> bool {
        match (self, frame) {
            (Said::Ok, Frame3::SimpleString { data, .. }) => data == b"OK",
            (Said::Simple(said), Frame3::SimpleString { data, .. }) => data == said.as_bytes(),
            (Said::Error(said), Frame3::SimpleError { data, .. }) => *data == on_one_line(said),
            (Said::Integer(said), Frame3::Number { data, .. }) => data == said,
            (Said::Bulk(said) | Said::BulkInPieces(said), Frame3::BlobString { data, .. }) => data == said,
            (Said::BulkInteger(said), Frame3::BlobString { data, .. }) => data == said.to_string().as_bytes(),
            (Said::Null | Said::NullArray, Frame3::Null) => true,
            (Said::Boolean(said), Frame3::Boolean { data, .. }) => data == said,
            (Said::Double(said), Frame3::Double { data, .. }) => is_same_double(*said, *data),
            (Said::Verbatim(said), Frame3::VerbatimString { data, format, .. }) => {
                data == said.as_bytes() && *format == VerbatimStringFormat::Text
            }
            (Said::Array(said) | Said::OpenArray(said), Frame3::Array { data, .. })
            | (Said::Push(said), Frame3::Push { data, .. }) => {
                said.len() == data.len() && said.iter().zip(data).all(|(said, frame)| said.is_resp3(frame))
            }
            (Said::Set(said), Frame3::Set { data, .. }) => {
                said.len() == data.len() && said.iter().all(|member| data.contains(&Frame3::from(*member)))
            }
            (Said::Map(said), Frame3::Map { data, .. }) => {
                let value = |name: usize| {
                    data.get(&Frame3::BlobString { data: name.to_string().into_bytes(), attributes: None })
                };
                said.len() == data.len()
                    && said.iter().enumerate().all(|(name, said)| value(name).is_some_and(|frame| said.is_resp3(frame)))
            }
            _ => false,
        }
    }
}

/// Text without a line break.
fn line(random: &mut Rng) -> String {
    (0..random.usize(..20)).map(|_| *pick(random, &['a', 'Z', ' ', '$', '*', '\'', '\0', 'é', '漢', '🦀'])).collect()
}

fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// Numbers of every length, the edges often.
fn integer(random: &mut Rng) -> i64 {
    match random.u8(..4) {
        0 => *pick(random, &[0, 1, -1, 9, 10, 99, 100, i64::MAX, i64::MIN]),
        _ => random.i64(..) >> random.u32(..64),
    }
}

/// Doubles of every size, the edges often.
fn double(random: &mut Rng) -> f64 {
    const EDGES: &[f64] =
        &[0.0, -0.0, 0.1, 3.0, 1e15, -1e15, 1e16, 1e17, 5e-324, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY];
    match random.u8(..4) {
        0 => *pick(random, EDGES),
        1 => integer(random) as f64,
        2 => integer(random) as f64 / 1000.0,
        _ => f64::from_bits(random.u64(..)),
    }
}

fn is_same_double(said: f64, read: f64) -> bool {
    said.is_nan() && read.is_nan() || said.to_bits() == read.to_bits()
}
