//! Interactive transactions: commands that answer at once, read their own writes, and take effect together or not at
//! all; and those that only read cells, as of one instant. Holdfast only. Knows how a transaction begins, ends and is
//! retried; refuses to know what its commands do.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value, cmd};
use tokio::time::{Instant, sleep};

use crate::answer::Answer;
use crate::asker::{Asker, read};
use crate::cell::{Cell, Version, get_cells};
use crate::error::Error;
use crate::exactly_once::ExactlyOnceState;
use crate::exchange::{Exchange, Outcome};
use crate::own_connections::OwnConnection;
use crate::pause::randomized;
use crate::record::{Fields, Record};
use crate::records;
use crate::run::Run;
use crate::send::without_reply;
use crate::store::Store;
use crate::target::Target;

/// A transaction in progress. Records, cells, runs and exactly-once state of it are part of it;
/// [`ask`](Transaction::ask) is for all other commands. It is also a connection of the redis crate, so `AsyncCommands`
/// work on it, except for `get`, which reads a record here.
///
/// Only commands whose keys are all arguments can be part of a transaction; others are refused, and the transaction
/// continues. After its end, its commands are errors, and nothing is sent.
pub struct Transaction {
    state: Arc<State>,
}

/// A transaction in progress that reads cells as they all were at one instant. Of a cell, only what reads is part of it;
/// the server refuses the rest, and the transaction continues. After its end, its commands are errors.
pub struct ReadTransaction {
    transaction: Transaction,
}

impl ReadTransaction {
    /// The cell with this name, as it was at the instant.
    pub fn cell<T>(&self, name: impl AsRef<[u8]>) -> Cell<T> {
        self.transaction.cell(name)
    }

    /// The values of several cells, in the order of the names.
    pub async fn get_cells<T: FromRedisValue>(
        &self,
        names: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Option<Version<T>>>, Error> {
        self.transaction.get_cells(names).await
    }

    /// Sends a command and reads its answer: CELL.GET, CELL.GETV, CELL.MGET, CELL.HISTORY or CELL.LIST.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.transaction.ask(command).await
    }
}

/// What a transaction shares with its cells and runs.
struct State {
    /// `None` after the end: another user may have the connection by then.
    connection: Mutex<Option<MultiplexedConnection>>,
    db: i64,
    /// The server has reported a conflict: it cannot be committed any more.
    conflict: AtomicBool,
    /// The server has reported that it follows another one: nothing of the transaction can take effect.
    moved: Mutex<Option<RedisError>>,
    target: Arc<Target>,
    /// Of the writer to which its connection leads.
    epoch: u64,
}

/// The first pause before a retry, which then doubles. It is randomized, so that clients with the same conflict spread
/// out.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_DOUBLINGS_MAX: u32 = 7;

/// The command that begins a transaction that reads and writes.
const BEGIN: &[&str] = &["TXN.BEGIN"];
const BEGIN_READ_ONLY: &[&str] = &["TXN.BEGIN", "READONLY"];

impl Store {
    /// Runs the commands of `body` as one transaction, and commits it. If another client changes a key that it has read
    /// or written before the commit, nothing is applied and `body` runs again, at most `tries` times in all; then it is
    /// [`Error::Conflict`]. An error of `body` rolls back, and is returned.
    ///
    /// `body` should have no other effects than its commands: it may run several times. After [`Error::Unavailable`]
    /// the transaction may have been committed.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::{Error, Fields};
    ///
    /// let moved = store
    ///     .transaction(10, |txn| async move {
    ///         let (from, to) = (txn.cell::<i64>("account/1"), txn.cell::<i64>("account/2"));
    ///         let balance = from.get().await?.map_or(0, |now| now.value);
    ///         if balance < 100 {
    ///             return Ok(false);
    ///         }
    ///         from.set(&(balance - 100)).await?;
    ///         let other = to.get().await?.map_or(0, |now| now.value);
    ///         to.set(&(other + 100)).await?;
    ///         txn.put(b"audit:7", &Fields::new().with("amount", 100), None).await?;
    ///         Ok::<_, Error>(true)
    ///     })
    ///     .await?;
    /// # let _ = moved;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transaction<T, E: From<Error>, F: Future<Output = Result<T, E>>>(
        &self,
        tries: usize,
        body: impl FnMut(Transaction) -> F,
    ) -> Result<T, E> {
        self.run_transaction(BEGIN, tries, body).await
    }

    /// Runs `body`, which reads cells as they all were at one instant, whatever other clients write meanwhile. Readers
    /// and writers do not conflict, so `body` runs once; with several servers, it runs again if another one becomes the
    /// writer and the old one refuses to read. What the server cannot keep for it (`txn-max-bytes`) is
    /// [`Error::Conflict`]. [`Store::get_cells`] does the same in one request.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::Error;
    ///
    /// let sum = store
    ///     .read_transaction(|txn| async move {
    ///         let mut sum = 0;
    ///         for account in 1..=50 {
    ///             sum += txn.cell::<i64>(format!("account/{account}")).get().await?.map_or(0, |now| now.value);
    ///         }
    ///         Ok::<_, Error>(sum)
    ///     })
    ///     .await?;
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_transaction<T, E: From<Error>, F: Future<Output = Result<T, E>>>(
        &self,
        mut body: impl FnMut(ReadTransaction) -> F,
    ) -> Result<T, E> {
        self.run_transaction(BEGIN_READ_ONLY, 1, |transaction| body(ReadTransaction { transaction })).await
    }

    async fn run_transaction<T, E: From<Error>, F: Future<Output = Result<T, E>>>(
        &self,
        begin: &[&str],
        tries: usize,
        mut body: impl FnMut(Transaction) -> F,
    ) -> Result<T, E> {
        self.needs("txn.begin")?;
        self.connection()?; // unless the store is closed
        let (began, mut tried) = (Instant::now(), 0);
        while tried < tries {
            if tried > 0 {
                sleep(pause(tried)).await;
            }
            let transaction = self.begin(begin).await?;
            let ending = Ending { state: transaction.state.clone() };
            let outcome = body(transaction).await;
            let is_over = ending.state.is_over();
            let failed = outcome.is_err() || is_over;
            let ended = self.end(&ending.state, if failed { "TXN.ROLLBACK" } else { "TXN.COMMIT" }).await;
            if failed && !is_over {
                return outcome; // an error of the body's own, whatever the server says to its end
            }
            match (ending.state.take_moved(), ended) {
                // It is not counted: another server has to run it.
                (Some(error), _) => {
                    if began.elapsed() >= self.own_connections().target().patience(Duration::ZERO) {
                        return Err(Error::NotWriter(error).into());
                    }
                }
                _ if ending.state.is_in_conflict() => tried += 1,
                (None, Err(error)) if !failed => return Err(error.into()),
                _ => return outcome,
            }
        }
        Err(Error::Conflict(tries).into())
    }

    async fn begin(&self, words: &[&str]) -> Result<Transaction, Error> {
        let mut begin = cmd(words[0]);
        begin.arg(&words[1..]);
        let target = self.own_connections().target();
        let (began, mut tried) = (Instant::now(), 0);
        loop {
            let error = match self.begin_once(&begin).await {
                Err(error) if error.is_temporary() => error,
                begun => return begun,
            };
            let goes_on = match target.has_several() {
                true => began.elapsed() < target.patience(Duration::ZERO),
                // It was idle while the server restarted, and so were the others.
                false => tried == 0 && matches!(error, Error::Unavailable(_)),
            };
            if !goes_on {
                return Err(error);
            }
            self.own_connections().close();
            if target.has_several() {
                sleep(target.pause(tried)).await;
            }
            tried += 1;
        }
    }

    async fn begin_once(&self, begin: &Cmd) -> Result<Transaction, Error> {
        let target = self.own_connections().target().clone();
        let OwnConnection { mut connection, epoch, .. } = self.own_connections().take().await?;
        let db = connection.get_db();
        let begun = connection.req_packed_command(begin).await.and_then(Value::extract_error);
        begun.map_err(|error| target.note(epoch, without_reply(error)))?;
        let (connection, conflict, moved) = (Mutex::new(Some(connection)), AtomicBool::new(false), Mutex::default());
        Ok(Transaction { state: Arc::new(State { connection, db, conflict, moved, target, epoch }) })
    }

    /// Commits a transaction or rolls it back. A connection that does not answer as expected is dropped, and the server
    /// rolls back when it is closed.
    async fn end(&self, state: &State, command: &str) -> Result<(), Error> {
        let Some(mut connection) = state.connection().take() else { return Ok(()) };
        let ended = connection.req_packed_command(&cmd(command)).await.and_then(Value::extract_error);
        let is_over = match &ended {
            Ok(_) => true,
            Err(error) => {
                state.note(error);
                command == "TXN.COMMIT" && error.code() == Some(CONFLICT)
            }
        };
        if is_over {
            self.own_connections().give_back(OwnConnection { connection, epoch: state.epoch, client_id: None });
        }
        ended.map(drop).map_err(|error| state.target.note(state.epoch, without_reply(error)))
    }
}

/// Closes the connection of a transaction that does not come to its end, even if a cell of it is still held.
struct Ending {
    state: Arc<State>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.state.connection().take();
    }
}

impl Transaction {
    /// Sends a command and reads its answer.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        read(self.state.ask_value(command).await?)
    }

    /// The cell with this name, as part of the transaction.
    pub fn cell<T>(&self, name: impl AsRef<[u8]>) -> Cell<T> {
        Cell::new(self.asker(), name.as_ref())
    }

    /// The values of several cells, in the order of the names.
    pub async fn get_cells<T: FromRedisValue>(
        &self,
        names: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Option<Version<T>>>, Error> {
        get_cells(&*self.state, names).await
    }

    /// The run with this name, as part of the transaction.
    pub fn run<D>(&self, name: impl AsRef<[u8]>) -> Run<D> {
        Run::new(self.asker(), name.as_ref())
    }

    /// The state under this prefix, as part of the transaction. Its snapshots are not: they are of many keys.
    pub fn exactly_once_state<T>(&self, prefix: impl AsRef<[u8]>) -> ExactlyOnceState<T> {
        ExactlyOnceState::new(self.asker(), prefix.as_ref())
    }

    /// The record under a key, with its remaining lifetime.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Record>, Error> {
        records::get(&*self.state, key).await
    }

    /// Writes fields and, if given, the record's lifetime, as [`StateStore::put`](crate::StateStore::put).
    pub async fn put(&self, key: &[u8], fields: &Fields, ttl: Option<Duration>) -> Result<(), Error> {
        records::put(&*self.state, key, fields, ttl).await
    }

    /// Removes a key; returns whether it existed.
    pub async fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.ask(cmd("DEL").arg(key)).await
    }

    /// One field's value.
    pub async fn get_field(&self, key: &[u8], field: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.ask(cmd("HGET").arg(key).arg(field)).await
    }

    /// Writes one field, or removes it if the value is `None`.
    pub async fn set_field(&self, key: &[u8], field: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        records::set_field(&*self.state, key, field, value).await
    }

    /// Writes some fields, and removes those without a value.
    pub async fn set_fields(&self, key: &[u8], fields: &Fields) -> Result<(), Error> {
        records::put(&*self.state, key, fields, None).await
    }

    /// Writes a field if it has the expected value; returns whether it did.
    pub async fn compare_and_swap(&self, key: &[u8], field: &[u8], expected: &[u8], new: &[u8]) -> Result<bool, Error> {
        records::compare_and_swap(&*self.state, key, field, expected, new).await
    }

    /// Changes a record if it has the expected values.
    pub async fn exchange(&self, key: &[u8], exchange: &Exchange) -> Result<Outcome, Error> {
        records::exchange(&*self.state, key, exchange).await
    }

    fn asker(&self) -> Arc<dyn Asker> {
        self.state.clone()
    }
}

const CONFLICT: &str = "CONFLICT";

impl State {
    fn connection(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection; none after the end.
    fn open_connection(&self) -> RedisResult<MultiplexedConnection> {
        self.connection().clone().ok_or_else(|| (ErrorKind::Client, "the transaction has ended").into())
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let reply = self.open_connection()?.req_packed_command(command).await;
        reply.and_then(Value::extract_error).inspect_err(|error| self.note(error))
    }

    fn is_in_conflict(&self) -> bool {
        self.conflict.load(SeqCst)
    }

    /// True when it cannot be committed any more.
    fn is_over(&self) -> bool {
        self.is_in_conflict() || self.moved().is_some()
    }

    fn moved(&self) -> MutexGuard<'_, Option<RedisError>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_moved(&self) -> Option<RedisError> {
        self.moved().take()
    }

    /// Records a conflict, or that the server follows another one.
    fn note(&self, error: &RedisError) {
        if error.code() == Some(CONFLICT) {
            self.conflict.store(true, SeqCst);
        }
        if let Error::NotWriter(error) = self.target.note(self.epoch, without_reply(error.clone())) {
            *self.moved() = Some(error);
        }
    }
}

impl Asker for State {
    fn needs(&self, _: &'static str) -> Result<(), Error> {
        Ok(()) // a server that has transactions has all of them
    }

    fn ask_value<'a>(&'a self, command: &'a Cmd) -> Answer<'a, Value> {
        Box::pin(
            async move { self.send(command).await.map_err(|error| self.target.note(self.epoch, without_reply(error))) },
        )
    }

    fn ask_waiting<'a>(&'a self, _: &'a Cmd, _: Duration) -> Answer<'a, Value> {
        Box::pin(async { Err(Error::CannotWait) })
    }
}

impl ConnectionLike for Transaction {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.state.send(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let mut connection = self.state.open_connection()?;
            let replies = connection.req_packed_commands(commands, offset, count).await;
            let replies = replies.inspect_err(|error| self.state.note(error))?;
            for reply in &replies {
                if let Value::ServerError(error) = reply {
                    self.state.note(&error.clone().into());
                }
            }
            Ok(replies)
        })
    }

    fn get_db(&self) -> i64 {
        self.state.db
    }
}

/// Grows with the attempts, and is randomized.
fn pause(tried: usize) -> Duration {
    let doublings = u32::try_from(tried - 1).unwrap_or(u32::MAX).min(PAUSE_DOUBLINGS_MAX);
    randomized(PAUSE * 2_u32.pow(doublings))
}
