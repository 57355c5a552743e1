//! What commands that work in slices leave to the journal. Needs strace, and the right to use it, to see what is written.

use std::fs;

use crate::faults::Injected;
use crate::support::{Home, ok};

const RECORDS: usize = 20_000;
/// A slice changes at most 256 records.
const SLICE_BYTES_MAX: usize = 512 * 256;

/// All slices together are megabytes, and the first reply after them would wait for a single write.
#[test]
fn the_changes_of_a_slice_are_written_before_the_next() {
    let Some((home, server, mut client)) = Home::serve_client(&["--appendfsync", "no"]) else { return };
    ok(&mut client, "IDX.CREATE at PREFIX 1 j: FIELD at");
    let lines: Vec<String> = (0..RECORDS).map(|number| format!("HSET j:{number} at {number}")).collect();
    for lines in lines.chunks(1_000) {
        assert!(client.pipeline(lines).iter().all(|reply| reply.integer() == 1));
    }
    let list = home.data().with_file_name("writes");
    let Some(listing) = Injected::listing(&home, &server, "pwrite64", &list) else { return };
    let swept = client.run(&format!("SWEEP at BEFORE 9000000 SET 1 note {} LIMIT {RECORDS}", "x".repeat(200)));
    assert_eq!(swept.items().len(), RECORDS);
    listing.mend();
    let list = fs::read_to_string(list).expect("strace has written it");
    let written = list.lines().filter_map(|line| line.rsplit_once(" = ")?.1.parse::<usize>().ok());
    let (total, largest) = written.fold((0, 0), |(total, largest), bytes| (total + bytes, largest.max(bytes)));
    assert!(total > RECORDS * 200, "the journal has {total} bytes of the changes");
    assert!(largest < SLICE_BYTES_MAX, "{largest} bytes were written at once");
}
