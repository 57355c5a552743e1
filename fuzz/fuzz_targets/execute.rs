//! Any sequence of requests to one engine: none may panic or leave anything but one whole reply, and one that is refused
//! must change nothing. `crates/engine/tests/hostile.rs` is the short form of this, for every test run.
//!
//! DEBUG is off, as it is by default: its SLEEP and POPULATE do what their names say.

#![no_main]

mod footer;
#[path = "../../crates/engine/tests/common/host.rs"]
mod host;
#[path = "../../crates/engine/tests/hostile/world.rs"]
#[allow(dead_code, reason = "the test uses more of it")]
mod world;

use arbitrary::Arbitrary;
use engine::Settings;
use engine::command::{CommandRow, registry};
use engine::execution::docs::Argument;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use world::{Content, Snapshot, World, settings, shown};

#[derive(Arbitrary, Debug)]
struct Step {
    pass_ms: u8,
    row: u8,
    args: Vec<Arg>,
}

/// An argument: what a command is likely to look at, or anything.
#[derive(Arbitrary, Debug)]
enum Arg {
    Key(u8),
    /// An option word of this very command.
    Word(u8),
    Small(i8),
    Number(i64),
    /// Milliseconds from the clock's start.
    Time(i16),
    Bytes(Vec<u8>),
    /// A payload for RESTORE.
    Payload(Vec<u8>),
}

/// Requests to one engine, and bytes that it may hold: more makes LCS and the like slow, and finds no more.
const STEPS_MAX: usize = 64;
const HELD_BYTES_MAX: usize = 8 << 10;

/// Shared by all that do not change them: making them takes longer than most conversations.
static DEFAULTS: LazyLock<Arc<Settings>> = LazyLock::new(|| settings(&[]));

fuzz_target!(|steps: Vec<Step>| {
    let steps = &steps[..steps.len().min(STEPS_MAX)];
    let changes_settings = steps.iter().any(|step| row(step).full_name.starts_with("config"));
    let mut world = World::new(if changes_settings { settings(&[]) } else { DEFAULTS.clone() });
    let mut before = world.snapshot();
    for step in steps {
        if step.pass_ms > 0 {
            world.pass_ms(u64::from(step.pass_ms) * 10);
            before = world.snapshot();
        }
        let request = request(step);
        let reply = world.ask(&request);
        let after = world.snapshot();
        if reply.is_some_and(|reply| reply[0] == b'-') {
            assert_eq!(before, after, "{} changed something", shown(&request));
        }
        before = after;
        if held_bytes(&before) > HELD_BYTES_MAX {
            return;
        }
    }
});

fn row(step: &Step) -> &'static CommandRow {
    let rows = registry().rows();
    rows[usize::from(step.row) % rows.len()]
}

fn request(step: &Step) -> Vec<Vec<u8>> {
    let row = row(step);
    let name = row.full_name.split('|').map(|word| word.as_bytes().to_vec());
    name.chain(step.args.iter().map(|arg| text(row, arg))).collect()
}

fn text(row: &CommandRow, arg: &Arg) -> Vec<u8> {
    match arg {
        Arg::Key(number) => format!("{}{}", if *number < 128 { "" } else { "{tag}" }, number % 4).into_bytes(),
        Arg::Word(number) => {
            let mut words = Vec::new();
            collect_words(row.command.docs.arguments, &mut words);
            if words.is_empty() { Vec::new() } else { words[usize::from(*number) % words.len()].into() }
        }
        Arg::Small(number) => number.to_string().into_bytes(),
        // As a length or a count, numbers in between are slow and yet allowed.
        Arg::Number(number @ (-0x2000000..=-0x1000 | 0x1000..=0x2000000)) => (number % 0x1000).to_string().into_bytes(),
        Arg::Number(number) => number.to_string().into_bytes(),
        Arg::Time(ms) => (1_763_172_000_000 + i64::from(*ms)).to_string().into_bytes(),
        Arg::Bytes(bytes) => bytes.clone(),
        Arg::Payload(body) => footer::with_footer(body, 12),
    }
}

fn collect_words(arguments: &[Argument], words: &mut Vec<&'static str>) {
    for argument in arguments {
        words.extend(argument.token);
        collect_words(argument.arguments, words);
    }
}

fn held_bytes(snapshot: &Snapshot) -> usize {
    let bytes = |content: &Content| match content {
        Content::String(bytes) | Content::Image(bytes) => bytes.len(),
        Content::Hash(fields) => fields.iter().map(|(field, (value, _))| field.len() + value.len()).sum(),
        Content::Set(members) => members.iter().map(Vec::len).sum(),
        Content::List(elements) => elements.iter().map(Vec::len).sum(),
        Content::SortedSet(members) => members.iter().map(|(name, _)| name.len() + 8).sum(),
        Content::Register(value, whole) => value.len().max(whole.len() / 4),
        Content::Session(bytes, _) | Content::Stream(bytes, _) => *bytes,
        Content::Run(events) => events.iter().map(|(_, _, event)| event.len()).sum(),
        Content::Cell(versions) => versions.iter().map(|(_, _, value)| value.len()).sum(),
    };
    snapshot.iter().map(|((_, name), (content, _))| name.len() + bytes(content)).sum()
}
