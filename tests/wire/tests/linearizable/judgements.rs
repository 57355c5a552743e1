//! The checker itself: histories written by hand, and small random ones of which every order is tried.

use std::ops::Range;

use wire::{Random, Reply};

use crate::action::{Action, By, Command, Ending};
use crate::author::{Author, KEYS};
use crate::checker::check;
use crate::history::{Answer, History, Operation, merged};
use crate::model::{Model, appended, array, bulk, number, ok};
use crate::report::{forgetful, readable, smallest, without};
use crate::scripts::SCRIPTS;

#[test]
fn an_empty_history_is_right() {
    accept(&[]);
}

#[test]
fn a_read_sees_what_was_acknowledged_before_it() {
    accept(&[op(1, 0..1, "SET a 1", ok()), op(2, 2..3, "GET a", text("1"))]);
    refuse(&[op(1, 0..1, "SET a 1", ok()), op(2, 2..3, "GET a", nil())]);
    // While the write is under way a read may see either, and then no client may see the older one again.
    let write = op(1, 0..9, "SET a 1", ok());
    accept(&[write.clone(), op(2, 1..2, "GET a", nil()), op(2, 3..4, "GET a", text("1"))]);
    accept(&[write.clone(), op(2, 1..4, "GET a", text("1")), op(3, 2..3, "GET a", nil())]);
    refuse(&[write, op(2, 1..2, "GET a", text("1")), op(3, 3..4, "GET a", nil())]);
}

#[test]
fn nothing_is_seen_before_it_is_asked_for() {
    refuse(&[op(1, 0..1, "GET a", text("1")), op(2, 2..3, "SET a 1", ok())]);
}

#[test]
fn no_update_is_lost() {
    accept(&[op(1, 0..3, "INCR a", number(2)), op(2, 1..2, "INCR a", number(1))]);
    refuse(&[op(1, 0..3, "INCR a", number(1)), op(2, 1..2, "INCR a", number(1))]);
    refuse(&[op(1, 0..1, "INCR a", number(2)), op(2, 2..3, "INCR a", number(1))]);
    // Each saw the other's beginning: both swapped out the same value.
    let base = op(1, 0..1, "SET a 1", ok());
    refuse(&[base, op(1, 2..5, "GETSET a 2", text("1")), op(2, 3..4, "GETSET a 3", text("1"))]);
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
fn what_was_refused_or_discarded_leaves_nothing() {
    for (transaction, reply) in [("MULTI; SET a 1; INCR; EXEC", aborted()), ("MULTI; SET a 1; DISCARD", ok())] {
        accept(&[op(1, 0..1, transaction, reply.clone()), op(1, 2..3, "GET a", nil())]);
        refuse(&[op(1, 0..1, transaction, reply), op(1, 2..3, "GET a", text("1"))]);
    }
}

#[test]
fn a_script_is_not_torn() {
    let both = op(1, 0..9, "EVAL both 2 a c 1", array([text("1"), text("1")]));
    accept(&[both.clone(), op(2, 1..2, "GET a", text("1")), op(2, 3..4, "GET c", text("1"))]);
    refuse(&[both.clone(), op(2, 1..2, "GET a", text("1")), op(2, 3..4, "GET c", nil())]);
    refuse(&[both, op(2, 1..2, "MGET a c", array([nil(), text("1")]))]);
    // Two clients cannot both have swapped the same value.
    let base = op(1, 0..1, "SET a 1", ok());
    let [first, second] = [op(1, 2..5, "EVAL swap 1 a 1 2", number(1)), op(2, 3..4, "EVAL swap 1 a 1 3", number(1))];
    accept(&[base.clone(), first.clone(), op(2, 3..4, "EVAL swap 1 a 1 3", number(0))]);
    refuse(&[base, first, second]);
}

#[test]
fn a_function_is_not_torn() {
    let both = op(1, 0..9, "FCALL both 2 a c 1", array([text("1"), text("1")]));
    accept(&[both.clone(), op(2, 1..2, "MGET a c", array([text("1"), text("1")]))]);
    refuse(&[both, op(2, 1..2, "MGET a c", array([text("1"), nil()]))]);
}

#[test]
fn of_two_that_compare_and_swap_one_succeeds() {
    let base = op(1, 0..1, "HSET a f 1", number(1));
    let swap = |client, new: &str, made| op(client, 2 + client as u64..9, &format!("HCAS a f 1 {new}"), number(made));
    accept(&[base.clone(), swap(1, "2", 1), swap(2, "3", 0), op(3, 10..11, "HGET a f", text("2"))]);
    accept(&[base.clone(), swap(1, "2", 0), swap(2, "3", 1), op(3, 10..11, "HGET a f", text("3"))]);
    refuse(&[base.clone(), swap(1, "2", 1), swap(2, "3", 1)]);
    refuse(&[base.clone(), swap(1, "2", 0), swap(2, "3", 0)]);
    // All that it sets is there at once.
    let both = op(1, 2..9, "HCAS a IF 1 f 1 SET 2 f 2 g 2", number(1));
    let seen = |f: &str, g: &str| op(2, 3..4, "HGETALL a", array(["f", f, "g", g].map(text)));
    accept(&[base.clone(), both.clone(), seen("2", "2")]);
    refuse(&[base, both, seen("2", "1")]);
}

#[test]
fn an_event_is_appended_once_and_never_seen_to_go() {
    let new = |client, at, key: &str| {
        let line = format!("RUN.APPEND a {key} t {client} EVENTID e{client}");
        op(client, client as u64..9, &line, appended(at, [0, 1], Some(&format!("e{client}")), false))
    };
    let known = |client, at, id: &str| {
        let line = format!("RUN.APPEND a i t {client} EVENTID e{client}");
        op(client, client as u64..9, &line, appended(at, [1, 0], Some(id), true))
    };
    let seen = |begin, events: &[(i64, &str, &str)]| {
        let event = |(at, id, key): &(i64, &str, &str)| {
            let data = id.strip_prefix('e').expect("an id");
            let texts = [("eventId", *id), ("idempotencyKey", *key), ("eventData", data)];
            let texts = texts.into_iter().flat_map(|(name, told)| [text(name), text(told)]);
            array([text("runSeq"), number(*at)].into_iter().chain(texts))
        };
        op(5, begin..begin + 1, "RUN.EVENTS a", array(events.iter().map(event)))
    };
    // Of two that append the same, one is told that it has.
    accept(&[new(1, 1, "i"), known(2, 1, "e1"), seen(10, &[(1, "e1", "i")])]);
    accept(&[known(1, 1, "e2"), new(2, 1, "i")]);
    refuse(&[new(1, 1, "i"), new(2, 1, "i")]);
    refuse(&[new(1, 1, "i"), new(2, 2, "i")]);
    refuse(&[new(1, 1, "i"), known(2, 1, "e2")]);
    // Each event has a number of its own, and all see the same order.
    accept(&[new(1, 2, "i"), new(2, 1, "j"), seen(10, &[(1, "e2", "j"), (2, "e1", "i")])]);
    refuse(&[new(1, 1, "i"), new(2, 1, "j")]);
    refuse(&[new(1, 2, "i"), new(2, 1, "j"), seen(10, &[(1, "e1", "i"), (2, "e2", "j")])]);
    refuse(&[new(1, 1, "i"), seen(10, &[])]);
    let (one, both) = ([(1, "e1", "i")], [(1, "e1", "i"), (2, "e2", "j")]);
    accept(&[new(1, 1, "i"), new(2, 2, "j"), seen(3, &one), seen(5, &both)]);
    refuse(&[new(1, 1, "i"), new(2, 2, "j"), seen(3, &both), seen(5, &one)]);
    refuse(&[new(1, 1, "i"), new(2, 2, "j"), seen(3, &both[1..])]);
    // Of two that go on behind the same event, one does.
    let after = |client, key: &str, reply| {
        op(client, client as u64..9, &format!("RUN.APPEND a {key} t {client} EVENTID e{client} IFLAST 0"), reply)
    };
    let won = |client: usize| appended(1, [0, 1], Some(["e1", "e2"][client - 1]), false);
    accept(&[after(1, "i", won(1)), after(2, "j", appended(1, [0, 0], None, false))]);
    refuse(&[after(1, "i", won(1)), after(2, "j", won(2))]);
    refuse(&[after(1, "i", appended(1, [0, 0], None, false)), after(2, "j", appended(1, [0, 0], None, false))]);
}

#[test]
fn a_member_is_taken_once_and_the_lowest_first() {
    let base = op(1, 0..1, "ZADD a 1 m 2 n", number(2));
    let pop = |client, told: &[&str]| {
        op(client, 2 + client as u64..9, "ZPOPMIN a", array(told.iter().map(|word| text(word))))
    };
    accept(&[base.clone(), pop(1, &["n", "2"]), pop(2, &["m", "1"]), op(3, 10..11, "ZCARD a", number(0))]);
    refuse(&[base.clone(), pop(1, &["m", "1"]), pop(2, &["m", "1"])]);
    refuse(&[base.clone(), op(1, 2..3, "ZPOPMIN a", array([text("n"), text("2")]))]);
    // No increment is lost.
    let raised = |client, told: &str| op(client, 2 + client as u64..9, "ZINCRBY a 1 m", text(told));
    accept(&[base.clone(), raised(1, "3"), raised(2, "2")]);
    refuse(&[base, raised(1, "2"), raised(2, "2")]);
}

#[test]
fn an_index_is_never_behind_its_records() {
    let record = op(1, 0..1, "HSET a f 5", number(1));
    let found = |begin, keys: &[&str]| {
        op(2, begin..begin + 1, "IDX.RANGE by_f -inf +inf KEYS", array(keys.iter().map(|key| text(key))))
    };
    accept(&[record.clone(), found(2, &["a"])]);
    refuse(&[record.clone(), found(2, &[])]);
    // A record that moves is under one of its names, not under both and not under none.
    let moved = op(1, 2..9, "RENAME a c", ok());
    accept(&[record.clone(), moved.clone(), found(3, &["c"])]);
    refuse(&[record.clone(), moved.clone(), found(3, &["a", "c"])]);
    refuse(&[record.clone(), moved.clone(), found(3, &[])]);
    refuse(&[record, moved, found(3, &["c"]), found(5, &["a"])]);
}

#[test]
fn what_a_failed_script_wrote_stays() {
    let failed = op(1, 0..1, "EVAL regret 1 a 5", Reply::Error("SORRY for that".into()));
    accept(&[failed.clone(), op(1, 2..3, "HGET a g", text("5"))]);
    refuse(&[failed, op(1, 2..3, "HGET a g", nil())]);
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
    while right < 300 || wrong < 300 {
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
    for _ in 0..1000 {
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
            None => Action::Run(command_of(line)),
        },
        _ => panic!("{text} is no action"),
    }
}

fn transaction(queued: &[&str], ending: Ending) -> Action {
    Action::Transaction(queued.iter().map(|line| command_of(line)).collect(), ending)
}

fn command_of(line: &str) -> Command {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    match &words[..] {
        [call, name, count, rest @ ..] if call == "EVAL" || call == "FCALL" => {
            let by = if call == "EVAL" { By::Source } else { By::Function };
            let script = SCRIPTS.iter().position(|script| script.name == name).expect("the script's name");
            let (keys, args) = rest.split_at(count.parse().expect("the number of keys"));
            Command::Script { script, by, keys: keys.to_vec(), args: args.to_vec() }
        }
        _ => Command::Plain(words),
    }
}

fn text(text: &str) -> Reply {
    bulk(Some(text))
}

fn nil() -> Reply {
    bulk(None)
}

fn aborted() -> Reply {
    Reply::Error("EXECABORT Transaction discarded because of previous errors.".into())
}
