//! `holdfast check --repair`: cuts a damaged end off the journal of a data directory.

use super::data_tools::check;
use super::next_step::NO_CUT_MENDS_IT;
use crate::config;
use crate::durability;
use crate::platform::logging::LogLevelHandle;
use anyhow::{Context, Result, bail, ensure};
use journal::Repair;
use std::io::{BufRead, IsTerminal, Write};

pub(super) fn run(asked: &config::Repair, log_level: LogLevelHandle) -> Result<()> {
    let dir = &asked.dir;
    // IMPORTANT: exclusive, so that no server uses the directory.
    let place = durability::directory_to_repair(dir)?;
    let examined = place.examine().context(NO_CUT_MENDS_IT)?;
    let Some(repair) = examined else {
        println!("{}: the journal is whole, nothing is cut", dir.display());
        drop(place);
        return check(dir, log_level);
    };
    show(&repair);
    let (reached, readable) = (repair.reached().0, repair.readable());
    if readable > 0 {
        ensure!(
            asked.lose_after == Some(reached),
            "{readable} batches behind the damage can still be read, and would be lost: nothing was cut. If a follower or a backup has \
             them, use that. If they may be lost, say so with --lose-after {reached}"
        );
    }
    ensure!(asked.is_confirmed || is_confirmed()?, "nothing was cut");
    let copies = place.repair(repair).context("the journal could not be cut; check the directory again")?;
    println!("what was cut is kept in {}: {}", dir.display(), copies.join(", "));
    drop(place);
    check(dir, log_level)
}

/// Says what is wrong, and what would be cut.
fn show(repair: &Repair) {
    println!("{}", repair.detail);
    match &repair.evidence {
        None => println!("nothing behind it was durable: a start would cut it too"),
        Some(evidence) => println!(
            "batch {} was durable, so clients may have been told that it is kept: {evidence}",
            repair.reached().next()
        ),
    }
    println!("batches up to {} stay. To be cut:", repair.reached());
    for piece in &repair.pieces {
        println!(
            "  {} from offset {}: {} bytes, with {} batches that can still be read",
            piece.file, piece.offset, piece.bytes, piece.readable
        );
    }
    if repair.pieces.is_empty() {
        println!("  nothing: the batches behind it are not there. MARKS, which says that they were, is written again");
    }
}

fn is_confirmed() -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("nothing was cut: --yes cuts without asking");
    }
    print!("Cut it? (yes/no) ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
