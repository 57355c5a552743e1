//! Random commands against the server and against a plain map: every reply must agree.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again.

mod commands;
mod model;

use wire::own::steps;
use wire::{Connection, Random, Reply, Session, split_args};

use commands::Commands;
use model::Model;

const STEPS: usize = 20_000;
/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 40;

#[test]
fn random_commands_agree_with_a_plain_map() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut commands = Commands::new(Random::from_env(), &session);
    let mut model = Model::default();
    let mut history = Vec::new();
    while history.len() < steps(STEPS) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        compare(&mut connection, &mut model, &pipeline, &mut history);
    }
    // At the end the whole state, read in every way there is.
    compare(&mut connection, &mut model, &commands.readings(), &mut history);
}

fn compare(connection: &mut Connection, model: &mut Model, pipeline: &[String], history: &mut Vec<String>) {
    let replies = connection.pipeline(pipeline);
    for (command, reply) in pipeline.iter().zip(replies) {
        let words = split_args(command).expect("a command that can be split");
        let expected = model.run(&words).unwrap_or_else(|error| Reply::Error(error.into()));
        let expected = in_order(command, expected);
        let received = in_order(command, reply);
        history.push(format!("> {command}\n{expected}"));
        if received != expected {
            let shown = &history[history.len().saturating_sub(HISTORY_SHOWN)..];
            panic!("{}\nreceived: {received}", shown.join("\n"));
        }
    }
}

/// Sorts what has no order of its own.
fn in_order(command: &str, reply: Reply) -> Reply {
    let width = match command.split(' ').next() {
        Some("HGETALL") => 2,
        Some("HKEYS" | "HVALS" | "KEYS") => 1,
        _ => return reply,
    };
    let Reply::Array(items) = reply else {
        return reply;
    };
    let mut groups: Vec<&[Reply]> = items.chunks(width).collect();
    groups.sort_by_key(|group| group[0].bytes().to_vec());
    Reply::Array(groups.concat())
}
