//! Exactly-once state in the process, for tests and for programs that keep their checkpoints elsewhere. Knows keys, types
//! and snapshots; refuses to know what a version does, which a register says.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{FromRedisValue, Value};

use crate::answer::Answer;
use crate::asker::read;
use crate::encode::Encode;
use crate::error::Error;
use crate::memory_snapshot::{Registers, read_snapshot, write_snapshot};
use crate::register::{Operation, Register};
use crate::state_backend::StateBackend;
use crate::state_version::{Applied, OrderedVersion, Restored, StateVersion};

/// State in the process, with the semantics of [`ExactlyOnceState`](crate::ExactlyOnceState). Clones share it. Its
/// snapshots have a form of their own: the server does not take them, and it does not take the server's.
pub struct MemoryState<T> {
    registers: Arc<Mutex<Registers>>,
    checkpoints: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for MemoryState<T> {
    fn clone(&self) -> MemoryState<T> {
        MemoryState { registers: self.registers.clone(), checkpoints: self.checkpoints.clone(), value: PhantomData }
    }
}

impl<T> Default for MemoryState<T> {
    fn default() -> MemoryState<T> {
        MemoryState { registers: Arc::default(), checkpoints: Arc::default(), value: PhantomData }
    }
}

impl<T> MemoryState<T> {
    /// Empty state, without checkpoints.
    pub fn new() -> MemoryState<T> {
        MemoryState::default()
    }

    /// Other, empty state that sees the same checkpoints, as another prefix at a server does.
    #[must_use]
    pub fn sibling<U>(&self) -> MemoryState<U> {
        MemoryState { registers: Arc::default(), checkpoints: self.checkpoints.clone(), value: PhantomData }
    }

    fn registers(&self) -> MutexGuard<'_, Registers> {
        self.registers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a register. One that stays empty is not kept.
    fn change<R>(&self, key: &[u8], change: impl FnOnce(&mut Register) -> Result<R, Error>) -> Result<R, Error> {
        let mut registers = self.registers();
        let register = registers.entry(key.to_vec()).or_default();
        let changed = change(register);
        if register.is_empty() {
            registers.remove(key);
        }
        changed
    }

    fn take(&self, snapshot: &[u8], merges: bool) -> Result<Restored, Error> {
        let (saved, position) = read_snapshot(snapshot)?;
        let mut registers = self.registers();
        if !merges {
            registers.clear();
        }
        for (key, register) in saved {
            let version = |register: &Register| register.current.as_ref().map(|current| current.version);
            // Of two values of one version, the existing one stays: a program may have used it.
            if registers.get(&key).is_none_or(|held| version(&register) > version(held)) {
                registers.insert(key, register);
            }
        }
        Ok(Restored { position })
    }

    fn take_checkpoint(&self, key: &[u8], merges: bool) -> Result<Option<Restored>, Error> {
        let snapshot = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        snapshot.map(|snapshot| self.take(&snapshot, merges)).transpose()
    }
}

impl<T: FromRedisValue> MemoryState<T> {
    fn held(&self, key: &[u8]) -> Result<Option<(T, StateVersion)>, Error> {
        let current = self.registers().get(key).and_then(|register| register.current.clone());
        current.map(|current| Ok((read(Value::BulkString(current.value))?, current.version))).transpose()
    }
}

impl<T: Encode + FromRedisValue + Send> StateBackend<T> for MemoryState<T> {
    fn put<'a>(&'a self, key: &'a [u8], value: T, version: StateVersion) -> Answer<'a, Applied>
    where
        T: 'a,
    {
        Box::pin(async move {
            let put = Operation::Put(value.encode()?);
            self.change(key, |register| register.update(version, put))
        })
    }

    fn put_ordered<'a>(&'a self, key: &'a [u8], value: T, version: OrderedVersion) -> Answer<'a, Applied>
    where
        T: 'a,
    {
        Box::pin(async move {
            let put = Operation::Put(value.encode()?);
            self.change(key, |register| register.update_in_order(version, put))
        })
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<(T, StateVersion)>>
    where
        T: 'a,
    {
        Box::pin(async move { self.held(key) })
    }

    fn mget<'a>(&'a self, keys: &'a [&'a [u8]]) -> Answer<'a, Vec<Option<(T, StateVersion)>>>
    where
        T: 'a,
    {
        Box::pin(async move { keys.iter().map(|key| self.held(key)).collect() })
    }

    fn add<'a>(&'a self, key: &'a [u8], version: StateVersion, number: i64) -> Answer<'a, Applied> {
        Box::pin(async move { self.change(key, |register| register.update(version, Operation::Add(number))) })
    }

    fn add_ordered<'a>(&'a self, key: &'a [u8], version: OrderedVersion, number: i64) -> Answer<'a, Applied> {
        Box::pin(async move { self.change(key, |register| register.update_in_order(version, Operation::Add(number))) })
    }

    fn seal<'a>(&'a self, key: &'a [u8], version: OrderedVersion) -> Answer<'a, u64> {
        Box::pin(async move { self.change(key, |register| register.seal(version)) })
    }

    fn snapshot<'a>(&'a self, position: Option<&'a [u8]>) -> Answer<'a, Vec<u8>> {
        Box::pin(async move { Ok(write_snapshot(&self.registers(), position)) })
    }

    fn restore<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(async move { Ok(self.take(snapshot, false)?.position) })
    }

    fn merge<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(async move { Ok(self.take(snapshot, true)?.position) })
    }

    fn checkpoint<'a>(&'a self, key: &'a [u8], position: Option<&'a [u8]>) -> Answer<'a, u64> {
        Box::pin(async move {
            let registers = self.registers();
            let snapshot = write_snapshot(&registers, position);
            self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec(), snapshot);
            Ok(registers.len() as u64)
        })
    }

    fn restore_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>> {
        Box::pin(async move { self.take_checkpoint(key, false) })
    }

    fn merge_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>> {
        Box::pin(async move { self.take_checkpoint(key, true) })
    }
}
