//! Cells: values with a version, a history and a watch. Holdfast only. Knows the commands; refuses to know what a value
//! means: the caller chooses its type.

use std::marker::PhantomData;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, ToSingleRedisArg, cmd};

use crate::error::Error;
use crate::exchange::ttl_ms;
use crate::store::Store;

/// A value with a version that grows by one with every write. It is of type `T` for this program; the server stores
/// bytes. A missing cell has no version.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// use holdfast_client::Swap;
///
/// let limit = store.cell::<u32>("config/limit");
/// limit.init(&10).await?; // unless it is there
/// let Some(now) = limit.get().await? else { return Ok(()) };
/// match limit.cas(now.version, &(now.value + 5)).await? {
///     Swap::Done(version) => println!("version {version} is ours"),
///     Swap::Refused(Some((value, version))) => println!("another writer has set {value}, in version {version}"),
///     Swap::Refused(None) => println!("it is gone"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cell<T> {
    store: Store,
    name: Vec<u8>,
    value: PhantomData<fn() -> T>,
}

/// A value of a cell and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version<T> {
    /// What the cell held.
    pub value: T,
    /// 1 is the first. It only grows, so it serves as a fencing token.
    pub version: u64,
    /// When it was written, in microseconds by the server's clock. A later version of a cell has a later time.
    pub updated_at_us: u64,
}

/// The result of a compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap<T> {
    /// The value was written, in this version.
    Done(u64),
    /// The version differed; nothing was written. Has the current value and version, unless the cell is missing.
    Refused(Option<(T, u64)>),
}

impl Store {
    /// The cell with this name. Sends nothing to the server.
    pub fn cell<T>(&self, name: impl AsRef<[u8]>) -> Cell<T> {
        Cell { store: self.clone(), name: name.as_ref().to_vec(), value: PhantomData }
    }
}

impl<T: FromRedisValue> Cell<T> {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Reads the current value.
    pub async fn get(&self) -> Result<Option<Version<T>>, Error> {
        self.ask(&self.command("CELL.GETV")?).await
    }

    /// Reads the value of this version, if it is retained.
    pub async fn get_version(&self, version: u64) -> Result<Option<Version<T>>, Error> {
        self.ask(self.command("CELL.GETV")?.arg("VERSION").arg(version)).await
    }

    /// Reads the value at this time, in microseconds, if it is retained.
    pub async fn get_as_of(&self, time_us: u64) -> Result<Option<Version<T>>, Error> {
        self.ask(self.command("CELL.GETV")?.arg("ASOF").arg(time_us)).await
    }

    /// Waits until the cell has a later version than this, and returns it. `None` when the cell was removed, or after
    /// the wait. With 0 it waits for the cell to be created.
    pub async fn wait_after(&self, version: u64, wait: Duration) -> Result<Option<Version<T>>, Error> {
        self.store.connection()?; // unless the store is closed
        let mut getv = self.command("CELL.GETV")?;
        getv.arg("AFTER").arg(version);
        if wait.is_zero() {
            return self.ask(&getv).await;
        }
        // BLOCK 0 would wait forever.
        getv.arg("BLOCK").arg(wait.as_millis().clamp(1, i64::MAX as u128) as u64);
        Ok(self.store.own_connections.ask::<Option<Parts<T>>>(&getv, wait).await?.map(Version::from))
    }

    /// Lists the retained versions, newest first: at most `limit` of those before `before`.
    pub async fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<Version<T>>, Error> {
        let mut history = self.command("CELL.HISTORY")?;
        history.arg("LIMIT").arg(limit);
        before.iter().for_each(|before| _ = history.arg("BEFORE").arg(before));
        let versions: Vec<Parts<T>> = self.store.ask(&history).await?;
        Ok(versions.into_iter().map(Version::from).collect())
    }

    /// Removes the cell with its history; false if it did not exist.
    pub async fn delete(&self) -> Result<bool, Error> {
        self.store.ask(&self.command("CELL.DEL")?).await
    }

    /// Removes the cell if it still has this version.
    pub async fn delete_if(&self, version: u64) -> Result<bool, Error> {
        self.store.ask(self.command("CELL.DEL")?.arg("IF").arg(version)).await
    }

    async fn ask(&self, command: &Cmd) -> Result<Option<Version<T>>, Error> {
        Ok(self.store.ask::<Option<Parts<T>>>(command).await?.map(Version::from))
    }
}

impl<T> Cell<T> {
    fn command(&self, name: &str) -> Result<Cmd, Error> {
        self.store.needs("cell.cas")?;
        let mut command = cmd(name);
        command.arg(&self.name);
        Ok(command)
    }
}

impl<T: FromRedisValue + ToSingleRedisArg + Clone> Cell<T> {
    /// Writes the value unless the cell exists. Returns its version.
    pub async fn init(&self, value: &T) -> Result<u64, Error> {
        self.store.ask(self.command("CELL.INIT")?.arg(value.clone())).await
    }

    /// Writes the value and returns its version.
    pub async fn set(&self, value: &T) -> Result<u64, Error> {
        self.store.ask(self.command("CELL.SET")?.arg(value.clone())).await
    }

    /// Like [`set`](Cell::set), and the cell expires after this time unless it is written again.
    pub async fn set_for(&self, value: &T, ttl: Duration) -> Result<u64, Error> {
        self.store.ask(self.command("CELL.SET")?.arg(value.clone()).arg("PX").arg(ttl_ms(ttl)?)).await
    }

    /// Writes the value if the cell has this version; 0 means that the cell must not exist. Of any number of clients
    /// that expect the same version one succeeds. After [`Error::Unavailable`] it may have been this one: the refusal
    /// of a repeated call shows it.
    pub async fn cas(&self, expected: u64, value: &T) -> Result<Swap<T>, Error> {
        let mut cas = self.command("CELL.CAS")?;
        cas.arg(expected).arg(value.clone());
        self.swap(&mut cas).await
    }

    /// Like [`cas`](Cell::cas), and the cell expires after this time unless it is written again: a lease.
    pub async fn cas_for(&self, expected: u64, value: &T, ttl: Duration) -> Result<Swap<T>, Error> {
        let mut cas = self.command("CELL.CAS")?;
        cas.arg(expected).arg(value.clone()).arg("PX").arg(ttl_ms(ttl)?);
        self.swap(&mut cas).await
    }

    async fn swap(&self, cas: &mut Cmd) -> Result<Swap<T>, Error> {
        let (done, value, version): (Option<u64>, Option<T>, Option<u64>) =
            self.store.ask(cas.arg("WITHCURRENT")).await?;
        Ok(match done {
            Some(version) => Swap::Done(version),
            None => Swap::Refused(value.zip(version)),
        })
    }
}

/// A version in the server's reply.
type Parts<T> = (T, u64, u64);

impl<T> From<Parts<T>> for Version<T> {
    fn from((value, version, updated_at_us): Parts<T>) -> Version<T> {
        Version { value, version, updated_at_us }
    }
}
