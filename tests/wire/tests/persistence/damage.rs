//! A data directory that is not as it was left: what is normal after a crash is mended, what is not stops the start.
//!
//! The tests of the journal damage every byte of every file. Here is each kind of damage once: what the server and
//! `holdfast check` say of it, and that they touch nothing.

use std::fs;

use wire::Server;

use crate::support::{End, Home, info, ok};

const ALWAYS: &[&str] = &["--appendfsync", "always"];
/// Nothing is ever called durable, so the end of the journal may be torn.
const NEVER: &[&str] = &["--appendfsync", "no"];
const KEYS: i64 = 50;

/// A journal of one batch a key. With `always` all of them are durable.
fn written(policy: &[&str]) -> Option<Home> {
    let (home, server, mut connection) = Home::serve_client(policy)?;
    for number in 0..KEYS {
        ok(&mut connection, &format!("SET key:{number} value:{number}"));
    }
    server.kill();
    Some(home)
}

/// Some segments, each of which ends where it says.
fn stopped_well() -> Option<Home> {
    let home = Home::fresh()?;
    for round in 0..3 {
        let server = home.start(&[]);
        ok(&mut server.connect(), &format!("SET key:{round} last:{round}"));
        End::Term.of(server);
    }
    Some(home)
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

/// The newest file that ends so.
fn newest(home: &Home, end: &str) -> String {
    home.files_named(end).pop().expect("there is one")
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

/// It refuses, naming the file and the place, and touches nothing. Returns what it says.
#[track_caller]
fn assert_refuses(home: &Home, says: &str) -> String {
    let before = home.files();
    let told = home.fail_to_start(&[]);
    assert!(told.contains(says), "{says:?} is not in {told:?}");
    assert!(home.files() == before, "the directory has changed");
    let check = home.tool("check");
    let checked = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(!check.status.success() && checked.contains(says), "check says {checked:?}");
    assert!(home.files() == before, "check has changed the directory");
    told
}

#[test]
fn the_offset_is_that_of_the_damage() {
    let Some(home) = written(ALWAYS) else { return };
    let (file, mut flipped) = (newest(&home, ".seg"), 0);
    home.change(&file, |bytes| {
        flipped = used(bytes) / 2;
        bytes[flipped] ^= 1;
    });
    let told = assert_refuses(&home, &format!("{file} is damaged at offset "));
    let offset = told.split("at offset ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let offset = offset.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no offset in {told:?}"));
    assert!((flipped.saturating_sub(100)..=flipped).contains(&offset), "byte {flipped} was changed: {told}");
}

/// Damages a directory, and returns what is said of it.
type Damage = fn(&Home) -> String;

/// Fills a directory; `None` if it cannot be done here.
type Fill = fn() -> Option<Home>;

/// What was durable and is not there any more, or not as it was.
const DAMAGES: &[(Fill, Damage)] = &[
    // A hole in what was synced.
    (
        || written(ALWAYS),
        |home| {
            damage(home, ".seg", |bytes| {
                let middle = used(bytes) / 2;
                bytes.drain(middle..middle + 64);
            })
        },
    ),
    // The end of what was acknowledged under `always`.
    (|| written(ALWAYS), |home| damage(home, ".seg", |bytes| bytes.truncate(used(bytes) - 30))),
    // After a stop in good order the last batch is proven, too, and so is the newest segment.
    (stopped_well, |home| {
        damage(home, ".seg", |bytes| bytes.truncate(10));
        format!("{} is damaged at offset ", newest(home, ".seg"))
    }),
    (stopped_well, |home| {
        damage(home, ".seg", |bytes| {
            let at = bytes.windows(4).rposition(|window| window == b"last").expect("the value is in the journal");
            bytes[at] ^= 1;
        })
    }),
    (stopped_well, |home| remove(home, ".seg", " is missing: ")),
    (with_snapshot, |home| damage(home, ".snap", |bytes| bytes.truncate(bytes.len() / 2))),
    (with_snapshot, |home| {
        damage(home, ".snap", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        })
    }),
    (with_snapshot, |home| {
        remove(home, ".snap", "");
        ".seg".to_owned()
    }),
    // A format that is not known yet. Segments and marks of one are for the tests of the journal.
    (with_snapshot, |home| {
        damage(home, ".snap", |bytes| {
            bytes[8..12].copy_from_slice(&4_u32.to_le_bytes());
            let meta = u32::from_le_bytes(bytes[40..44].try_into().expect("four bytes")) as usize;
            let sum = crc32c(&[&bytes[..44], &bytes[48..48 + meta]].concat());
            bytes[44..48].copy_from_slice(&sum.to_le_bytes());
        });
        format!("{} was written by a newer version of Holdfast (format 4)", newest(home, ".snap"))
    }),
    // Its numbers fit, and it is of another directory all the same.
    (with_snapshot, |home| exchange(home, ".seg")),
    (with_snapshot, |home| exchange(home, ".snap")),
];

fn damage(home: &Home, end: &str, change: fn(&mut Vec<u8>)) -> String {
    let file = newest(home, end);
    home.change(&file, change);
    format!("{file} is damaged at offset ")
}

fn remove(home: &Home, end: &str, says: &str) -> String {
    let file = newest(home, end);
    fs::remove_file(home.data().join(&file)).expect("cannot remove a file");
    file + says
}

/// Castagnoli's, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Puts the same file of another directory in the place of one.
fn exchange(home: &Home, end: &str) -> String {
    let (other, file) = (with_snapshot().expect("there is a holdfast"), newest(home, end));
    assert_eq!(other.files_named(end), home.files_named(end));
    fs::copy(other.data().join(&file), home.data().join(&file)).expect("cannot copy a file");
    format!("{file} belongs to another data directory: ")
}

#[test]
fn what_is_lost_or_damaged_stops_the_start() {
    for (home, damage) in DAMAGES {
        let Some(home) = home() else { return };
        let says = damage(&home);
        assert_refuses(&home, &says);
    }
}

/// A directory as a crash may leave it: how it is changed, how many keys are left, and which file a warning names.
#[test]
fn what_a_crash_leaves_is_mended_with_a_warning() {
    type Change = fn(&mut Vec<u8>);
    const MENDED: &[(&str, Change, i64)] = &[
        (".seg", |bytes| bytes.truncate(bytes.len() - 3), KEYS - 1),
        (".seg", |bytes| *bytes.last_mut().expect("it is not empty") ^= 1, KEYS - 1),
        (".seg", |bytes| bytes.extend_from_slice(b"garbage"), KEYS),
        (".seg", |bytes| bytes.extend_from_slice(&[0xff; 5000]), KEYS),
        ("MARKS", |bytes| *bytes = b"nonsense".to_vec(), KEYS),
    ];
    for (end, change, keys) in MENDED {
        let Some(home) = written(NEVER) else { return };
        let file = newest(&home, end);
        home.change(&file, change);
        let server = home.start(NEVER);
        assert_has(&server, *keys);
        assert!(home.stderr().contains(&file) && home.stderr().contains("WARN"), "{}", home.stderr());
        ok(&mut server.connect(), "SET again 1");
        let server = home.serve_again(server, NEVER);
        assert_eq!(server.connect().run("DBSIZE").integer(), keys + 1);
        assert!(!home.stderr().contains("WARN"), "it is mended: {}", home.stderr());
    }
}

#[test]
fn zeros_and_an_empty_segment_behind_the_end_are_nothing() {
    let Some(home) = written(&[]) else { return };
    home.change(&newest(&home, ".seg"), |bytes| bytes.resize(bytes.len() + 100_000, 0));
    let server = home.start(&[]);
    assert_has(&server, KEYS);
    assert!(!home.stderr().contains("WARN"), "{}", home.stderr());
    server.kill();
    let Some(home) = written(&[]) else { return };
    fs::write(home.data().join(format!("journal-{:020}.seg", KEYS + 1)), b"").expect("cannot write a file");
    assert_has(&home.start(&[]), KEYS);
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
