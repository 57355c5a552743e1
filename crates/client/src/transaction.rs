//! Interactive transactions: commands that answer at once, read their own writes, and take effect together or not at
//! all. Holdfast only. Knows how a transaction begins, ends and is retried; refuses to know what its commands do.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value, cmd};
use tokio::time::sleep;

use crate::error::Error;
use crate::store::Store;

/// A transaction in progress. It is a connection for any command of the redis crate, so `AsyncCommands` work on it, and
/// [`Transaction::ask`] is for all others. Only commands whose keys are all arguments can be part of it; others are
/// refused, and the transaction continues. After its end, its commands are errors, and nothing is sent.
pub struct Transaction {
    connection: MultiplexedConnection,
    state: Arc<State>,
}

/// The state of a transaction.
#[derive(Default)]
struct State {
    /// The server has reported a conflict: it cannot be committed any more.
    conflict: AtomicBool,
    /// It is committed or rolled back, or about to be.
    ended: AtomicBool,
}

/// The first pause before a retry, which then doubles. It is randomized, so that clients with the same conflict spread
/// out.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_DOUBLINGS_MAX: u32 = 7;

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
    /// use holdfast_client::Error;
    /// use holdfast_client::redis::AsyncCommands;
    ///
    /// let moved = store
    ///     .transaction(10, |mut txn| async move {
    ///         let from: i64 = txn.get("account:1").await?;
    ///         if from < 100 {
    ///             return Ok(false);
    ///         }
    ///         let _: () = txn.decr("account:1", 100).await?;
    ///         let _: () = txn.incr("account:2", 100).await?;
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
        mut body: impl FnMut(Transaction) -> F,
    ) -> Result<T, E> {
        self.needs("txn.begin")?;
        self.connection()?; // unless the store is closed
        for tried in 0..tries {
            if tried > 0 {
                sleep(pause(tried)).await;
            }
            let transaction = self.begin().await?;
            let mut ending =
                Transaction { connection: transaction.connection.clone(), state: transaction.state.clone() };
            let outcome = body(transaction).await;
            ending.state.ended.store(true, SeqCst);
            let failed = outcome.is_err() || ending.is_in_conflict();
            let ended = ending.end(if failed { "TXN.ROLLBACK" } else { "TXN.COMMIT" }).await;
            let conflict = ending.is_in_conflict();
            // A connection that does not answer as expected is dropped, and the server rolls back when it is closed.
            if ended.is_ok() || conflict && !failed {
                self.own_connections.give_back(ending.connection);
            }
            match ended {
                _ if conflict => continue,
                Err(error) if !failed => return Err(error.into()),
                _ => return outcome,
            }
        }
        Err(Error::Conflict(tries).into())
    }

    async fn begin(&self) -> Result<Transaction, Error> {
        let begin = async |connection: MultiplexedConnection| {
            let mut transaction = Transaction { connection, state: Arc::default() };
            transaction.ask::<()>(&cmd("TXN.BEGIN")).await.map(|()| transaction)
        };
        match begin(self.own_connections.take().await?).await {
            // It was idle while the server restarted, and so were the others.
            Err(Error::Unavailable(_)) => {
                self.own_connections.close();
                begin(self.own_connections.take().await?).await
            }
            begun => begun,
        }
    }
}

impl Transaction {
    /// Sends a command and reads its answer.
    pub async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Error> {
        Ok(command.query_async(self).await?)
    }

    /// Commits the transaction or rolls it back.
    async fn end(&mut self, command: &str) -> Result<(), Error> {
        let ended = self.connection.req_packed_command(&cmd(command)).await;
        self.noted(ended)?;
        Ok(())
    }

    /// Records a conflict in a reply.
    fn noted(&self, reply: RedisResult<Value>) -> RedisResult<Value> {
        reply.and_then(Value::extract_error).inspect_err(|error| self.note(error))
    }

    fn is_in_conflict(&self) -> bool {
        self.state.conflict.load(SeqCst)
    }

    fn note(&self, error: &RedisError) {
        if error.code() == Some(CONFLICT) {
            self.state.conflict.store(true, SeqCst);
        }
    }

    /// Nothing is sent after the end: another user may have the connection by then.
    fn check(&self) -> Result<(), RedisError> {
        match self.state.ended.load(SeqCst) {
            true => Err((ErrorKind::Client, "the transaction has ended").into()),
            false => Ok(()),
        }
    }
}

const CONFLICT: &str = "CONFLICT";

impl ConnectionLike for Transaction {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            self.check()?;
            let reply = self.connection.req_packed_command(command).await;
            self.noted(reply)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            self.check()?;
            let replies = self.connection.req_packed_commands(commands, offset, count).await;
            let replies = replies.inspect_err(|error| self.note(error))?;
            let is_conflict = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == CONFLICT);
            self.state.conflict.fetch_or(replies.iter().any(is_conflict), SeqCst);
            Ok(replies)
        })
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

/// Grows with the attempts, and is randomized.
fn pause(tried: usize) -> Duration {
    let doublings = u32::try_from(tried - 1).unwrap_or(u32::MAX).min(PAUSE_DOUBLINGS_MAX);
    let longest = PAUSE * 2_u32.pow(doublings);
    longest / 2 + longest.mul_f64(spread()) / 2
}

/// A random number from 0 to 1.
fn spread() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}
