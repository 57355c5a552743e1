//! Runs one case, prints what was found, and says whether it is what the case expects. Knows nothing of which cases
//! there are.

use crate::cases::{Case, Expected, Subject};
use crate::expiry::Expiry;
use crate::liveness;
use crate::protocol::config::Config;
use crate::protocol::invariants::{INVARIANTS, flags};
use stateright::{Checker, HasDiscoveries, Model, Path};
use std::time::Instant;

/// A search that has seen so many states is cut off, and printed as bounded.
const STATES_MAX: usize = 60_000_000;
/// Liveness keeps the edges of its graph, too.
const LIVENESS_STATES_MAX: usize = 12_000_000;

/// Whether the result is the expected one.
pub(crate) fn run(case: &Case, traces: bool) -> bool {
    let began = Instant::now();
    let (as_expected, found, details) = match &case.subject {
        Subject::Protocol(config, expected) => search(config, expected, case.threads, traces),
        Subject::Expiry { rule, holds } => {
            search_expiry(Expiry { rule: *rule, clock_max: 5, lease: 2 }, *holds, traces)
        }
        Subject::Liveness { config, holds } => search_liveness(config, *holds),
    };
    println!(
        "{} {:<58} {:>6.1} s  {found}",
        if as_expected { "as expected" } else { "SURPRISE   " },
        case.name,
        began.elapsed().as_secs_f32(),
    );
    details.iter().for_each(|line| println!("    {line}"));
    as_expected
}

/// Whether it is as expected, what was found, and lines to print below.
type Result = (bool, String, Vec<String>);

fn search(config: &Config, expected: &Expected, threads: usize, traces: bool) -> Result {
    let mut builder = config.clone().checker().threads(threads).target_state_count(STATES_MAX);
    if let Expected::Breaks { sought, .. } = expected {
        builder = builder.finish_when(HasDiscoveries::AnyOf(names(*sought).into_iter().collect()));
    }
    let checker = builder.spawn_bfs().join();
    let discoveries = checker.discoveries();
    let found = INVARIANTS.iter().filter(|i| discoveries.contains_key(i.name)).fold(0, |found, i| found | i.flag);
    let as_expected = match expected {
        Expected::Holds => found == 0,
        Expected::OnlyLateReplies => found == flags::LATE_REPLY,
        Expected::Breaks { sought, allowed } => found & sought != 0 && found & !allowed == 0,
    };
    let is_bounded = checker.state_count() >= STATES_MAX && !matches!(expected, Expected::Breaks { .. });
    let summary = format!(
        "{:>9} states, depth {:>2}{}  {}",
        checker.unique_state_count(),
        checker.max_depth(),
        if is_bounded { " (bounded)" } else { "" },
        if found == 0 { "all hold".to_owned() } else { format!("BROKEN: {}", names(found).join("; ")) },
    );
    let mut details = Vec::new();
    if traces || !as_expected {
        discoveries.into_iter().for_each(|(name, path)| details.extend(trace(name, path)));
    }
    (as_expected, summary, details)
}

fn names(flags: u16) -> Vec<&'static str> {
    INVARIANTS.iter().filter(|i| flags & i.flag != 0).map(|i| i.name).collect()
}

fn trace(name: &str, path: Path<<Config as Model>::State, <Config as Model>::Action>) -> Vec<String> {
    let log: Vec<_> =
        path.last_state().log.iter().map(|f| (f.epoch, f.author, f.kind, f.first_batch, f.writes)).collect();
    let mut lines = vec![format!("{name}:")];
    lines.extend(path.into_actions().iter().map(|step| format!("    {step:?}")));
    lines.push(format!("    The log is then (epoch, author, kind, first batch, batches) {log:?}"));
    lines
}

fn search_expiry(model: Expiry, holds: bool, traces: bool) -> Result {
    let checker = model.checker().spawn_bfs().join();
    let discovery = checker.discoveries().into_values().next();
    let as_expected = discovery.is_none() == holds;
    let summary = format!(
        "{:>9} states, depth {:>2}  {}",
        checker.unique_state_count(),
        checker.max_depth(),
        if discovery.is_none() { "holds" } else { "BROKEN" },
    );
    let steps = discovery.filter(|_| traces || !as_expected).map(|path| format!("{:?}", path.into_actions()));
    (as_expected, summary, steps.into_iter().collect())
}

fn search_liveness(config: &Config, holds: bool) -> Result {
    let outcome = liveness::check(config, LIVENESS_STATES_MAX);
    let as_expected = (outcome.stuck == 0) == holds && outcome.judged > 0;
    let summary = format!(
        "{:>9} states, {} with room, {} stuck{}",
        outcome.states,
        outcome.judged,
        outcome.stuck,
        if outcome.is_complete { "" } else { " (bounded)" },
    );
    let example = outcome.example.filter(|_| !as_expected).map(|state| format!("{state:#?}"));
    (as_expected, summary, example.into_iter().collect())
}
