//! A history that has no order, made as small as it can be without becoming another matter, and readable.

use wire::Reply;

use crate::action::{Action, Command, Ending};
use crate::checker::{Impasse, check};
use crate::history::{Answer, History, Operation};
use crate::model::Model;
use crate::scripts::SCRIPTS;

/// Panics with what a reader needs if a history has no order.
#[track_caller]
pub(crate) fn assert_linearizable(history: &[Operation], when: &str) {
    if check(history).is_err() {
        let (smallest, impasse) = smallest(history.to_vec());
        let (shown, why) = (readable(&smallest), explained(&smallest, &impasse));
        panic!("{when}: no order of these explains their replies\n{shown}{why}");
    }
}

/// What is left when all is gone that cannot be the cause: what came later, what changed nothing, and what writers were
/// told. A write stays: without it, those who read it would be wrong, and that would be our doing.
pub(crate) fn smallest(history: History) -> (History, Impasse) {
    let mut instants: Vec<u64> = history.iter().map(|operation| operation.returned).collect();
    instants.sort_unstable();
    let beginnings = instants.into_iter().map(|instant| until(instant, &history));
    let mut smallest = beginnings.into_iter().find(|beginning| check(beginning).is_err()).unwrap_or(history);
    // What is left out lets something else be left out, seldom more than twice.
    for weaken in [without, without, without, forgetful] {
        for at in (0..smallest.len()).rev() {
            let weaker = weaken(&smallest, at).filter(|weaker| check(weaker).is_err());
            smallest = weaker.unwrap_or(smallest);
        }
    }
    let impasse = check(&smallest).err().unwrap_or_default();
    (smallest, impasse)
}

/// What was known at an instant.
fn until(instant: u64, history: &[Operation]) -> History {
    let begun = history.iter().filter(|operation| operation.invoked < instant);
    let known = begun.map(|operation| match operation.returned <= instant {
        true => operation.clone(),
        false => Operation { answer: Answer::None, ..operation.clone() },
    });
    known.collect()
}

/// The history without one of its operations, or without the part of it that changed nothing. Where the whole has an
/// order, so has this.
pub(crate) fn without(history: &[Operation], at: usize) -> Option<History> {
    let operation = &history[at];
    let mut weaker = history.to_vec();
    match (&operation.action, &operation.answer) {
        (Action::Run(command), Answer::Reply(told)) if command.changed_nothing(told) => drop(weaker.remove(at)),
        (Action::Run(command), _) if command.only_reads() => drop(weaker.remove(at)),
        (Action::Transaction(commands, Ending::Exec), Answer::Reply(Reply::Array(told))) => {
            let parts = commands.iter().zip(told).filter(|(command, told)| !command.changed_nothing(told));
            let (commands, told): (Vec<_>, Vec<_>) =
                parts.map(|(command, told)| (command.clone(), told.clone())).unzip();
            if commands.is_empty() {
                weaker[at] = Operation { action: Action::Unwatch, answer: Answer::Any, ..operation.clone() };
            } else {
                weaker[at].action = Action::Transaction(commands, Ending::Exec);
                weaker[at].answer = Answer::Reply(Reply::Array(told));
            }
        }
        // It was stopped, or it was not to happen.
        (Action::Transaction(_, ending), answer)
            if *ending != Ending::Exec || matches!(answer, Answer::Reply(Reply::NilArray)) =>
        {
            let answer = if matches!(answer, Answer::None) { Answer::None } else { Answer::Any };
            weaker[at] = Operation { action: Action::Unwatch, answer, ..operation.clone() };
        }
        (Action::Watch(_), _) => {
            // Without it, what it stopped would have gone on.
            let ends = |other: &&Operation| matches!(other.action, Action::Unwatch | Action::Transaction(..));
            let end = history[at..].iter().filter(|other| other.client == operation.client).find(ends);
            let stopped = end.is_some_and(|end| match (&end.action, &end.answer) {
                (Action::Transaction(_, Ending::Exec), Answer::Reply(told)) => *told == Reply::NilArray,
                (Action::Transaction(_, Ending::Exec), Answer::Any) => true,
                _ => false,
            });
            if stopped {
                return None;
            }
            weaker.remove(at);
        }
        (Action::Unwatch, _) => {
            let last = history[..at]
                .iter()
                .rfind(|other| other.client == operation.client && !matches!(other.action, Action::Run(_)));
            if last.is_some_and(|last| matches!(last.action, Action::Watch(_))) {
                return None;
            }
            weaker.remove(at);
        }
        _ => return None,
    }
    Some(weaker)
}

/// The history without what one client was told, unless that says that a change has stopped its transaction.
pub(crate) fn forgetful(history: &[Operation], at: usize) -> Option<History> {
    let mut weaker = history.to_vec();
    matches!(&weaker[at].answer, Answer::Reply(told) if *told != Reply::NilArray).then(|| {
        weaker[at].answer = Answer::Any;
        weaker
    })
}

/// One line for each operation, in the order in which they were invoked.
pub(crate) fn readable(history: &[Operation]) -> String {
    let mut text = String::new();
    for Operation { client, action, answer, invoked, returned } in history {
        let answer = match answer {
            Answer::Reply(reply) => reply.to_string(),
            Answer::Any => "(answered, whatever it was)".into(),
            Answer::None => "(not answered by then)".into(),
        };
        let span = if *returned == u64::MAX { format!("{invoked}..") } else { format!("{invoked}..{returned}") };
        text += &format!("  {span:>10}  client {client}  {action}  ->  {answer}\n");
    }
    text
}

/// How far an order can be made, and why no farther.
fn explained(history: &[Operation], impasse: &Impasse) -> String {
    let mut text = "The beginning of an order that explains the most:\n".to_owned();
    let mut model = Model::default();
    for Operation { client, action, .. } in impasse.order.iter().map(|at| &history[*at]) {
        text += &format!("  client {client}  {action}  ->  {}\n", model.act(*client, action));
    }
    text += "What may be next, and what its reply would have to be:\n";
    for Operation { client, action, .. } in impasse.next.iter().map(|at| &history[*at]) {
        text += &format!("  client {client}  {action}  ->  {}\n", model.clone().act(*client, action));
    }
    for (script, about) in SCRIPTS.iter().enumerate() {
        if history.iter().any(|operation| runs(&operation.action, script)) {
            text += &format!("{}:\n  {}\n", about.name, about.source.replace('\n', "\n  "));
        }
    }
    text
}

fn runs(action: &Action, wanted: usize) -> bool {
    let is_it = |command: &Command| matches!(command, Command::Script { script, .. } if *script == wanted);
    match action {
        Action::Run(command) => is_it(command),
        Action::Transaction(commands, _) => commands.iter().any(is_it),
        Action::Watch(_) | Action::Unwatch => false,
    }
}
