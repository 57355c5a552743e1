//! Locks with a rank. Debug builds check the order: a thread that takes a lock while it holds one of the same or a
//! higher rank panics with a backtrace, because two threads that take the same locks in different orders can deadlock.
//! Release builds compile to `parking_lot`'s locks. Refuses to know what a lock guards.
//!
//! The rank is part of a lock's type (`Mutex<Outbox, { rank::CLIENT_OUTBOX }>`), so every lock has one.

#![forbid(unsafe_code)]

pub mod rank;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// A mutex with a rank.
#[derive(Default)]
pub struct Mutex<T, const RANK: u16>(parking_lot::Mutex<T>);

/// The guard of a [`Mutex`].
pub struct MutexGuard<'a, T, const RANK: u16> {
    guard: parking_lot::MutexGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u16> Mutex<T, RANK> {
    pub const fn new(value: T) -> Mutex<T, RANK> {
        Mutex(parking_lot::Mutex::new(value))
    }

    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T, RANK> {
        let held = Held::new(RANK);
        MutexGuard { guard: self.0.lock(), _held: held }
    }

    /// Takes the lock if it is free. It never blocks, so the rank is not checked.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, RANK>> {
        self.0.try_lock().map(|guard| MutexGuard { guard, _held: Held::unchecked(RANK) })
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T, const RANK: u16> MutexGuard<'_, T, RANK> {
    /// Releases the lock to a thread that waits for it, if there is one, before this thread can take it again.
    pub fn unlock_fair(self) {
        parking_lot::MutexGuard::unlock_fair(self.guard);
    }
}

impl<T, const RANK: u16> Deref for MutexGuard<'_, T, RANK> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: std::fmt::Display, const RANK: u16> std::fmt::Display for MutexGuard<'_, T, RANK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.guard.fmt(f)
    }
}

impl<T, const RANK: u16> DerefMut for MutexGuard<'_, T, RANK> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A readers-writer lock with a rank.
#[derive(Default)]
pub struct RwLock<T, const RANK: u16>(parking_lot::RwLock<T>);

/// The read guard of a [`RwLock`].
pub struct ReadGuard<'a, T> {
    guard: parking_lot::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// The write guard of a [`RwLock`].
pub struct WriteGuard<'a, T> {
    guard: parking_lot::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u16> RwLock<T, RANK> {
    pub const fn new(value: T) -> RwLock<T, RANK> {
        RwLock(parking_lot::RwLock::new(value))
    }

    #[inline]
    #[track_caller]
    pub fn read(&self) -> ReadGuard<'_, T> {
        let held = Held::new(RANK);
        ReadGuard { guard: self.0.read(), _held: held }
    }

    #[inline]
    #[track_caller]
    pub fn write(&self) -> WriteGuard<'_, T> {
        let held = Held::new(RANK);
        WriteGuard { guard: self.0.write(), _held: held }
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable for a [`Mutex`].
#[derive(Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    pub fn wait<T, const RANK: u16>(&self, guard: &mut MutexGuard<'_, T, RANK>) {
        self.0.wait(&mut guard.guard);
    }

    pub fn wait_for<T, const RANK: u16>(&self, guard: &mut MutexGuard<'_, T, RANK>, timeout: Duration) {
        self.0.wait_for(&mut guard.guard, timeout);
    }

    pub fn wait_until<T, const RANK: u16>(&self, guard: &mut MutexGuard<'_, T, RANK>, deadline: Instant) {
        self.0.wait_until(&mut guard.guard, deadline);
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// How many locks of each rank this thread holds, the highest rank last.
    static HELD: std::cell::RefCell<Vec<u16>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Records that this thread holds a lock, until it is dropped. For locks that are not a [`Mutex`] of this crate, such
/// as shard locks, of which a thread holds several: call [`Held::check`] before the first, and keep one `Held` for
/// each.
pub struct Held {
    #[cfg(debug_assertions)]
    rank: u16,
}

impl Held {
    #[inline]
    #[track_caller]
    fn new(rank: u16) -> Held {
        Held::check(rank);
        Held::unchecked(rank)
    }

    /// Panics if this thread holds a lock of this or a higher rank.
    #[inline]
    #[track_caller]
    pub fn check(rank: u16) {
        #[cfg(debug_assertions)]
        {
            let highest = HELD.try_with(|held| held.borrow().iter().copied().max()).ok().flatten();
            if let Some(highest) = highest.filter(|highest| *highest >= rank) {
                panic!("a thread that holds {} must not take {}", name_of(highest), name_of(rank));
            }
        }
        let _ = rank;
    }

    /// Records a lock without checking its rank.
    #[inline]
    pub fn unchecked(rank: u16) -> Held {
        #[cfg(debug_assertions)]
        let _ = HELD.try_with(|held| held.borrow_mut().push(rank));
        let _ = rank;
        Held {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

/// The ranks of the locks that a thread hands over to another thread: see [`hand_over`].
#[derive(Debug, Default)]
pub struct MovedLocks {
    #[cfg(debug_assertions)]
    ranks: Vec<u16>,
}

/// Removes all locks from this thread's record, for work that continues on another thread and holds them there. Debug
/// builds panic if one has a rank above `highest`.
#[track_caller]
pub fn hand_over(highest: u16) -> MovedLocks {
    #[cfg(debug_assertions)]
    {
        let ranks = HELD.with(|held| std::mem::take(&mut *held.borrow_mut()));
        if let Some(rank) = ranks.iter().find(|rank| **rank > highest) {
            panic!("a thread must not hand over {}", name_of(*rank));
        }
        MovedLocks { ranks }
    }
    #[cfg(not(debug_assertions))]
    {
        let _ = highest;
        MovedLocks {}
    }
}

impl MovedLocks {
    /// Adds the locks to this thread's record.
    pub fn take_over(self) {
        #[cfg(debug_assertions)]
        HELD.with(|held| held.borrow_mut().extend(self.ranks));
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|rank| *rank == self.rank) {
                held.remove(at);
            }
        });
    }
}

#[cfg(debug_assertions)]
fn name_of(rank: u16) -> &'static str {
    rank::ALL.iter().find(|(number, ..)| *number == rank).map_or("a lock without a name", |(_, name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_their_order_and_different() {
        assert!(rank::ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn what_was_handed_over_is_held_elsewhere() {
        let low = Mutex::<u8, 10>::default();
        let _low = low.lock();
        let handed_over = hand_over(10);
        // This thread holds no lock now.
        let other = Mutex::<u8, 5>::default();
        drop(other.lock());
        handed_over.take_over();
        #[cfg(debug_assertions)]
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(other.lock()))).is_err());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "must not hand over")]
    fn locks_above_the_rank_stay_with_their_thread() {
        let high = Mutex::<u8, 20>::default();
        let _high = high.lock();
        hand_over(10);
    }

    #[test]
    fn ascending_is_fine_and_what_was_given_back_is_not_held() {
        let (low, high) = (Mutex::<u8, 10>::default(), RwLock::<u8, 20>::default());
        {
            let _low = low.lock();
            let _high = high.read();
        }
        drop(high.write());
        *low.lock() = 1;
        // Released in another order than taken.
        let (first, second) = (low.lock(), high.read());
        drop(first);
        drop(second);
        drop(low.lock());
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "must not take SHARDS")]
    fn descending_panics() {
        let (low, high) = (Mutex::<u8, { rank::SHARDS }>::default(), Mutex::<u8, { rank::WAKER }>::default());
        let _high = high.lock();
        let _low = low.lock();
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "must not take CLIENTS")]
    fn the_same_lock_twice_panics() {
        let lock = RwLock::<u8, { rank::CLIENTS }>::default();
        let _first = lock.read();
        let _second = lock.read();
    }

    #[test]
    fn a_lock_that_is_only_tried_for_may_have_any_rank() {
        let (low, high) = (Mutex::<u8, 10>::default(), Mutex::<u8, 20>::default());
        let _high = high.lock();
        assert!(low.try_lock().is_some());
    }
}
