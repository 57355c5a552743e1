//! How long it takes to find the requests in what a client has sent: our scanner beside the package `redis-protocol`.
//! `scripts/bench --only parsers` builds and runs it.
//!
//! All of them read the same bytes and touch every argument:
//!
//! - `resp::Scanner`, ours: arguments borrowed from the buffer.
//! - `decode_range`: positions in the buffer; the nearest to ours in what it gives.
//! - `decode_bytes_mut`: counted references into the buffer; what the package's codec uses.
//! - `decode`: a copy of each argument.
//!
//! Filling the buffers is not counted for any.
#![forbid(unsafe_code)]

use std::hint::black_box;

use bytes::BytesMut;
use libraries::{Cost, CountingAllocator, Meter, Row, median, print};
use redis_protocol::resp2::decode;
use redis_protocol::resp2::types::{BytesFrame, OwnedFrame, RangeFrame};
use resp::{Limits, Scan, Scanner};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROUNDS: usize = 7;

/// How many requests are in the buffer at once, which are one operation together.
struct Case {
    name: &'static str,
    request: &'static [&'static str],
    depth: u32,
}

const VALUE: &str = match std::str::from_utf8(&[b'x'; 100]) {
    Ok(value) => value,
    Err(_) => unreachable!(),
};

#[rustfmt::skip]
const HSET: &[&str] = &[
    "HSET", "session:48213977", "state", "waiting-for-payment", "updated", "1763172000123", "attempt", "3", "worker", "eu-west-1:17",
    "queue", "payments", "priority", "5", "run_at", "1763172000500", "tenant", "acme",
];
const GET: &[&str] = &["GET", "session:48213977"];

const CASES: &[Case] = &[
    Case { name: "PING", request: &["PING"], depth: 1 },
    Case { name: "GET", request: GET, depth: 1 },
    Case { name: "SET of 100 bytes", request: &["SET", "session:48213977", VALUE], depth: 1 },
    Case { name: "HSET of 8 fields", request: HSET, depth: 1 },
    Case { name: "GET, 16 in the buffer", request: GET, depth: 16 },
    Case { name: "HSET of 8 fields, 16 in the buffer", request: HSET, depth: 16 },
];

type Parser = (&'static str, fn(&[u8], Meter) -> Cost);

const PARSERS: &[Parser] =
    &[("`resp::Scanner`", ours), ("`decode_range`", ranges), ("`decode_bytes_mut`", counted), ("`decode`", owned)];

fn main() {
    let rows = CASES.iter().map(|case| Row { name: case.name, costs: costs(case) }).collect::<Vec<_>>();
    println!("One request, read by our scanner and by redis-protocol (× is its time as a multiple of ours):\n");
    print("request", &PARSERS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), &rows);
}

/// The cost of one request with each of [`PARSERS`]. The rounds take turns, so that a busy moment meets all of them.
fn costs(case: &Case) -> Vec<Cost> {
    let buffer = encoded(case.request).repeat(case.depth as usize);
    let meter = Meter { operations: 8_192 / case.depth, batches: 10 };
    let mut rounds = vec![Vec::new(); PARSERS.len()];
    for _ in 0..ROUNDS {
        for (rounds, (_, measure)) in rounds.iter_mut().zip(PARSERS) {
            let Cost { ns, allocations } = measure(&buffer, meter);
            let depth = f64::from(case.depth);
            rounds.push(Cost { ns: ns / depth, allocations: allocations / depth });
        }
    }
    rounds.iter().map(|rounds| median(rounds)).collect()
}

fn ours(buffer: &[u8], meter: Meter) -> Cost {
    let (mut scanner, limits) = (Scanner::default(), Limits::default());
    meter.measure(
        |_| buffer,
        |mut rest| {
            while let Scan::Complete(request, consumed) = scanner.scan(rest, &limits) {
                request.iter().for_each(touch);
                rest = &rest[consumed..];
            }
            assert!(rest.is_empty());
        },
    )
}

fn ranges(buffer: &[u8], meter: Meter) -> Cost {
    meter.measure(
        |_| buffer,
        |mut rest| {
            while let Some((frame, consumed)) = decode::decode_range(rest).expect("well-formed") {
                let RangeFrame::Array(args) = frame else { panic!("a request is an array") };
                for arg in &args {
                    let RangeFrame::BulkString((start, end)) = arg else { panic!("an argument is a bulk string") };
                    touch(&rest[*start..*end]);
                }
                rest = &rest[consumed..];
            }
            assert!(rest.is_empty());
        },
    )
}

fn counted(buffer: &[u8], meter: Meter) -> Cost {
    meter.measure(
        |_| BytesMut::from(buffer),
        |mut rest| {
            while let Some((frame, ..)) = decode::decode_bytes_mut(&mut rest).expect("well-formed") {
                let BytesFrame::Array(args) = frame else { panic!("a request is an array") };
                for arg in &args {
                    let BytesFrame::BulkString(bytes) = arg else { panic!("an argument is a bulk string") };
                    touch(bytes);
                }
            }
            assert!(rest.is_empty());
        },
    )
}

fn owned(buffer: &[u8], meter: Meter) -> Cost {
    meter.measure(
        |_| buffer,
        |mut rest| {
            while let Some((frame, consumed)) = decode::decode(rest).expect("well-formed") {
                let OwnedFrame::Array(args) = frame else { panic!("a request is an array") };
                for arg in &args {
                    let OwnedFrame::BulkString(bytes) = arg else { panic!("an argument is a bulk string") };
                    touch(bytes);
                }
                rest = &rest[consumed..];
            }
            assert!(rest.is_empty());
        },
    )
}

fn touch(arg: &[u8]) {
    black_box(arg);
}

fn encoded(args: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len());
    for arg in args {
        out += &format!("${}\r\n{arg}\r\n", arg.len());
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each parser panics on a request that it does not read whole.
    #[test]
    fn every_parser_reads_every_case() {
        for case in CASES {
            let buffer = encoded(case.request).repeat(case.depth as usize);
            for (_, measure) in PARSERS {
                measure(&buffer, Meter { operations: 2, batches: 1 });
            }
        }
    }

    #[test]
    fn ours_allocates_nothing() {
        let buffer = encoded(HSET).repeat(16);
        assert_eq!(ours(&buffer, Meter { operations: 4, batches: 1 }).allocations, 0.0);
    }
}
