//! Any bytes, in pieces of any size: the scanner must neither panic nor read past them, must find the same requests as
//! in one piece, and must never wait for what is already there.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use resp::{Limits, Scan, Scanner};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    small_limits: bool,
    unauthenticated: bool,
    /// Sizes of the pieces, less one; used again from the start when they run out.
    pieces: Vec<u8>,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let small = Limits { inline_bytes_max: 64, args_max: 8, bulk_bytes_max: 128, unauthenticated: false };
    let limits = if input.small_limits { small } else { Limits::default() };
    let limits = Limits { unauthenticated: input.unauthenticated, ..limits };
    let mut pieces = input.pieces.iter().map(|less_one| usize::from(*less_one) + 1).cycle();
    let whole = scanned(input.bytes, &limits, || usize::MAX);
    let in_pieces = scanned(input.bytes, &limits, || pieces.next().unwrap_or(1));
    assert_eq!(whole, in_pieces);
});

/// The requests found, and whether an error ended them. Which error may depend on the pieces: a header that is too long
/// to wait for is also no number.
fn scanned(bytes: &[u8], limits: &Limits, mut piece: impl FnMut() -> usize) -> (Vec<Vec<Vec<u8>>>, bool) {
    let (mut scanner, mut requests, mut buffer, mut rest) = (Scanner::default(), Vec::new(), Vec::new(), bytes);
    while !rest.is_empty() {
        let (arrived, later) = rest.split_at(piece().min(rest.len()));
        buffer.extend_from_slice(arrived);
        rest = later;
        loop {
            let consumed = match scanner.scan(&buffer, limits) {
                Scan::Complete(request, consumed) => {
                    assert!(!request.is_empty());
                    requests.push(request.iter().map(<[u8]>::to_vec).collect());
                    consumed
                }
                Scan::Empty(consumed) => consumed,
                Scan::Incomplete(needed) => {
                    assert!(needed > buffer.len());
                    break;
                }
                Scan::Broken(error) => {
                    assert!(error.to_string().starts_with("Protocol error: "));
                    return (requests, true);
                }
            };
            assert!(consumed > 0 && consumed <= buffer.len());
            buffer.drain(..consumed);
            scanner.shrink();
        }
    }
    (requests, false)
}
