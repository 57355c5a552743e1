//! A data directory that is not as it was left: what is normal after a crash is mended, what is not stops the start.

use std::fs;

use wire::Server;

use crate::support::{Home, info, ok};

const ALWAYS: &[&str] = &["--appendfsync", "always"];
/// Nothing is ever called durable, so the end of the journal may be torn.
const NEVER: &[&str] = &["--appendfsync", "no"];
const KEYS: i64 = 200;

/// A journal of one batch a key, all of them durable and every frame a proof of the one before.
fn written(policy: &[&str]) -> Option<Home> {
    let home = Home::fresh()?;
    let server = home.start(policy);
    let mut connection = server.connect();
    for number in 0..KEYS {
        ok(&mut connection, &format!("SET key:{number} value:{number}"));
    }
    server.kill();
    Some(home)
}

fn segment(home: &Home) -> String {
    let segments = home.files_named(".seg");
    assert_eq!(segments.len(), 1, "{segments:?}");
    segments[0].clone()
}

/// The length of what was written: `always` extends its files with zeros.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[track_caller]
fn assert_has(server: &Server, keys: i64) {
    let mut connection = server.connect();
    assert_eq!(connection.run("DBSIZE").integer(), keys);
    for number in 0..keys {
        assert_eq!(connection.run(&format!("GET key:{number}")).text(), format!("value:{number}"));
    }
}

/// It refuses, naming the file and the place, and touches nothing.
#[track_caller]
fn assert_refuses(home: &Home, says: &str) {
    let before = home.files();
    for _ in 0..2 {
        let told = home.fail_to_start(&[]);
        assert!(told.contains(says), "{says:?} is not in {told:?}");
        assert!(home.files() == before, "the directory has changed");
    }
    let check = home.tool("check");
    let told = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(!check.status.success() && told.contains(says), "check says {told:?}");
    assert!(home.files() == before, "check has changed the directory");
}

#[test]
fn a_flipped_bit_in_what_was_synced_stops_the_start() {
    for place in [10, 30, 50, 90] {
        let Some(home) = written(ALWAYS) else { return };
        let file = segment(&home);
        home.change(&file, |bytes| {
            let at = used(bytes) * place / 100;
            bytes[at] ^= 0x10;
        });
        assert_refuses(&home, &format!("{file} is damaged at offset "));
    }
}

#[test]
fn the_offset_is_that_of_the_damage() {
    let Some(home) = written(ALWAYS) else { return };
    let file = segment(&home);
    let mut flipped = 0;
    home.change(&file, |bytes| {
        flipped = used(bytes) / 2;
        bytes[flipped] ^= 1;
    });
    let told = home.fail_to_start(&[]);
    let offset = told.split("at offset ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let offset: usize =
        offset.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no offset in {told:?}"));
    assert!((flipped.saturating_sub(100)..=flipped).contains(&offset), "byte {flipped} was changed: {told}");
}

#[test]
fn a_hole_in_what_was_synced_stops_the_start() {
    let Some(home) = written(ALWAYS) else { return };
    let file = segment(&home);
    home.change(&file, |bytes| {
        let middle = used(bytes) / 2;
        bytes.drain(middle..middle + 64);
    });
    assert_refuses(&home, &format!("{file} is damaged at offset "));
}

#[test]
fn a_damaged_segment_header_stops_the_start() {
    let Some(home) = written(ALWAYS) else { return };
    // A second segment, which proves that the first was durable.
    let server = home.start(ALWAYS);
    ok(&mut server.connect(), "SET more 1");
    server.kill();
    let file = home.files_named(".seg")[0].clone();
    home.change(&file, |bytes| bytes[20] ^= 1);
    assert_refuses(&home, &format!("{file} is damaged at offset "));
}

#[test]
fn a_missing_segment_stops_the_start() {
    let Some(home) = written(ALWAYS) else { return };
    for _ in 0..2 {
        let server = home.start(ALWAYS);
        ok(&mut server.connect(), "SET more 1");
        server.kill();
    }
    let files = home.files_named(".seg");
    assert!(files.len() >= 3, "{files:?}");
    fs::remove_file(home.data().join(&files[1])).expect("cannot remove a segment");
    assert_refuses(&home, ".seg");
}

#[test]
fn a_torn_tail_is_dropped_with_a_warning() {
    for cut in [1, 3, 20, 30] {
        let Some(home) = written(NEVER) else { return };
        let file = segment(&home);
        home.change(&file, |bytes| bytes.truncate(bytes.len() - cut));
        let server = home.start(NEVER);
        assert_has(&server, KEYS - 1);
        assert!(home.stderr().contains(&file) && home.stderr().contains("WARN"), "{}", home.stderr());
        ok(&mut server.connect(), "SET again 1");
        server.kill();
        let server = home.start(NEVER);
        assert_eq!(server.connect().run("DBSIZE").integer(), KEYS);
        assert!(!home.stderr().contains("WARN"), "it is mended: {}", home.stderr());
    }
}

/// The highest batch that `MARKS` calls durable.
fn marked(home: &Home) -> u64 {
    let bytes = home.files()["MARKS"].clone();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [0, 4096].map(|slot| (number(slot + 32), number(slot + 40))).into_iter().max().expect("there are two").1
}

/// What was acknowledged under `always` was durable, so it must be there.
#[test]
fn an_end_that_was_durable_and_is_cut_off_stops_the_start() {
    for cut in [1, 30, 45, 500] {
        let Some(home) = written(ALWAYS) else { return };
        assert_eq!(marked(&home), KEYS as u64);
        let file = segment(&home);
        home.change(&file, |bytes| bytes.truncate(used(bytes) - cut));
        assert_refuses(&home, &format!("{file} is damaged at offset "));
    }
}

/// Under `everysec` it is a torn tail, unless a sync came first.
#[test]
fn an_end_that_was_not_durable_and_is_cut_off_is_dropped_with_a_warning() {
    for _ in 0..20 {
        let Some(home) = written(&["--appendfsync", "everysec"]) else { return };
        // On a slow machine the second may be over already.
        if marked(&home) == KEYS as u64 {
            continue;
        }
        let file = segment(&home);
        home.change(&file, |bytes| bytes.truncate(bytes.len() - 3));
        let said = home.tool("check");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let server = home.start(&[]);
        assert_has(&server, KEYS - 1);
        assert!(home.stderr().contains(&file) && home.stderr().contains("WARN"), "{}", home.stderr());
        return;
    }
    panic!("every attempt was overtaken by the sync of the second");
}

/// After a stop in good order the journal ends where it says, or something is missing.
#[test]
fn a_newest_segment_that_is_deleted_after_a_clean_stop_stops_the_start() {
    let Some(home) = Home::fresh() else { return };
    for round in 0..3 {
        let server = home.start(&[]);
        ok(&mut server.connect(), &format!("SET key:{round} value:{round}"));
        crate::support::End::Term.of(server);
    }
    let files = home.files_named(".seg");
    assert_eq!(files.len(), 3);
    for file in files.iter().rev() {
        fs::remove_file(home.data().join(file)).expect("cannot remove a segment");
        assert_refuses(&home, &format!("{} is missing: ", files[2]));
    }
}

#[test]
fn a_newest_segment_that_is_cut_off_after_a_clean_stop_stops_the_start() {
    for keep in [0, 10, 56, 80] {
        let Some(home) = Home::fresh() else { return };
        let server = home.start(&[]);
        ok(&mut server.connect(), "SET a 1");
        crate::support::End::Term.of(server);
        let file = segment(&home);
        home.change(&file, |bytes| bytes.truncate(keep));
        assert_refuses(&home, &format!("{file} is damaged at offset "));
    }
}

/// Its numbers fit, and it is of another directory all the same.
#[test]
fn a_segment_of_another_directory_stops_the_start() {
    let (Some(home), Some(other)) = (written(NEVER), written(NEVER)) else { return };
    for home in [&home, &other] {
        let server = home.start(NEVER);
        ok(&mut server.connect(), "SET more 1");
        server.kill();
    }
    let files = home.files_named(".seg");
    assert_eq!(files, other.files_named(".seg"));
    let original = home.files();
    for file in &files {
        fs::copy(other.data().join(file), home.data().join(file)).expect("cannot copy a segment");
        assert_refuses(&home, &format!("{file} belongs to another data directory: "));
        fs::write(home.data().join(file), &original[file]).expect("cannot write a segment");
    }
    assert_eq!(home.start(NEVER).connect().run("DBSIZE").integer(), KEYS + 1);
}

#[test]
fn a_snapshot_of_another_directory_stops_the_start() {
    let (Some(home), Some(other)) = (with_snapshot(), with_snapshot()) else { return };
    let file = home.files_named(".snap")[0].clone();
    assert_eq!(other.files_named(".snap"), home.files_named(".snap"));
    fs::copy(other.data().join(&file), home.data().join(&file)).expect("cannot copy a snapshot");
    assert_refuses(&home, &format!("{file} belongs to another data directory: "));
}

#[test]
fn without_marks_it_starts_with_a_warning() {
    for is_torn in [false, true] {
        let Some(home) = written(ALWAYS) else { return };
        let marks = home.data().join("MARKS");
        let changed = if is_torn { fs::write(marks, b"nonsense") } else { fs::remove_file(marks) };
        changed.expect("cannot change the marks");
        let server = home.start(&[]);
        assert_has(&server, KEYS);
        assert!(home.stderr().contains("WARN") && home.stderr().contains("MARKS"), "{}", home.stderr());
        server.kill();
        home.start(&[]);
        assert!(!home.stderr().contains("WARN"), "it is made anew: {}", home.stderr());
    }
}

#[test]
fn garbage_behind_the_end_is_dropped_with_a_warning() {
    for garbage in [&b"garbage"[..], &[0xff; 5000], &[1; 24], b"*1\r\n$4\r\nPING\r\n"] {
        let Some(home) = written(NEVER) else { return };
        let file = segment(&home);
        home.change(&file, |bytes| bytes.extend_from_slice(garbage));
        let server = home.start(NEVER);
        assert_has(&server, KEYS);
        assert!(home.stderr().contains(&file) && home.stderr().contains("WARN"), "{}", home.stderr());
    }
}

#[test]
fn zeros_behind_the_end_are_nothing() {
    let Some(home) = written(&[]) else { return };
    let file = segment(&home);
    home.change(&file, |bytes| bytes.resize(bytes.len() + 100_000, 0));
    let server = home.start(&[]);
    assert_has(&server, KEYS);
    assert!(!home.stderr().contains("WARN"), "{}", home.stderr());
}

#[test]
fn an_empty_segment_at_the_end_is_nothing() {
    let Some(home) = written(&[]) else { return };
    let next = format!("journal-{:020}.seg", KEYS + 1);
    fs::write(home.data().join(&next), b"").expect("cannot write a file");
    let server = home.start(&[]);
    assert_has(&server, KEYS);
}

#[test]
fn a_flipped_bit_in_the_last_batch_loses_no_other() {
    let Some(home) = written(NEVER) else { return };
    let file = segment(&home);
    home.change(&file, |bytes| *bytes.last_mut().expect("it is not empty") ^= 1);
    assert_has(&home.start(NEVER), KEYS - 1);
}

/// After a stop in good order the last batch is proven too.
#[test]
fn a_server_that_stopped_well_proves_all_it_wrote() {
    let Some(home) = Home::fresh() else { return };
    let server = home.start(&[]);
    let mut connection = server.connect();
    ok(&mut connection, "SET first 1");
    ok(&mut connection, "SET last 2");
    crate::support::End::Term.of(server);
    let file = segment(&home);
    home.change(&file, |bytes| {
        let at = bytes.windows(4).rposition(|window| window == b"last").expect("the key is in the journal");
        bytes[at] ^= 1;
    });
    assert_refuses(&home, &format!("{file} is damaged at offset "));
}

fn with_snapshot() -> Option<Home> {
    let home = written(&[])?;
    let server = home.start(&[]);
    let mut connection = server.connect();
    ok(&mut connection, "SAVE");
    ok(&mut connection, "SET after 1");
    server.kill();
    Some(home)
}

#[test]
fn a_damaged_snapshot_stops_the_start() {
    for place in [1, 10, 50, 99] {
        let Some(home) = with_snapshot() else { return };
        let file = home.files_named(".snap")[0].clone();
        home.change(&file, |bytes| {
            let at = bytes.len() * place / 100;
            bytes[at] ^= 1;
        });
        assert_refuses(&home, &format!("{file} is damaged at offset "));
    }
}

#[test]
fn a_snapshot_cut_short_stops_the_start() {
    for keep in [0, 10, 40, 60, 99] {
        let Some(home) = with_snapshot() else { return };
        let file = home.files_named(".snap")[0].clone();
        home.change(&file, |bytes| bytes.truncate(bytes.len() * keep / 100));
        assert_refuses(&home, &format!("{file} is damaged at offset "));
    }
}

#[test]
fn a_missing_snapshot_stops_the_start() {
    let Some(home) = with_snapshot() else { return };
    let file = home.files_named(".snap")[0].clone();
    fs::remove_file(home.data().join(file)).expect("cannot remove the snapshot");
    assert_refuses(&home, ".seg");
}

#[test]
fn a_newer_format_is_refused() {
    for end in [".seg", ".snap"] {
        let Some(home) = with_snapshot() else { return };
        let file = home.files_named(end).last().expect("there is one").clone();
        home.change(&file, |bytes| {
            bytes[8..12].copy_from_slice(&4_u32.to_le_bytes());
            let sum = if end == ".seg" { 52 } else { 44 };
            let mut covered = bytes[..sum].to_vec();
            if end == ".snap" {
                let meta = u32::from_le_bytes(bytes[40..44].try_into().expect("four bytes")) as usize;
                covered.extend_from_slice(&bytes[48..48 + meta]);
            }
            bytes[sum..sum + 4].copy_from_slice(&crc32c(&covered).to_le_bytes());
        });
        assert_refuses(&home, &format!("{file} was written by a newer version of Holdfast (format 4)"));
    }
}

/// Castagnoli's, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() {
    let Some(home) = Home::fresh() else { return };
    fs::write(home.data(), b"not a directory").expect("cannot write a file");
    let told = home.fail_to_start(&[]);
    assert!(told.contains("data directory") && told.contains(home.data().to_str().expect("a plain name")), "{told}");
    assert_eq!(fs::read(home.data()).expect("it is there"), b"not a directory");
}

#[test]
fn it_makes_its_directory_with_the_parents() {
    let Some(home) = Home::fresh() else { return };
    let deep = home.data().join("a/b");
    let server = Server::start(&deep, &[]);
    ok(&mut server.connect(), "SET a 1");
    server.kill();
    let server = Server::start(&deep, &[]);
    assert_eq!(server.connect().run("GET a").text(), "1");
    assert_eq!(info::<u64>(&mut server.connect(), "rdb_last_load_keys_loaded"), 1);
}

/// What failed and why, each once.
#[test]
fn the_error_of_a_start_says_nothing_twice() {
    let Some(home) = written(ALWAYS) else { return };
    fs::create_dir(home.data().join("journal-next.tmp")).expect("cannot make a directory");
    let said = home.fail_to_start(ALWAYS);
    let last = said.lines().last().expect("it says why");
    assert!(last.contains("journal-next.tmp failed"), "{said}");
    let mut parts: Vec<&str> = last.split(": ").collect();
    let count = parts.len();
    parts.sort_unstable();
    parts.dedup();
    assert_eq!(parts.len(), count, "{last}");
}
