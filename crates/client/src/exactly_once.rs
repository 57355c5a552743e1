//! State that applies each update once: registers under a prefix, and checkpoints of all of them. Holdfast only. Knows
//! the commands; refuses to know what a value means, and where versions come from.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use redis::{Cmd, FromRedisValue, ToSingleRedisArg, cmd};

use crate::error::Error;
use crate::store::Store;

/// Keyed state in which every update has a version: a repeated or late update changes nothing. So input can be replayed
/// from the last checkpoint, and no count is wrong afterwards. Values are of type `T` for this program; the server
/// stores bytes.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// use holdfast_client::Applied;
///
/// let totals = store.exactly_once_state::<i64>("totals/");
/// let from = match totals.restore_checkpoint("totals-checkpoint").await? {
///     Some(position) => String::from_utf8(position).unwrap(),
///     None => "0".to_owned(), // the first start
/// };
/// // … read the input from there on; `offset` is the version of what it says of this user …
/// # let (offset, amount) = (7, 3);
/// if totals.add("user-1", offset, amount).await? == Applied::Applied {
///     println!("counted");
/// }
/// totals.checkpoint("totals-checkpoint", Some(b"offset 7")).await?; // the state and its input position, in one step
/// # let _ = from;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ExactlyOnceState<T> {
    store: Store,
    prefix: Vec<u8>,
    value: PhantomData<fn() -> T>,
}

/// The version of an update: a number, or an epoch and a round. A number is a round of epoch 0; epochs are compared
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateVersion {
    /// Compared before the round.
    pub epoch: u64,
    /// Within the epoch.
    pub round: u64,
}

impl From<u64> for StateVersion {
    fn from(round: u64) -> StateVersion {
        StateVersion { epoch: 0, round }
    }
}

impl From<(u64, u64)> for StateVersion {
    fn from((epoch, round): (u64, u64)) -> StateVersion {
        StateVersion { epoch, round }
    }
}

impl Display for StateVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.epoch {
            0 => write!(f, "{}", self.round),
            epoch => write!(f, "{epoch}.{}", self.round),
        }
    }
}

impl StateVersion {
    fn parse(text: &str) -> Option<StateVersion> {
        let (epoch, round) = text.split_once('.').unwrap_or(("0", text));
        Some(StateVersion { epoch: epoch.parse().ok()?, round: round.parse().ok()? })
    }
}

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was applied now.
    Applied,
    /// It was applied before.
    Duplicate,
    /// Another update was applied, or is buffered, with this version. This one was not applied.
    Mismatch,
    /// A newer version was applied before. This one was not applied, or long ago.
    Stale,
    /// It is buffered until all versions before it have arrived.
    Buffered,
}

impl Store {
    /// The state under this prefix. Sends nothing to the server.
    pub fn exactly_once_state<T>(&self, prefix: impl AsRef<[u8]>) -> ExactlyOnceState<T> {
        ExactlyOnceState { store: self.clone(), prefix: prefix.as_ref().to_vec(), value: PhantomData }
    }
}

impl<T: FromRedisValue + ToSingleRedisArg> ExactlyOnceState<T> {
    /// Puts a value, unless this version or a newer one was applied.
    pub async fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: T,
        version: impl Into<StateVersion>,
    ) -> Result<Applied, Error> {
        let mut put = self.command("REG.PUT", key.as_ref())?;
        self.update(put.arg(version.into().to_string()).arg(value)).await
    }

    /// Puts a value after all versions before it, from 1 on, have arrived.
    pub async fn put_ordered(&self, key: impl AsRef<[u8]>, value: T, version: u64) -> Result<Applied, Error> {
        let mut put = self.command("REG.PUT", key.as_ref())?;
        self.update(put.arg(version).arg(value).arg("ORDERED")).await
    }

    /// The value of a key, and its version.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<(T, StateVersion)>, Error> {
        let held: Option<(T, String)> = self.store.ask(&self.command("REG.GET", key.as_ref())?).await?;
        held.map(parsed).transpose()
    }

    /// Like [`get`](ExactlyOnceState::get), for several keys, in order.
    pub async fn mget<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<(T, StateVersion)>>, Error> {
        self.store.needs(NEEDED)?;
        let mut mget = cmd("REG.MGET");
        keys.into_iter().for_each(|key| _ = mget.arg([&self.prefix, key.as_ref()].concat()));
        if mget.args_iter().len() == 1 {
            return Ok(Vec::new());
        }
        let held: Vec<Option<(T, String)>> = self.store.ask(&mget).await?;
        held.into_iter().map(|held| held.map(parsed).transpose()).collect()
    }
}

impl<T> ExactlyOnceState<T> {
    /// Adds to a number, once for this version. A version that comes after a newer one is lost: where that can happen,
    /// use [`add_ordered`](ExactlyOnceState::add_ordered).
    pub async fn add(
        &self,
        key: impl AsRef<[u8]>,
        version: impl Into<StateVersion>,
        number: i64,
    ) -> Result<Applied, Error> {
        let mut add = self.command("REG.INCRBY", key.as_ref())?;
        self.update(add.arg(version.into().to_string()).arg(number)).await
    }

    /// Adds to a number after all versions before this one, from 1 on, have arrived.
    pub async fn add_ordered(&self, key: impl AsRef<[u8]>, version: u64, number: i64) -> Result<Applied, Error> {
        let mut add = self.command("REG.INCRBY", key.as_ref())?;
        self.update(add.arg(version).arg(number).arg("ORDERED")).await
    }

    /// Declares that no version below this one will arrive, and applies buffered updates. Returns how many.
    pub async fn seal(&self, key: impl AsRef<[u8]>, version: u64) -> Result<u64, Error> {
        self.store.ask(self.command("REG.SEAL", key.as_ref())?.arg(version)).await
    }

    /// Returns the whole state as one blob, with the input position that it belongs to.
    pub async fn snapshot(&self, position: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        self.store.ask(&self.snapshot_command(position)?).await
    }

    /// Restores the state from a blob, and returns its position.
    pub async fn restore(&self, snapshot: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.restored(cmd("REG.RESTORE").arg(snapshot)).await
    }

    /// Takes from the blob what is newer than the current state, and returns its position.
    pub async fn merge(&self, snapshot: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.restored(cmd("REG.RESTORE").arg(snapshot).arg("MERGE")).await
    }

    /// Stores a snapshot at the server, as a string under this key. Returns how many registers are in it.
    pub async fn checkpoint(&self, key: impl AsRef<[u8]>, position: Option<&[u8]>) -> Result<u64, Error> {
        self.store.ask(self.snapshot_command(position)?.arg("STORE").arg(key.as_ref())).await
    }

    /// Restores the state from a checkpoint, and returns its position. Without a checkpoint it returns `None`, and
    /// changes nothing.
    pub async fn restore_checkpoint(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.restored_from(key.as_ref(), "REPLACE").await
    }

    /// Takes from a checkpoint what is newer than the current state.
    pub async fn merge_checkpoint(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.restored_from(key.as_ref(), "MERGE").await
    }

    async fn restored_from(&self, key: &[u8], policy: &str) -> Result<Option<Vec<u8>>, Error> {
        self.store.needs(NEEDED)?;
        if !self.store.ask::<bool>(cmd("EXISTS").arg(key)).await? {
            return Ok(None);
        }
        self.restored(cmd("REG.RESTORE").arg("FROM").arg(key).arg(policy)).await
    }

    fn snapshot_command(&self, position: Option<&[u8]>) -> Result<Cmd, Error> {
        self.store.needs(NEEDED)?;
        let mut snapshot = cmd("REG.SNAPSHOT");
        snapshot.arg("PREFIX").arg(&self.prefix);
        position.iter().for_each(|position| _ = snapshot.arg("POSITION").arg(position));
        Ok(snapshot)
    }

    async fn restored(&self, restore: &Cmd) -> Result<Option<Vec<u8>>, Error> {
        self.store.needs(NEEDED)?;
        let (_, position): (u64, Option<Vec<u8>>) = self.store.ask(restore).await?;
        Ok(position)
    }

    fn command(&self, name: &str, key: &[u8]) -> Result<Cmd, Error> {
        self.store.needs(NEEDED)?;
        let mut command = cmd(name);
        command.arg([&self.prefix, key].concat());
        Ok(command)
    }

    async fn update(&self, command: &Cmd) -> Result<Applied, Error> {
        let word: String = self.store.ask(command).await?;
        match &*word {
            "APPLIED" => Ok(Applied::Applied),
            "DUPLICATE" => Ok(Applied::Duplicate),
            "MISMATCH" => Ok(Applied::Mismatch),
            "STALE" => Ok(Applied::Stale),
            "BUFFERED" => Ok(Applied::Buffered),
            _ => Err(Error::Reply((redis::ErrorKind::UnexpectedReturnType, "not the answer to an update").into())),
        }
    }
}

fn parsed<T>((value, version): (T, String)) -> Result<(T, StateVersion), Error> {
    match StateVersion::parse(&version) {
        Some(version) => Ok((value, version)),
        None => Err(Error::Reply((redis::ErrorKind::UnexpectedReturnType, "not a version").into())),
    }
}

/// A command that every server with registers has.
const NEEDED: &str = "reg.put";
