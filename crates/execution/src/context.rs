//! What a handler works with: its arguments, its reply, the keys it locked. A read context has no way to write.

use super::recorder::Recorder;
use super::view::View;
use crate::args::Args;
use crate::client::Client;
use crate::command::CommandRow;
use crate::database_tokens::DatabaseToken;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::slices::TimeSlice;
use crate::waiting::Blocked;
use crate::worker::Worker;
use keyspace::Locked;
use keyspace::db::Db;
use keyspace::shard::Shard;
use resp::Reply;
use std::any::Any;

/// The context of a command that only reads.
pub struct ReadCx<'a> {
    pub settings: &'a Settings,
    /// Commands about data do not use it: see [`WholeServer`].
    pub(super) engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: View<'a>,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
    /// The time slice of a command that reads an index and may continue later: see [`ReadCx::leave`].
    pub slice: Option<TimeSlice<'a>>,
    /// The database token of an earlier slice.
    pub(super) token: Option<DatabaseToken>,
    /// No other command shares its locks: see [`ReadCx::begin_slice`].
    pub(super) is_alone: bool,
    /// It is called by a script or a function.
    pub in_script: bool,
}

/// The context of a command that may change keys.
pub struct WriteCx<'a> {
    pub settings: &'a Settings,
    /// Commands about data do not use it: see [`WholeServer`].
    pub(super) engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: Recorder<'a>,
    /// The instant of the command in unix microseconds; `keys.now_ms()` has it in milliseconds.
    pub now_us: u64,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
    /// It is called by a script or a function.
    pub in_script: bool,
}

/// Gives access to the engine, for commands that lock keys and report on the whole server, such as INFO, DEBUG and
/// WATCH. Commands about data do not need it: they have their keys and the settings.
pub trait WholeServer<'a> {
    /// The engine.
    fn server(&self) -> &'a Engine;
}

impl<'a> WholeServer<'a> for ReadCx<'a> {
    fn server(&self) -> &'a Engine {
        self.engine
    }
}

impl<'a> WholeServer<'a> for WriteCx<'a> {
    fn server(&self) -> &'a Engine {
        self.engine
    }
}

/// The context of a command about the server or its connection.
pub struct ServerCx<'a> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub worker: &'a mut Worker,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub now_ms: u64,
    pub command: &'static CommandRow,
    /// What the connection has to do after this command.
    pub after: After,
}

/// The context of a command that runs other commands.
pub struct ScriptCx<'a, 'l> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub worker: &'a mut Worker,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    /// The locks of the surrounding transaction, which holds all locks that it needs.
    pub held: Option<Locked<'l>>,
    pub command: &'static CommandRow,
    /// What the connection has to do after this command.
    pub after: After,
}

/// The thread on which a request that may run long starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartThread {
    /// The client's worker. The request can leave it.
    OnWorker,
    /// The script thread: the request has no step at which it could leave a worker.
    OnScriptThread,
}

/// What a server command asks of the connection.
#[derive(Default)]
pub enum After {
    #[default]
    Continue,
    Close,
    Block(Blocked),
    /// There is more to do: the connection yields, then executes the same request again, which continues.
    Again,
    /// It is about to run Lua and has done nothing yet. The same request is executed again on a stack that can leave
    /// the thread: see `execution::scripts::detached`.
    Detach(StartThread),
    /// It needs a lock that a long script holds, and has done nothing: the same request is executed again later.
    AwaitScript,
}

impl ScriptCx<'_, '_> {
    /// Keeps the progress for the next slice. Without a token the command has not looked at any key yet, and starts
    /// over.
    pub fn leave(&mut self, progress: impl Any + Send, token: Option<DatabaseToken>) {
        if let Some(token) = token {
            self.client.leave(progress, token);
        }
        self.after = After::Again;
    }
}

impl<'a> ReadCx<'a> {
    /// Begins the time slice of a command that can continue later, such as one that reads an index: see
    /// [`ReadCx::leave`]. `None` in a transaction or script, which cannot be interrupted.
    pub fn begin_slice(&self) -> Option<TimeSlice<'a>> {
        self.is_alone.then(|| TimeSlice::begin(self.engine))
    }
}

impl ReadCx<'_> {
    /// Takes the progress of the last slice, if this is not the first. An error if the database was replaced since.
    pub fn resume<P: Any>(&mut self) -> Result<Option<P>, CommandError> {
        let Some((progress, token)) = self.client.resume() else { return Ok(None) };
        token.pass(&self.keys.locked)?;
        self.token = Some(token);
        Ok(Some(progress))
    }

    /// Keeps the progress for the next slice. The handler writes no reply, and is executed again.
    pub fn leave(&mut self, progress: impl Any + Send) {
        let token = self.token.take();
        let token = token.unwrap_or_else(|| self.engine.databases.take_token(&self.keys.locked, self.keys.db));
        self.client.leave(progress, token);
    }

    /// The number of shards.
    pub fn shard_count(&self) -> usize {
        self.engine.keyspace.shard_count()
    }

    /// Reads the selected database in one shard, which is locked only during `look`. For commands whose keys are
    /// [`Locks::Walk`](crate::command::Locks::Walk): they hold no locks, unless a transaction or script
    /// holds all.
    pub fn shard<T>(&self, index: usize, look: impl FnOnce(&Db) -> T) -> T {
        self.whole_shard(index, |shard| look(shard.db(self.keys.db)))
    }

    /// Reads the selected database in one shard, as [`shard`](ReadCx::shard) does, after applying the pending changes
    /// of its indexes.
    pub fn shard_with_current_indexes<T>(&mut self, index: usize, look: impl FnOnce(&Db) -> T) -> T {
        let db = self.keys.db;
        if self.keys.locked.shards().next().is_some() {
            self.keys.locked.apply_pending(db);
            return self.shard(index, look);
        }
        match self.engine.keyspace.lock_shard_unless_busy(index) {
            Some(mut locked) => {
                self.keys.note_seen(locked.changed_by());
                locked.apply_pending(db);
                let (_, shard) = locked.shards().next().expect("the shard was just locked");
                look(shard.db(db))
            }
            None => {
                self.keys.met_busy.set(true);
                look(Shard::default().db(db))
            }
        }
    }

    /// Reads all databases of one shard, which is locked only during `look`.
    pub fn whole_shard<T>(&self, index: usize, look: impl FnOnce(&Shard) -> T) -> T {
        match self.keys.locked.shards().find(|(number, _)| *number == index) {
            Some((_, shard)) => look(shard),
            None => match self.engine.keyspace.lock_shard_unless_busy(index) {
                Some(locked) => {
                    self.keys.note_seen(locked.changed_by());
                    let (_, shard) = locked.shards().next().expect("the shard was just locked");
                    look(shard)
                }
                // An empty shard will do: the reply will be -BUSY.
                None => {
                    self.keys.met_busy.set(true);
                    look(&Shard::default())
                }
            },
        }
    }
}
