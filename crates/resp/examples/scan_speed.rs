//! How long it takes to find the requests in a pipeline: our scanner beside the `redis-protocol` crate.
//!
//! `cargo run --release -p resp --example scan_speed` prints nanoseconds per request, the median of interleaved rounds,
//! and how many times ours each of the others takes. All of them look at the same bytes and touch every argument:
//!
//! - `ours`: [`Scanner`], arguments borrowed from the buffer.
//! - `ranges`: `resp2::decode::decode_range`, positions in the buffer; the nearest to ours in what it gives.
//! - `bytes`: `resp2::decode::decode_bytes_mut`, counted references into the buffer; what its codec uses.
//! - `owned`: `resp2::decode::decode`, a copy of each argument.
//!
//! Filling the buffers is not timed for any.

use bytes::BytesMut;
use redis_protocol::resp2::decode;
use redis_protocol::resp2::types::{BytesFrame, OwnedFrame, RangeFrame};
use resp::{Limits, Scan, Scanner};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 31;
const REQUESTS_PER_ROUND: usize = 64 * 1024;

/// The name of a way to read a pipeline, and how long it took for that many copies of it, in nanoseconds.
type Way = (&'static str, fn(&[u8], usize) -> f64);

const WAYS: &[Way] = &[("ours", ours), ("ranges", ranges), ("bytes", counted), ("owned", owned)];

fn main() {
    println!(
        "{:<16}{:>8}{}",
        "request",
        "depth",
        WAYS.iter().map(|(name, _)| format!("{name:>18}")).collect::<String>()
    );
    let hset: &[&str] = &["HSET", "session:48213977", "state", "waiting-for-payment", "updated", "1763172000123"];
    let hget: &[&str] = &["HGET", "session:48213977", "state"];
    for (name, request) in [("HSET, 2 fields", hset), ("HGET", hget)] {
        for depth in [16, 64] {
            let pipeline = encoded(request).repeat(depth);
            let medians = medians(&pipeline, depth);
            print!("{name:<16}{depth:>8}");
            for median in &medians {
                print!("{median:>9.1} ns {:>5.1}×", median / medians[0]);
            }
            println!();
        }
    }
}

/// Nanoseconds per request in each of [`WAYS`]. The rounds take turns, so that a busy moment meets all of them.
fn medians(pipeline: &[u8], depth: usize) -> Vec<f64> {
    let copies = REQUESTS_PER_ROUND / depth;
    let mut rounds = vec![Vec::new(); WAYS.len()];
    for _ in 0..ROUNDS {
        for (rounds, (_, time)) in rounds.iter_mut().zip(WAYS) {
            rounds.push(time(pipeline, copies) / REQUESTS_PER_ROUND as f64);
        }
    }
    let median = |mut rounds: Vec<f64>| {
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    rounds.into_iter().map(median).collect()
}

fn ours(pipeline: &[u8], copies: usize) -> f64 {
    let (mut scanner, limits) = (Scanner::default(), Limits::default());
    timed(vec![pipeline; copies], |mut rest| {
        while let Scan::Complete(request, consumed) = scanner.scan(rest, &limits) {
            request.iter().for_each(touch);
            rest = &rest[consumed..];
        }
    })
}

fn ranges(pipeline: &[u8], copies: usize) -> f64 {
    timed(vec![pipeline; copies], |mut rest| {
        while let Some((frame, consumed)) = decode::decode_range(rest).expect("the pipeline is well-formed") {
            let RangeFrame::Array(args) = frame else { panic!("a request is an array") };
            for arg in &args {
                let RangeFrame::BulkString((start, end)) = arg else { panic!("an argument is a bulk string") };
                touch(&rest[*start..*end]);
            }
            rest = &rest[consumed..];
        }
    })
}

fn counted(pipeline: &[u8], copies: usize) -> f64 {
    timed(vec![BytesMut::from(pipeline); copies], |mut rest| {
        while let Some((frame, ..)) = decode::decode_bytes_mut(&mut rest).expect("the pipeline is well-formed") {
            let BytesFrame::Array(args) = frame else { panic!("a request is an array") };
            for arg in &args {
                let BytesFrame::BulkString(bytes) = arg else { panic!("an argument is a bulk string") };
                touch(bytes);
            }
        }
    })
}

fn owned(pipeline: &[u8], copies: usize) -> f64 {
    timed(vec![pipeline; copies], |mut rest| {
        while let Some((frame, consumed)) = decode::decode(rest).expect("the pipeline is well-formed") {
            let OwnedFrame::Array(args) = frame else { panic!("a request is an array") };
            for arg in &args {
                let OwnedFrame::BulkString(bytes) = arg else { panic!("an argument is a bulk string") };
                touch(bytes);
            }
            rest = &rest[consumed..];
        }
    })
}

fn timed<T>(pipelines: Vec<T>, mut read: impl FnMut(T)) -> f64 {
    let start = Instant::now();
    for pipeline in pipelines {
        read(black_box(pipeline));
    }
    start.elapsed().as_nanos() as f64
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
