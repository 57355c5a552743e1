//! What a handler works with: its arguments, its reply, the keys it locked. A read context has no way to write.

use super::recorder::Recorder;
use super::view::View;
use crate::args::Args;
use crate::execution::client::Client;
use crate::execution::command::CommandRow;
use crate::execution::engine::Engine;
use crate::execution::indexes::Slice;
use crate::execution::waiting::Blocked;
use crate::execution::worker::Worker;
use crate::settings::Settings;
use keyspace::Locked;
use keyspace::db::Db;
use keyspace::shard::Shard;
use resp::Reply;

/// The context of a command that only looks.
pub struct ReadCx<'a> {
    pub settings: &'a Settings,
    /// Data commands do without it: see [`WholeServer`].
    pub(super) engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: View<'a>,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
    /// Of a command that reads an index and may go on later: it leaves what it has in `Client::unfinished`, writes no
    /// reply, and is executed again.
    pub slice: Option<Slice<'a>>,
    /// No other command shares its locks: see [`ReadCx::begin_slice`].
    pub(super) is_alone: bool,
    /// A script or a function calls it.
    pub in_script: bool,
}

/// The context of a command that may change keys.
pub struct WriteCx<'a> {
    pub settings: &'a Settings,
    /// Data commands do without it: see [`WholeServer`].
    pub(super) engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: Recorder<'a>,
    /// The instant of the command in unix microseconds; `keys.now_ms` has it in milliseconds.
    pub now_us: u64,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
    /// A script or a function calls it.
    pub in_script: bool,
}

/// For commands that look at keys and tell of the whole server, such as INFO, DEBUG and WATCH. Commands about data do
/// not need it: they have their keys and the settings.
pub(crate) trait WholeServer<'a> {
    /// All that the server has.
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

/// The context of a command about the server or its own connection.
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

/// The context of a command that runs others.
pub struct ScriptCx<'a, 'l> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub worker: &'a mut Worker,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    /// The locks of the transaction that it is part of, which has them all.
    pub held: Option<Locked<'l>>,
    /// What the connection has to do after this command.
    pub after: After,
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
}

impl<'a> ReadCx<'a> {
    /// The share of its thread that a command has which may go on later, as those that read an index: it leaves what it has in
    /// `Client::unfinished`, writes no reply, and is executed again. `None` in a transaction or script, where all has to be
    /// done at once.
    pub fn begin_slice(&self) -> Option<Slice<'a>> {
        self.is_alone.then(|| Slice::begin(self.engine))
    }
}

impl ReadCx<'_> {
    /// How many shards there are to walk over.
    pub fn shard_count(&self) -> usize {
        self.engine.keyspace.shard_count()
    }

    /// Reads the selected database in one shard, which is locked only during `look`. For commands whose keys are
    /// [`Locks::Walk`](crate::execution::command::Locks::Walk): they hold no locks, unless a transaction or script
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
