//! Walks the command table: what must hold for every row, and what Redis says of the commands that both have.

use engine::command::{CommandRow, Find, Flags, Handler, KeyFlags, KeysBegin, Locks, registry};
use resp::OwnedRequest;
use std::collections::{BTreeMap, BTreeSet};
use test_random::Random;

/// Redis's COMMAND INFO; its first lines say what the columns are.
const REDIS: &str = include_str!("redis_commands.txt");

fn rows() -> impl Iterator<Item = &'static CommandRow> {
    registry().rows().iter().copied()
}

#[test]
fn every_row_is_documented() {
    let missing: Vec<_> = rows().filter(|row| row.command.docs.summary.is_empty()).map(|row| &row.full_name).collect();
    assert!(missing.is_empty(), "without documentation: {missing:?}");
}

#[test]
fn names_are_lower_case_and_unique() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let name = &row.full_name;
        assert_eq!(*name, name.to_lowercase());
        assert!(!name.is_empty() && name.is_ascii(), "{name:?}");
        assert!(seen.insert(name), "{name} is there twice");
        let found = registry().find_full(name.to_uppercase().as_bytes());
        assert_eq!(found.map(|found| found.index), Some(row.index), "{name}");
    }
}

#[test]
fn arity_counts_the_name() {
    for row in rows() {
        let arity = usize::from(row.command.arity.0.unsigned_abs());
        assert!(arity >= row.name_args, "{}: {arity}", row.full_name);
        assert!(row.accepts(arity) && !row.accepts(arity - 1), "{}: {arity}", row.full_name);
    }
}

#[test]
fn a_request_says_how_many_keys_follow() {
    for (request, expected) in [
        ("ZUNION 2 a b", vec![2, 3]),
        ("ZUNION 2 a b WITHSCORES", vec![2, 3]),
        ("ZUNION 3 a b", vec![]),
        ("ZUNION 0 a b", vec![]),
        ("ZUNION x a b", vec![]),
        ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", vec![1, 3, 4]),
        ("ZUNIONSTORE d 9 a b", vec![1]),
        ("ZMPOP 1 a MIN", vec![2]),
    ] {
        let words: OwnedRequest = request.split(' ').map(str::as_bytes).collect();
        let row = registry().find(words.as_request().arg(0)).unwrap();
        assert_eq!(row.key_positions(words.as_request()).collect::<Vec<_>>(), expected, "{request}");
    }
}

#[test]
fn keys_are_among_the_arguments() {
    for row in rows() {
        let (name, arity) = (&row.full_name, i64::from(row.command.arity.0.unsigned_abs()));
        for (number, spec) in row.command.keys.specs().iter().enumerate() {
            let KeysBegin::Index(first) = spec.begin else { continue };
            // Channels, unlike keys, may be left out, and so may a second group of keys (PFMERGE).
            let arity = if is_channels(row) || number > 0 { arity + 1 } else { arity };
            assert!((row.name_args as i64..arity).contains(&i64::from(first)), "{name}: keys from {first} on");
            let Find::Range { last, step, .. } = spec.find else { continue };
            let last = if last < 0 { arity + i64::from(last) } else { i64::from(first) + i64::from(last) };
            assert!(step > 0, "{name}: a step of 0 leads nowhere");
            assert!((i64::from(first)..arity).contains(&last), "{name}: keys up to {last}");
        }
        for count in arity..arity + 5 {
            // Where a number of keys is asked for: right ones, and ones that cannot be.
            for given in ["x", "0", "1", "2", "-1", "9223372036854775807"] {
                let request: OwnedRequest = (0..count).map(|_| given.as_bytes()).collect();
                let found = row.found_keys(request.as_request());
                let mut positions = found.ranges.iter().flat_map(|range| range.positions());
                assert!(positions.all(|at| at < count as usize), "{name} with {count} arguments");
            }
        }
    }
}

/// Access control asks for the most that a row says, where the key is always in the same place: a request must not do more.
#[test]
fn a_request_does_no_more_with_its_only_key_than_the_row_says() {
    const READS: KeyFlags = KeyFlags::ACCESS;
    const WRITES: KeyFlags = KeyFlags::INSERT.union(KeyFlags::DELETE).union(KeyFlags::UPDATE);
    const WORDS: [&str; 9] = ["GET", "SET", "INCRBY", "OVERFLOW", "KEEPTTL", "STORE", "EX", "u8", "1"];
    let mut random = Random::new();
    let mut varying = 0;
    for row in rows() {
        let Some((at, most)) = row.command.keys.only_key_at_most() else { continue };
        varying += usize::from(most.contains(KeyFlags::VARIABLE_FLAGS));
        let arity = usize::from(row.command.arity.0.unsigned_abs());
        for _ in 0..200 {
            let count = arity + random.below(9);
            let request: OwnedRequest = (0..count).map(|_| random.pick(&WORDS).as_bytes()).collect();
            let found = row.found_keys(request.as_request()).ranges;
            let [range] = found[..] else { panic!("{}: {found:?}", row.full_name) };
            assert_eq!((range.first as usize, range.last as usize), (at, at), "{}", row.full_name);
            for right in [READS, WRITES] {
                assert!(most.intersects(right) || !range.flags.intersects(right), "{}: {range:?}", row.full_name);
            }
        }
    }
    assert!(varying > 0, "SET is one");
}

#[test]
fn every_group_of_keys_says_what_is_done_with_it() {
    const HOW: KeyFlags = KeyFlags::RO.union(KeyFlags::RW).union(KeyFlags::OW).union(KeyFlags::RM);
    for row in rows() {
        for spec in row.command.keys.specs() {
            let (name, flags) = (&row.full_name, spec.flags);
            let ways = flags.intersection(HOW).bits().count_ones();
            assert_eq!(ways, if is_channels(row) { 0 } else { 1 }, "{name}: {flags:?}");
            // A command that only looks may leave something to be kept (PFCOUNT).
            let writes = matches!(row.command.handler, Handler::Write(_) | Handler::Script(_))
                || row.command.flags.has(Flags::MAY_REPLICATE);
            assert!(writes || !flags.writes(), "{name} cannot write: {flags:?}");
        }
    }
}

fn is_channels(row: &CommandRow) -> bool {
    row.command.keys.specs().iter().any(|spec| spec.flags == KeyFlags::NOT_KEY)
}

#[test]
fn flags_agree_with_what_the_handler_can_do() {
    for row in rows() {
        let (name, flags, locks) = (&row.full_name, row.command.flags, row.command.keys.locks);
        match row.command.handler {
            Handler::Write(_) => assert!(!flags.has(Flags::READONLY), "{name} writes"),
            Handler::Read(_) => assert!(!flags.has(Flags::WRITE), "{name} only reads"),
            Handler::Server(_) => assert_eq!(locks, Locks::None, "{name} has nothing locked for it"),
            Handler::Script(_) => {
                let is_declared = flags.has(Flags::MOVABLE_KEYS) && !flags.has(Flags::WRITE);
                let own = if is_declared { Locks::Declared } else { Locks::Everything };
                assert_eq!(locks, own, "{name} takes its locks itself; its definitions are global");
            }
            Handler::Container => {
                assert!(!row.subcommands.is_empty(), "{name} contains nothing");
                assert_eq!((flags, row.command.arity.0), (Flags::empty(), -2), "{name}");
            }
        }
        assert!(!flags.contains(Flags::WRITE.union(Flags::READONLY)), "{name} is either");
    }
}

#[test]
fn commands_of_redis_are_described_as_in_redis() {
    let mut differences = Vec::new();
    let redis: BTreeMap<&str, Vec<&str>> = REDIS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split(' ');
            (columns.next().expect("a line has a name"), columns.collect())
        })
        .collect();
    for row in rows() {
        let Some(theirs) = redis.get(row.full_name.as_str()) else { continue };
        let titles = ["arity", "flags", "first key", "last key", "step", "categories", "tips", "key specs"];
        for ((title, theirs), ours) in titles.iter().zip(theirs).zip(described(row)) {
            if *theirs != "?" && sorted(theirs) != sorted(&ours) {
                differences.push(format!("{} {title}: {ours}, Redis says {theirs}", row.full_name));
            }
        }
    }
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}

/// A row in the words of the fixture.
fn described(row: &CommandRow) -> [String; 8] {
    let command = row.command;
    let flags = command.flags.names();
    let (first, last, step) = command.keys.fixed_range();
    let specs: Vec<_> = command
        .keys
        .specs()
        .iter()
        .map(|spec| {
            let begin = match spec.begin {
                KeysBegin::Index(at) => at.to_string(),
                KeysBegin::Keyword { word, from } => format!("{word}>{from}"),
                KeysBegin::Unknown => "unknown".to_owned(),
            };
            let find = match spec.find {
                Find::Count { step: 1 } => "keynum".to_owned(),
                Find::Count { step } => format!("keynum:{step}"),
                Find::Unknown => "unknown".to_owned(),
                Find::Range { last, step, .. } => format!("{last}:{step}"),
            };
            format!("{}@{begin}:{find}", spec.flags.names().join("/"))
        })
        .collect();
    [
        command.arity.0.to_string(),
        listed(&flags),
        first.to_string(),
        last.to_string(),
        step.to_string(),
        listed(&row.acl_categories()),
        listed(command.tips),
        listed(&specs),
    ]
}

fn listed(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => "-".into(),
        _ => words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(","),
    }
}

fn sorted(list: &str) -> Vec<&str> {
    let mut words: Vec<_> = list.split(',').collect();
    words.sort_unstable();
    words
}
