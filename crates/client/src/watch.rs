//! The watch of a cell: its changes, one after the other, across outages of the server. Holdfast only. Refuses to know
//! what a value means.

use std::collections::VecDeque;
use std::time::Duration;

use redis::FromRedisValue;
use tokio::time::sleep;

use crate::cell::{Cell, Version};
use crate::error::Error;

/// The changes of a cell, from when the watch began: each new version in order. A version that is no longer retained when
/// its turn comes is skipped; the last one never is.
pub struct Watch<T> {
    cell: Cell<T>,
    /// The version and the time that were seen last; `None` while there is no cell.
    seen: Option<(u64, u64)>,
    /// Versions that follow, the next one first.
    following: VecDeque<Version<T>>,
}

/// How long one wait at the server lasts. A cell that is deleted and created again between two waits is noticed after
/// it, because its versions begin at 1 again.
const WAIT: Duration = Duration::from_secs(5);
/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(100);
/// How many versions are read at a time.
const PAGE: usize = 1000;

impl<T: FromRedisValue> Cell<T> {
    /// Every change of the cell from now on: [`Watch::next`] waits for each.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// let limit = store.cell::<u32>("config/limit");
    /// let mut changes = limit.watch().await?;
    /// loop {
    ///     match changes.next().await? {
    ///         Some(now) => println!("the limit is {}", now.value),
    ///         None => println!("there is no limit"),
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn watch(&self) -> Result<Watch<T>, Error> {
        let seen = self.get().await?.as_ref().map(identity);
        Ok(Watch { cell: self.clone(), seen, following: VecDeque::new() })
    }
}

impl<T: FromRedisValue> Watch<T> {
    /// Waits for the next change: the new version, or `None` when the cell was removed. While the server is away it
    /// tries again, for as long as it takes. It may be dropped at any time, and called again after an error.
    pub async fn next(&mut self) -> Result<Option<Version<T>>, Error> {
        loop {
            if let Some(version) = self.following.pop_front() {
                self.seen = Some(identity(&version));
                return Ok(Some(version));
            }
            match self.look().await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) if error.is_temporary() => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// One wait, for versions that follow. True when the cell was removed.
    async fn look(&mut self) -> Result<bool, Error> {
        let after = self.seen.map_or(0, |(version, _)| version);
        let mut now = self.cell.wait_after(after, WAIT).await?;
        if now.is_none() {
            // The wait is over, or the cell is gone, or it was made anew with fewer versions.
            now = self.cell.get().await?;
        }
        let Some(now) = now else { return Ok(self.seen.take().is_some()) };
        if Some(identity(&now)) == self.seen {
            return Ok(false);
        }
        let mut following = VecDeque::new();
        if now.version > after + 1 {
            following = self.between(after, now.version).await?;
        }
        following.push_back(now);
        self.following = following;
        Ok(false)
    }

    /// The retained versions between two others, the oldest first.
    async fn between(&self, after: u64, before: u64) -> Result<VecDeque<Version<T>>, Error> {
        let (mut found, mut before) = (VecDeque::new(), before);
        loop {
            let page = self.cell.history(Some(before), PAGE).await?;
            let Some(oldest) = page.last() else { return Ok(found) };
            before = oldest.version;
            page.into_iter().filter(|version| version.version > after).for_each(|version| found.push_front(version));
            if before <= after + 1 {
                return Ok(found);
            }
        }
    }
}

/// A cell that was made anew has another time, even if it has the same version.
fn identity<T>(version: &Version<T>) -> (u64, u64) {
    (version.version, version.updated_at_us)
}
