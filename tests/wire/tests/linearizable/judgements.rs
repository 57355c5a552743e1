//! The checker itself: histories written by hand, and small random ones of which every order is tried. What commands mean is the model's
//! matter, which replies of the server judge.

use std::ops::Range;

use wire::{Random, Reply};

use crate::action::{Action, Command, Ending};
use crate::author::{Author, KEYS};
use crate::checker::check;
use crate::history::{Answer, History, Operation, merged};
use crate::keys::{array, bulk, ok};
use crate::model::Model;
use crate::report::{forgetful, readable, smallest, without};

#[test]
fn a_read_sees_what_was_acknowledged_before_it() {
    accept(&[]);
    refuse(&[op(1, 0..1, "GET a", text("1")), op(2, 2..3, "SET a 1", ok())]);
    accept(&[op(1, 0..1, "SET a 1", ok()), op(2, 2..3, "GET a", text("1"))]);
    refuse(&[op(1, 0..1, "SET a 1", ok()), op(2, 2..3, "GET a", nil())]);
    // While the write is under way a read may see either, and then no client may see the older one again.
    let write = op(1, 0..9, "SET a 1", ok());
    accept(&[write.clone(), op(2, 1..2, "GET a", nil()), op(2, 3..4, "GET a", text("1"))]);
    accept(&[write.clone(), op(2, 1..4, "GET a", text("1")), op(3, 2..3, "GET a", nil())]);
    refuse(&[write, op(2, 1..2, "GET a", text("1")), op(3, 3..4, "GET a", nil())]);
}

#[test]
fn two_readers_agree_about_the_order_of_two_writes() {
    let writes = [op(1, 0..9, "SET a 1", ok()), op(2, 1..10, "SET c 1", ok())];
    let seen = |client, begin, a: Reply, c: Reply| op(client, begin..begin + 1, "MGET a c", array([a, c]));
    accept(&[&writes[..], &[seen(3, 2, text("1"), nil()), seen(4, 4, text("1"), nil())]].concat());
    refuse(&[&writes[..], &[seen(3, 2, text("1"), nil()), seen(4, 4, nil(), text("1"))]].concat());
}

#[test]
fn a_pipeline_takes_effect_in_its_order() {
    accept(&[op(1, 0..2, "SET a 1", ok()), op(1, 0..3, "GET a", text("1"))]);
    refuse(&[op(1, 0..2, "GET a", text("1")), op(1, 0..3, "SET a 1", ok())]);
}

#[test]
fn a_transaction_is_not_torn() {
    let both = op(1, 0..9, "MULTI; SET a 1; SET c 1; EXEC", array([ok(), ok()]));
    accept(&[both.clone(), op(2, 1..2, "MGET a c", array([nil(), nil()]))]);
    accept(&[both.clone(), op(2, 1..2, "MGET a c", array([text("1"), text("1")]))]);
    refuse(&[both.clone(), op(2, 1..2, "MGET a c", array([text("1"), nil()]))]);
    refuse(&[both, op(2, 1..2, "GET a", text("1")), op(2, 3..4, "GET c", nil())]);
    // What its commands were told must fit one instant too.
    let write = op(1, 0..9, "SET a 1", ok());
    refuse(&[write, op(2, 1..2, "MULTI; GET a; GET a; EXEC", array([nil(), text("1")]))]);
}

#[test]
fn a_watched_key_that_changed_stops_the_transaction() {
    let before = [op(1, 0..1, "WATCH a", ok()), op(1, 2..3, "GET a", nil()), op(2, 4..5, "SET a 9", ok())];
    let exec = |reply| op(1, 6..7, "MULTI; SET a 1; EXEC", reply);
    accept(&[&before[..], &[exec(Reply::NilArray), op(1, 8..9, "GET a", text("9"))]].concat());
    refuse(&[&before[..], &[exec(array([ok()]))]].concat());
    refuse(&[&before[..], &[exec(Reply::NilArray), op(1, 8..9, "GET a", text("1"))]].concat());
    // It was not changed: there is nothing to stop for. A change that may have come before it is none.
    let calm = [op(1, 1..2, "WATCH a", ok()), op(1, 3..4, "MULTI; SET a 1; EXEC", Reply::NilArray)];
    refuse(&calm);
    accept(&[&[op(2, 0..9, "SET a 9", ok())], &calm[..]].concat());
    let committed = [op(1, 1..2, "WATCH a", ok()), op(1, 3..4, "MULTI; GET a; EXEC", array([text("9")]))];
    accept(&[&[op(2, 0..9, "SET a 9", ok())], &committed[..]].concat());
    // After UNWATCH it may change.
    let unwatched = [op(1, 0..1, "WATCH a", ok()), op(1, 2..3, "UNWATCH", ok()), op(2, 4..5, "SET a 9", ok())];
    accept(&[&unwatched[..], &[exec(array([ok()]))]].concat());
    refuse(&[&unwatched[..], &[exec(Reply::NilArray)]].concat());
}

#[test]
fn what_was_not_answered_took_effect_before_the_end_or_never() {
    let lost = |client, begin, line| Operation { answer: Answer::None, ..op(client, begin..5, line, ok()) };
    let write = lost(1, 0, "SET a 1");
    for seen in [nil(), text("1")] {
        accept(&[write.clone(), op(2, 6..7, "GET a", seen)]);
    }
    refuse(&[write.clone(), op(2, 6..7, "GET a", nil()), op(2, 8..9, "GET a", text("1"))]);
    // Seen before the end, it is there after it.
    refuse(&[write.clone(), op(2, 1..2, "GET a", text("1")), op(3, 6..7, "GET a", nil())]);
    // Of a pipeline, never the later without the earlier.
    let pipeline = [write, lost(1, 0, "SET c 1")];
    accept(&[&pipeline[..], &[op(2, 6..7, "MGET a c", array([text("1"), nil()]))]].concat());
    refuse(&[&pipeline[..], &[op(2, 6..7, "MGET a c", array([nil(), text("1")]))]].concat());
    // A transaction is there or it is not.
    let both = lost(1, 0, "MULTI; SET a 1; SET c 1; EXEC");
    accept(&[both.clone(), op(2, 6..7, "MGET a c", array([text("1"), text("1")]))]);
    refuse(&[both, op(2, 6..7, "MGET a c", array([text("1"), nil()]))]);
}

#[test]
fn a_report_keeps_what_matters() {
    let history = [
        op(1, 0..1, "SET a 1", ok()),
        op(2, 2..3, "GET c", nil()),
        op(1, 4..5, "GET a", text("1")),
        op(3, 4..6, "MULTI; GET a; EXEC", array([text("1")])),
        op(2, 7..8, "GET a", nil()),
        op(2, 9..10, "SET a 2", ok()),
    ];
    let (smallest, impasse) = smallest(history.to_vec());
    assert_eq!(smallest.iter().map(|kept| kept.action.to_string()).collect::<Vec<_>>(), ["SET a 1", "GET a"]);
    assert!(matches!(smallest[0].answer, Answer::Any) && matches!(smallest[1].answer, Answer::Reply(Reply::NilBulk)));
    assert_eq!((impasse.order, impasse.next), (vec![0], vec![1]));
}

/// Histories that are right, and then with some answers given to others, judged by the definition too.
#[test]
fn the_search_agrees_with_trying_every_order() {
    let mut random = Random::from_env();
    let (mut right, mut wrong) = (0, 0);
    while right < 150 || wrong < 150 {
        let mut history = invented(&mut random);
        assert!(check(&history).is_ok(), "it was made in order: {}", readable(&history));
        for _ in 0..2 {
            let (at, other) = (random.below(history.len()), random.below(history.len()));
            // Not being answered is left where it is: a client that was not answered has lost its connection and does nothing more.
            if let Answer::Reply(_) = history[other].answer {
                history[at].answer = history[other].answer.clone();
            }
        }
        let expected = some_order(&history, &mut Vec::new());
        assert_eq!(check(&history).is_ok(), expected, "{}", readable(&history));
        *(if expected { &mut right } else { &mut wrong }) += 1;
    }
}

/// A report leaves out only what leaves a right history right.
#[test]
fn what_is_left_out_of_a_report_is_not_the_cause() {
    let mut random = Random::from_env();
    for _ in 0..300 {
        let history = invented(&mut random);
        for at in 0..history.len() {
            for weaker in [without(&history, at), forgetful(&history, at)].into_iter().flatten() {
                assert!(check(&weaker).is_ok(), "{}without {at}:\n{}", readable(&history), readable(&weaker));
            }
        }
    }
}

/// What some clients might do and be told, around instants at which all took effect one by one.
fn invented(random: &mut Random) -> History {
    const CLIENTS: usize = 4;
    let mut authors: Vec<Author> =
        (0..CLIENTS).map(|client| Author::new(Random::new(random.next_u64()), client, &KEYS[..2], true)).collect();
    let (mut model, mut busy_until, mut history) = (Model::default(), [0; CLIENTS], History::new());
    for now in (1..8).map(|at| at * 10) {
        let client = random.below(CLIENTS);
        if busy_until[client] >= now {
            continue;
        }
        let action = authors[client].next().swap_remove(0);
        let reply = model.act(client, &action);
        authors[client].is_told(std::slice::from_ref(&reply));
        let (waited, took) = (random.below(now - busy_until[client]), 1 + random.below(40));
        // Twice, and one more for the second: no two instants are the same.
        let (invoked, returned) = ((now - waited) as u64 * 2, (now + took) as u64 * 2 + 1);
        // A client that is not answered has lost its connection.
        let answered = !random.one_in(6);
        busy_until[client] = if answered { now + took } else { usize::MAX };
        let answer = if answered { Answer::Reply(reply) } else { Answer::None };
        history.push(Operation { client, action, answer, invoked, returned });
    }
    merged([history])
}

/// Whether the order can be completed to one that is right by the definition.
fn some_order(history: &[Operation], order: &mut Vec<usize>) -> bool {
    let answered = |at: &usize| !matches!(history[*at].answer, Answer::None);
    if (0..history.len()).filter(answered).all(|at| order.contains(&at)) {
        return true;
    }
    for at in (0..history.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>() {
        order.push(at);
        if is_right_so_far(history, order) && some_order(history, order) {
            return true;
        }
        order.pop();
    }
    false
}

fn is_right_so_far(history: &[Operation], order: &[usize]) -> bool {
    let ordered: Vec<&Operation> = order.iter().map(|at| &history[*at]).collect();
    let in_time = (0..order.len()).all(|at| ordered[at..].iter().all(|later| later.returned >= ordered[at].invoked));
    let mut model = Model::default();
    in_time
        && ordered.iter().all(|operation| {
            let reply = model.act(operation.client, &operation.action);
            !matches!(&operation.answer, Answer::Reply(given) if *given != reply)
        })
}

#[track_caller]
fn accept(history: &[Operation]) {
    assert!(check(&merged([history.to_vec()])).is_ok(), "this is right:\n{}", readable(history));
}

#[track_caller]
fn refuse(history: &[Operation]) {
    assert!(check(&merged([history.to_vec()])).is_err(), "this is wrong:\n{}", readable(history));
}

fn op(client: usize, span: Range<u64>, action: &str, reply: Reply) -> Operation {
    let (invoked, returned) = (span.start, span.end);
    Operation { client, action: action_of(action), answer: Answer::Reply(reply), invoked, returned }
}

/// Reads what `Action` writes.
fn action_of(text: &str) -> Action {
    let parts: Vec<&str> = text.split("; ").collect();
    match parts[..] {
        ["MULTI", ref queued @ .., "INCR", "EXEC"] => transaction(queued, Ending::ExecInVain),
        ["MULTI", ref queued @ .., "EXEC"] => transaction(queued, Ending::Exec),
        ["MULTI", ref queued @ .., "DISCARD"] => transaction(queued, Ending::Discard),
        ["UNWATCH"] => Action::Unwatch,
        [line] => match line.strip_prefix("WATCH ") {
            Some(keys) => Action::Watch(keys.split(' ').map(str::to_owned).collect()),
            None => Action::Run(Command::plain(line)),
        },
        _ => panic!("{text} is no action"),
    }
}

fn transaction(queued: &[&str], ending: Ending) -> Action {
    Action::Transaction(queued.iter().map(Command::plain).collect(), ending)
}

fn text(text: &str) -> Reply {
    bulk(Some(text))
}

fn nil() -> Reply {
    Reply::NilBulk
}
