//! `holdfast check --repair`: cuts a damaged end off the journal of a data directory, and replaces a damaged fence.

use super::data_tools::check;
use super::next_step::no_cut_mends;
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
    // IMPORTANT: a follower would go on with the batches that are cut, and be counted as having those that come next.
    let alone = place.lock_out_followers()?;
    let fence_problem = place.fence_problem()?;
    let examined = place.examine().map_err(no_cut_mends)?;
    if let Some((offset, detail)) = &fence_problem {
        println!(
            "FENCE is damaged at offset {offset}: {detail}. A new one is made, at the highest epoch of the other files"
        );
    }
    match &examined {
        Some(repair) => show(repair),
        None => println!("{}: the journal is whole, nothing is cut", dir.display()),
    }
    if let Some(repair) = &examined {
        check_consent(repair, asked.lose_after)?;
    }
    if examined.is_some() || fence_problem.is_some() {
        ensure!(asked.is_confirmed || is_confirmed()?, "nothing was cut");
    }
    if fence_problem.is_some() {
        place.renew_fence(&alone).context("FENCE could not be replaced")?;
    }
    if let Some(repair) = examined {
        let copies = place.repair(repair).context("the journal could not be cut; check the directory again")?;
        println!("what was cut is kept in {}: {}", dir.display(), copies.join(", "));
    }
    drop((place, alone));
    check(dir, log_level)
}

/// An error if batches would be lost that can be read, and the operator has not agreed to that.
fn check_consent(repair: &Repair, lose_after: Option<u64>) -> Result<()> {
    let (reached, readable) = (repair.reached().0, repair.readable());
    ensure!(
        readable == 0 || lose_after == Some(reached),
        "{readable} batches behind the damage can still be read, and would be lost: nothing was cut. If a follower or a backup has \
         them, use that. If they may be lost, say so with --lose-after {reached}"
    );
    Ok(())
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
    print!("Go on? (yes/no) ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
