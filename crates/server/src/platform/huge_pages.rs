//! Huge pages of 2 MiB for the allocator's memory: whether the system allows them, and when this process begins to use
//! them. Knows Linux; refuses to know what memory is for.
//!
//! With pages of 4 KiB, nearly every miss of the cache in a large data set comes with one in the page table. The
//! allocator asks for huge pages for all that it maps (`thp:always` in [`allocator`]); it reads its options before
//! `main`, so what a setting can decide is whether the process may have them (`prctl`). An empty server would take
//! twice its memory with them, a whole page for each arena, so they begin when there is something to gain.

use super::allocator;
use std::time::Duration;

/// A CPU of today remembers where 6 to 12 MiB of small pages are: with less in use there is little to gain.
const BEGIN_BYTES: u64 = 16 << 20;
/// How often the memory in use is looked at until then. A server that loads its data grows by some MiB meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What the system allows: the word in brackets in this file.
const SYSTEM_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// What the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Yes,
    No,
    /// It has none, or does not say.
    Unknown,
}

/// What has turned huge pages off for this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnedOff {
    No,
    BySetting,
    /// The process that started this one.
    ByParent,
}

/// No huge pages for what the process touches from now on, until [`begin_when_large`]. Called before other threads
/// start.
pub(crate) fn hold_back(disabled: bool) -> TurnedOff {
    let by_parent = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false);
    may_be_used(false);
    match (by_parent, disabled) {
        (true, _) => TurnedOff::ByParent,
        (false, true) => TurnedOff::BySetting,
        (false, false) => TurnedOff::No,
    }
}

/// Allows huge pages once there is enough memory in use, unless they are turned off.
pub(crate) async fn begin_when_large(turned_off: TurnedOff) {
    match turned_off {
        TurnedOff::No => {}
        TurnedOff::BySetting => return tracing::info!("huge pages are turned off by the setting disable-thp"),
        TurnedOff::ByParent => return tracing::info!("huge pages are turned off by the parent process (prctl)"),
    }
    match allowed(&std::fs::read_to_string(SYSTEM_FILE).unwrap_or_default()) {
        Allowed::Yes => {}
        Allowed::No => tracing::info!("this system has huge pages turned off; `madvise` in {SYSTEM_FILE} allows them"),
        Allowed::Unknown => tracing::info!("this system has no huge pages, or does not say so in {SYSTEM_FILE}"),
    }
    let mut look = tokio::time::interval(LOOK_EVERY);
    while allocator::used() < BEGIN_BYTES {
        look.tick().await;
    }
    may_be_used(true);
}

/// Starts another process: it may use huge pages if this one might when it was started.
pub(crate) fn as_they_were<T>(turned_off: TurnedOff, start: impl FnOnce() -> T) -> T {
    let held_back = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false);
    if !held_back || turned_off == TurnedOff::ByParent {
        return start();
    }
    may_be_used(true);
    let started = start();
    may_be_used(false);
    started
}

fn may_be_used(yes: bool) {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!yes) {
        tracing::warn!(%error, "the system does not let this process choose whether it uses huge pages");
    }
}

/// Reads `always [madvise] never`.
fn allowed(modes: &str) -> Allowed {
    match modes.split_whitespace().find(|mode| mode.starts_with('[')) {
        Some("[always]" | "[madvise]") => Allowed::Yes,
        Some("[never]") => Allowed::No,
        _ => Allowed::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_the_system_is_the_word_in_brackets() {
        assert_eq!(allowed("[always] madvise never\n"), Allowed::Yes);
        assert_eq!(allowed("always [madvise] never\n"), Allowed::Yes);
        assert_eq!(allowed("always madvise [never]\n"), Allowed::No);
        assert_eq!(allowed(""), Allowed::Unknown);
    }
}
