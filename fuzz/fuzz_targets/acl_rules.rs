//! Rules of users, as ACL SETUSER and files give them: whatever is accepted makes a user whose description, read as a line of a
//! file, makes the same user. So ACL SAVE and ACL LOAD, and a restart, change no right.

#![no_main]

use arbitrary::Arbitrary;
use engine::acl::selector::Selector;
use engine::acl::{Rights, rules};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    all_channels: bool,
    source: Source<'a>,
}

#[derive(Arbitrary, Debug)]
enum Source<'a> {
    Rules(Vec<Rule<'a>>),
    File(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Rule<'a> {
    Known(u8),
    /// A known beginning, and any end.
    Begun(u8, &'a [u8]),
    /// A known rule with other bytes behind it.
    Extended(u8, &'a [u8]),
    Selector(Vec<(u8, &'a [u8])>),
    Bytes(&'a [u8]),
}

const KNOWN: &[&str] = &[
    "on",
    "off",
    "nopass",
    "resetpass",
    "reset",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "clearselectors",
    "sanitize-payload",
    "skip-sanitize-payload",
    "~*",
    "&*",
    "+@all",
    "-@all",
    "+@read",
    "-@write",
    "+@hash",
    "-@dangerous",
    "+get",
    "-get",
    "+GET",
    "+config",
    "-config|get",
    "+config|set",
    "+select|1",
    "-select",
    "+select",
    "+@connection",
    "-@connection",
    "~a",
    "%R~a",
    "%W~a",
    "%RW~a",
    "%R~*",
    "%W~*",
    "%RW",
    "&ch*",
    "&ch",
    ">secret",
    "<secret",
    "(~a +get)",
    "(%R~b* &c +@all -get)",
    "()",
    "+debug|sleep",
    "+client|id",
    "-client",
];
const BEGINNINGS: &[&str] =
    &["~", "%R~", "%W~", "%RW~", "%", "&", "+", "-", "+@", "-@", ">", "<", "#", "!", "(", "+select|", "+config|"];

fuzz_target!(|input: Input<'_>| {
    // Rules name commands.
    engine::command::registry();
    match input.source {
        Source::Rules(given) => {
            let given: Vec<Vec<u8>> = given.iter().map(bytes).collect();
            let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
            let Ok(joined) = rules::join_selectors(&given) else { return };
            // One after the other, as a user changes: a rule that is refused changes nothing.
            let mut rights = Rights::new(input.all_channels);
            for rule in joined {
                if let Ok(changed) = rules::apply_all(&rights, &[rule], input.all_channels) {
                    rights = changed;
                }
            }
            check(b"bob", &rights, input.all_channels);
        }
        Source::File(text) => {
            if let Ok(named) = engine::parse_users(text, "file", input.all_channels) {
                named.iter().for_each(|(name, rights)| check(name, rights, input.all_channels));
            }
        }
    }
});

fn bytes(rule: &Rule<'_>) -> Vec<u8> {
    let known = |at: u8| KNOWN[usize::from(at) % KNOWN.len()].as_bytes();
    match rule {
        Rule::Known(at) => known(*at).to_vec(),
        Rule::Begun(at, end) => [BEGINNINGS[usize::from(*at) % BEGINNINGS.len()].as_bytes(), end].concat(),
        Rule::Extended(at, end) => [known(*at), end].concat(),
        Rule::Selector(inner) => {
            let inner: Vec<Vec<u8>> = inner.iter().map(|(at, end)| [known(*at), end].concat()).collect();
            [b"(".as_slice(), &inner.join(&b' '), b")"].concat()
        }
        Rule::Bytes(bytes) => bytes.to_vec(),
    }
}

/// Reads the description of a user and compares. What a file says is as `acl-pubsub-default` says, whatever that was before.
fn check(name: &[u8], rights: &Rights, all_channels: bool) {
    let line = [b"user ".as_slice(), name, b" ", &rules::shown_rights(rights)].concat();
    for all_channels in [all_channels, !all_channels] {
        let read = engine::parse_users(&line, "file", all_channels);
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", line.escape_ascii()));
        let Some(again) = read.get(name) else { panic!("{}: no such user", line.escape_ascii()) };
        assert_eq!(read.len(), 1);
        assert!(is_equal(rights, again), "{}\n{}", line.escape_ascii(), rules::shown_rights(again).escape_ascii());
    }
}

fn is_equal(one: &Rights, other: &Rights) -> bool {
    one.is_on == other.is_on
        && one.no_password == other.no_password
        && one.sanitizes == other.sanitizes
        && one.passwords == other.passwords
        && one.is_everything == other.is_everything
        && one.selectors.len() == other.selectors.len()
        && one.selectors.iter().zip(&other.selectors).all(|(one, other)| is_equal_selector(one, other))
}

fn is_equal_selector(one: &Selector, other: &Selector) -> bool {
    let keys = |selector: &Selector| -> Vec<(u8, Vec<u8>)> {
        selector.keys.iter().map(|known| (known.right.bits(), known.text.to_vec())).collect()
    };
    let channels =
        |selector: &Selector| -> Vec<Vec<u8>> { selector.channels.iter().map(|known| known.text.to_vec()).collect() };
    one.commands == other.commands
        && one.first_args == other.first_args
        && one.all_keys == other.all_keys
        && keys(one) == keys(other)
        && one.all_channels == other.all_channels
        && channels(one) == channels(other)
}
