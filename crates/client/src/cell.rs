//! Cells: values with a version, a history and a watch. Holdfast only. Knows the commands; refuses to know what a value
//! means, which the caller's type says, and whether a store, a transaction or a session sends them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, cmd};

use crate::asker::{Asker, block_ms};
use crate::encode::Encode;
use crate::error::Error;
use crate::exchange::ttl_ms;
use crate::store::Store;

/// A value with a version that grows by one with every write. It is of type `T` for this program; the server stores
/// bytes. A missing cell has no version. A cell is of a store, of a [`Transaction`](crate::Transaction) or of a
/// [`Session`](crate::Session), and its operations are part of that.
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
pub struct Cell<T> {
    asker: Arc<dyn Asker>,
    name: Vec<u8>,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Cell<T> {
        Cell::new(self.asker.clone(), &self.name)
    }
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
        Cell::new(self.asker(), name.as_ref())
    }

    /// The values of several cells as they all were at one instant, in the order of the names.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// let limits = store.get_cells::<u32>(["config/limit", "config/burst"]).await?;
    /// if let [Some(limit), Some(burst)] = &limits[..] {
    ///     println!("{} and {}, which were set together", limit.value, burst.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_cells<T: FromRedisValue>(
        &self,
        names: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Option<Version<T>>>, Error> {
        get_cells(&*self.asker(), names).await
    }
}

pub(crate) async fn get_cells<T: FromRedisValue>(
    asker: &dyn Asker,
    names: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Result<Vec<Option<Version<T>>>, Error> {
    asker.needs(NEEDED)?;
    let mut mget = cmd("CELL.MGET");
    names.into_iter().for_each(|name| _ = mget.arg(name.as_ref()));
    if mget.args_iter().len() == 1 {
        return Ok(Vec::new());
    }
    let cells: Vec<Option<Parts<T>>> = asker.ask(&mget).await?;
    Ok(cells.into_iter().map(|cell| cell.map(Version::from)).collect())
}

impl<T> Cell<T> {
    pub(crate) fn new(asker: Arc<dyn Asker>, name: &[u8]) -> Cell<T> {
        Cell { asker, name: name.to_vec(), value: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Removes the cell with its history; false if it did not exist.
    pub async fn delete(&self) -> Result<bool, Error> {
        self.asker.ask(&self.command("CELL.DEL")?).await
    }

    /// Removes the cell if it still has this version.
    pub async fn delete_if(&self, version: u64) -> Result<bool, Error> {
        self.asker.ask(self.command("CELL.DEL")?.arg("IF").arg(version)).await
    }

    fn command(&self, name: &str) -> Result<Cmd, Error> {
        self.asker.needs(NEEDED)?;
        let mut command = cmd(name);
        command.arg(&self.name);
        Ok(command)
    }
}

impl<T: FromRedisValue> Cell<T> {
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
    /// the wait. With 0 it waits for the cell to be created. Needs a cell of a store: nothing waits in a transaction or
    /// in a session.
    pub async fn wait_after(&self, version: u64, wait: Duration) -> Result<Option<Version<T>>, Error> {
        let mut getv = self.command("CELL.GETV")?;
        getv.arg("AFTER").arg(version);
        if wait.is_zero() {
            return self.ask(&getv).await;
        }
        getv.arg("BLOCK").arg(block_ms(wait));
        Ok(self.asker.wait::<Option<Parts<T>>>(&getv, wait).await?.map(Version::from))
    }

    /// Lists the retained versions, newest first: at most `limit` of those before `before`.
    pub async fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<Version<T>>, Error> {
        let mut history = self.command("CELL.HISTORY")?;
        history.arg("LIMIT").arg(limit);
        before.iter().for_each(|before| _ = history.arg("BEFORE").arg(before));
        let versions: Vec<Parts<T>> = self.asker.ask(&history).await?;
        Ok(versions.into_iter().map(Version::from).collect())
    }

    async fn ask(&self, command: &Cmd) -> Result<Option<Version<T>>, Error> {
        Ok(self.asker.ask::<Option<Parts<T>>>(command).await?.map(Version::from))
    }
}

impl<T: Encode> Cell<T> {
    /// Writes the value unless the cell exists. Returns its version.
    pub async fn init(&self, value: &T) -> Result<u64, Error> {
        self.asker.ask(self.command("CELL.INIT")?.arg(value.encode()?)).await
    }

    /// Writes the value and returns its version.
    pub async fn set(&self, value: &T) -> Result<u64, Error> {
        self.asker.ask(self.command("CELL.SET")?.arg(value.encode()?)).await
    }

    /// Like [`set`](Cell::set), and the cell expires after this time unless it is written again.
    pub async fn set_for(&self, value: &T, ttl: Duration) -> Result<u64, Error> {
        self.asker.ask(self.command("CELL.SET")?.arg(value.encode()?).arg("PX").arg(ttl_ms(ttl)?)).await
    }
}

impl<T: FromRedisValue + Encode> Cell<T> {
    /// Writes the value if the cell has this version; 0 means that the cell must not exist. Of any number of clients
    /// that expect the same version one succeeds. After [`Error::Unavailable`] it may have been this one: the refusal
    /// of a repeated call shows it.
    pub async fn cas(&self, expected: u64, value: &T) -> Result<Swap<T>, Error> {
        let mut cas = self.command("CELL.CAS")?;
        cas.arg(expected).arg(value.encode()?);
        self.swap(&mut cas).await
    }

    /// Like [`cas`](Cell::cas), and the cell expires after this time unless it is written again: a lease.
    pub async fn cas_for(&self, expected: u64, value: &T, ttl: Duration) -> Result<Swap<T>, Error> {
        let mut cas = self.command("CELL.CAS")?;
        cas.arg(expected).arg(value.encode()?).arg("PX").arg(ttl_ms(ttl)?);
        self.swap(&mut cas).await
    }

    async fn swap(&self, cas: &mut Cmd) -> Result<Swap<T>, Error> {
        let (done, value, version): (Option<u64>, Option<T>, Option<u64>) =
            self.asker.ask(cas.arg("WITHCURRENT")).await?;
        Ok(match done {
            Some(version) => Swap::Done(version),
            None => Swap::Refused(value.zip(version)),
        })
    }
}

/// A command that every server with cells has.
pub(crate) const NEEDED: &str = "cell.cas";

/// A version in the server's reply.
type Parts<T> = (T, u64, u64);

impl<T> From<Parts<T>> for Version<T> {
    fn from((value, version, updated_at_us): Parts<T>) -> Version<T> {
        Version { value, version, updated_at_us }
    }
}
