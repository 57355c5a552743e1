//! State that applies each update once: registers under a prefix, and checkpoints of all of them. Holdfast only. Knows
//! the commands; refuses to know what a value means, where versions come from, and whether a store, a transaction or a
//! session sends the commands.

use std::marker::PhantomData;
use std::sync::Arc;

use redis::{Cmd, FromRedisValue, cmd};

use crate::answer::Answer;
use crate::asker::Asker;
use crate::encode::Encode;
use crate::error::Error;
use crate::state_backend::StateBackend;
use crate::state_version::{Applied, OrderedVersion, Restored, StateVersion};
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
///     Some(checkpoint) => String::from_utf8(checkpoint.position.unwrap_or_default()).unwrap(),
///     None => "offset 0".to_owned(), // the first start
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
pub struct ExactlyOnceState<T> {
    asker: Arc<dyn Asker>,
    prefix: Vec<u8>,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for ExactlyOnceState<T> {
    fn clone(&self) -> ExactlyOnceState<T> {
        ExactlyOnceState::new(self.asker.clone(), &self.prefix)
    }
}

impl Store {
    /// The state under this prefix. Sends nothing to the server.
    pub fn exactly_once_state<T>(&self, prefix: impl AsRef<[u8]>) -> ExactlyOnceState<T> {
        ExactlyOnceState::new(self.asker(), prefix.as_ref())
    }
}

impl<T: Encode> ExactlyOnceState<T> {
    /// Puts a value, unless this version or a newer one was applied.
    pub async fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: T,
        version: impl Into<StateVersion>,
    ) -> Result<Applied, Error> {
        let mut put = self.command("REG.PUT", key.as_ref())?;
        self.update(put.arg(version.into().to_string()).arg(value.encode()?)).await
    }

    /// Puts a value in its order. Versions that are numbers are applied one by one from 1, and one that is ahead is
    /// buffered. Pairs of epoch and round are buffered until [`seal`](ExactlyOnceState::seal).
    pub async fn put_ordered(
        &self,
        key: impl AsRef<[u8]>,
        value: T,
        version: impl Into<OrderedVersion>,
    ) -> Result<Applied, Error> {
        let mut put = self.command("REG.PUT", key.as_ref())?;
        self.update(put.arg(version.into().to_string()).arg(value.encode()?).arg("ORDERED")).await
    }
}

impl<T: FromRedisValue> ExactlyOnceState<T> {
    /// The value of a key, and its version.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<(T, StateVersion)>, Error> {
        let held: Option<(T, String)> = self.asker.ask(&self.command("REG.GET", key.as_ref())?).await?;
        held.map(parsed).transpose()
    }

    /// Like [`get`](ExactlyOnceState::get), for several keys, in order.
    pub async fn mget<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<(T, StateVersion)>>, Error> {
        self.asker.needs(NEEDED)?;
        let mut mget = cmd("REG.MGET");
        keys.into_iter().for_each(|key| _ = mget.arg([&self.prefix, key.as_ref()].concat()));
        if mget.args_iter().len() == 1 {
            return Ok(Vec::new());
        }
        let held: Vec<Option<(T, String)>> = self.asker.ask(&mget).await?;
        held.into_iter().map(|held| held.map(parsed).transpose()).collect()
    }
}

impl<T> ExactlyOnceState<T> {
    pub(crate) fn new(asker: Arc<dyn Asker>, prefix: &[u8]) -> ExactlyOnceState<T> {
        ExactlyOnceState { asker, prefix: prefix.to_vec(), value: PhantomData }
    }

    /// The prefix of its keys.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

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

    /// Adds to a number in its order, as [`put_ordered`](ExactlyOnceState::put_ordered).
    pub async fn add_ordered(
        &self,
        key: impl AsRef<[u8]>,
        version: impl Into<OrderedVersion>,
        number: i64,
    ) -> Result<Applied, Error> {
        let mut add = self.command("REG.INCRBY", key.as_ref())?;
        self.update(add.arg(version.into().to_string()).arg(number).arg("ORDERED")).await
    }

    /// Declares that no version below this one will arrive, and applies buffered updates. Returns how many.
    pub async fn seal(&self, key: impl AsRef<[u8]>, version: impl Into<OrderedVersion>) -> Result<u64, Error> {
        self.asker.ask(self.command("REG.SEAL", key.as_ref())?.arg(version.into().to_string())).await
    }

    /// Returns the whole state as one blob, with the input position that it belongs to.
    pub async fn snapshot(&self, position: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        self.asker.ask(&self.snapshot_command(position)?).await
    }

    /// Replaces this state by a snapshot, of this state or of another prefix, and returns the snapshot's position. The
    /// state that the snapshot is of stays as it is.
    pub async fn restore(&self, snapshot: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.restored(cmd("REG.RESTORE").arg(snapshot).arg("REPLACE")).await?.position)
    }

    /// Takes from a snapshot what is newer than this state, and returns the snapshot's position.
    pub async fn merge(&self, snapshot: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.restored(cmd("REG.RESTORE").arg(snapshot).arg("MERGE")).await?.position)
    }

    /// Stores a snapshot at the server, as a string under this key, which is outside of the prefix. Returns how many
    /// registers are in it.
    pub async fn checkpoint(&self, key: impl AsRef<[u8]>, position: Option<&[u8]>) -> Result<u64, Error> {
        self.asker.ask(self.snapshot_command(position)?.arg("STORE").arg(key.as_ref())).await
    }

    /// Replaces this state by a checkpoint, of this state or of another prefix, and returns its position. `None` if
    /// there is no checkpoint; then nothing is changed.
    pub async fn restore_checkpoint(&self, key: impl AsRef<[u8]>) -> Result<Option<Restored>, Error> {
        self.restored_from(key.as_ref(), "REPLACE").await
    }

    /// Takes from a checkpoint what is newer than this state, and returns its position. `None` if there is no
    /// checkpoint.
    pub async fn merge_checkpoint(&self, key: impl AsRef<[u8]>) -> Result<Option<Restored>, Error> {
        self.restored_from(key.as_ref(), "MERGE").await
    }

    async fn restored_from(&self, key: &[u8], policy: &str) -> Result<Option<Restored>, Error> {
        match self.restored(cmd("REG.RESTORE").arg("FROM").arg(key).arg(policy)).await {
            Ok(restored) => Ok(Some(restored)),
            // Asked only now: before the restore, the checkpoint could come or go between the two requests.
            Err(refused @ Error::Refused(_)) => match self.asker.ask(cmd("EXISTS").arg(key)).await? {
                true => Err(refused),
                false => Ok(None),
            },
            Err(error) => Err(error),
        }
    }

    fn snapshot_command(&self, position: Option<&[u8]>) -> Result<Cmd, Error> {
        self.asker.needs(NEEDED)?;
        let mut snapshot = cmd("REG.SNAPSHOT");
        snapshot.arg("PREFIX").arg(&self.prefix);
        position.iter().for_each(|position| _ = snapshot.arg("POSITION").arg(position));
        Ok(snapshot)
    }

    /// Without INTO, a snapshot of another state would silently take that one back, and leave this one alone.
    async fn restored(&self, restore: &mut Cmd) -> Result<Restored, Error> {
        self.asker.needs(NEEDED)?;
        let (_, position): (u64, Option<Vec<u8>>) = self.asker.ask(restore.arg("INTO").arg(&self.prefix)).await?;
        Ok(Restored { position })
    }

    fn command(&self, name: &str, key: &[u8]) -> Result<Cmd, Error> {
        self.asker.needs(NEEDED)?;
        let mut command = cmd(name);
        command.arg([&self.prefix, key].concat());
        Ok(command)
    }

    async fn update(&self, command: &Cmd) -> Result<Applied, Error> {
        let word: String = self.asker.ask(command).await?;
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

impl<T: Encode + FromRedisValue + Send> StateBackend<T> for ExactlyOnceState<T> {
    fn put<'a>(&'a self, key: &'a [u8], value: T, version: StateVersion) -> Answer<'a, Applied>
    where
        T: 'a,
    {
        Box::pin(self.put(key, value, version))
    }

    fn put_ordered<'a>(&'a self, key: &'a [u8], value: T, version: OrderedVersion) -> Answer<'a, Applied>
    where
        T: 'a,
    {
        Box::pin(self.put_ordered(key, value, version))
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<(T, StateVersion)>>
    where
        T: 'a,
    {
        Box::pin(self.get(key))
    }

    fn mget<'a>(&'a self, keys: &'a [&'a [u8]]) -> Answer<'a, Vec<Option<(T, StateVersion)>>>
    where
        T: 'a,
    {
        Box::pin(self.mget(keys))
    }

    fn add<'a>(&'a self, key: &'a [u8], version: StateVersion, number: i64) -> Answer<'a, Applied> {
        Box::pin(self.add(key, version, number))
    }

    fn add_ordered<'a>(&'a self, key: &'a [u8], version: OrderedVersion, number: i64) -> Answer<'a, Applied> {
        Box::pin(self.add_ordered(key, version, number))
    }

    fn seal<'a>(&'a self, key: &'a [u8], version: OrderedVersion) -> Answer<'a, u64> {
        Box::pin(self.seal(key, version))
    }

    fn snapshot<'a>(&'a self, position: Option<&'a [u8]>) -> Answer<'a, Vec<u8>> {
        Box::pin(self.snapshot(position))
    }

    fn restore<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(self.restore(snapshot))
    }

    fn merge<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(self.merge(snapshot))
    }

    fn checkpoint<'a>(&'a self, key: &'a [u8], position: Option<&'a [u8]>) -> Answer<'a, u64> {
        Box::pin(self.checkpoint(key, position))
    }

    fn restore_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>> {
        Box::pin(self.restore_checkpoint(key))
    }

    fn merge_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>> {
        Box::pin(self.merge_checkpoint(key))
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
