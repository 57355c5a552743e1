//! The row of a command: all that is known about it, with the code behind it and its documentation.

use super::flags::Flags;
use super::key_spec::{KeyFlags, Keys};
use crate::context::{ReadCx, ScriptCx, ServerCx, WriteCx};
use crate::docs::{Argument, CommandDoc};
use crate::engine::Engine;
use crate::error::CommandResult;
use lua::ScriptFlags;
use resp::Request;
use smallvec::SmallVec;
use std::mem::offset_of;

/// One command or subcommand.
///
/// In this order, so that the fields that every request reads share one cache line.
#[repr(C)]
pub struct Command {
    /// In lower case; a subcommand without its container.
    pub name: &'static str,
    pub handler: Handler,
    pub flags: Flags,
    pub arity: Arity,
    pub keys: Keys,
    pub subcommands: &'static [Command],
    /// Hints for clients, as in COMMAND INFO.
    pub tips: &'static [&'static str],
    /// ACL categories beyond those that follow from the family and the flags.
    pub categories: &'static [&'static str],
    /// True for a request that only removes: it passes when memory is short, though other requests of the command are
    /// refused.
    pub only_removes: Option<fn(Request<'_>) -> bool>,
    /// True for a request that changes nothing, though other requests of the command do: it passes where those are
    /// refused.
    pub only_reads: Option<fn(Request<'_>) -> bool>,
    /// True for a request that changes nothing, though the command counts as one that writes, as in Redis: its reply may be
    /// replaced by an error.
    pub only_tells: Option<fn(Request<'_>) -> bool>,
    /// Finds the flags that the script or function in argument 1 declares.
    pub declared: Option<Declared>,
    /// It runs another command, whose request follows after so many arguments.
    pub calls_behind: Option<u8>,
    /// True for a request with a relative time: sent again later, it means something else.
    pub relative_time: Option<fn(Request<'_>) -> bool>,
    /// True for a request that may touch a database other than the selected one.
    pub crosses_databases: Option<fn(Request<'_>) -> bool>,
    /// True for a request that reads keys which it does not name.
    pub reaches_beyond: Option<fn(Request<'_>) -> bool>,
    /// The channels that a request names, for access control.
    pub names_channels: Option<Channels>,
    /// The databases that a request uses, where that is not the selected one alone, for access control.
    pub databases: Option<DatabasesUsed>,
    /// The keys and prefixes that a request searches without naming them as keys, for access control.
    pub searches: Option<fn(&Engine, Request<'_>) -> Vec<Searched>>,
    pub docs: CommandDoc,
}

/// Which arguments of a command are channels.
#[derive(Clone, Copy, Debug)]
pub struct Channels {
    pub first: usize,
    /// Only the first; otherwise all that follow, too.
    pub is_one: bool,
    pub are_patterns: bool,
}

/// Which databases a request uses. The functions return where it names them.
#[derive(Clone, Copy)]
pub enum DatabasesUsed {
    /// Those that it names.
    Named(fn(Request<'_>) -> SmallVec<[usize; 2]>),
    /// The selected one, and those that it names.
    SelectedAndNamed(fn(Request<'_>) -> SmallVec<[usize; 2]>),
    All,
}

/// What a request reaches besides the keys that it names.
#[derive(Clone, Debug)]
pub enum Searched {
    Key {
        name: Vec<u8>,
        access: Access,
    },
    /// All keys that begin so.
    Prefix {
        prefix: Vec<u8>,
        access: Access,
    },
    Channel(Vec<u8>),
    /// Any key at all; with the error for a user that may not read them all.
    Anything(&'static str),
}

/// What a request does with the keys that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    /// It reads and changes them.
    Change,
}

const _: () = assert!(offset_of!(Command, keys) + offset_of!(Keys, locks) < 64, "what every request reads is spread");

/// Rows with common properties.
pub struct Table {
    /// Their group in COMMAND DOCS.
    pub group: &'static str,
    /// Their ACL category, without the `@`; empty when they have none.
    pub category: &'static str,
    pub commands: &'static [Command],
}

/// Finds the flags that a script or function declares, given the argument that names it; `None` when it declares none.
pub type Declared = fn(&Engine, &[u8]) -> Option<ScriptFlags>;

/// How many arguments a command takes, its name (and its container's) included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity(pub i16);

/// Exactly so many.
pub const fn exactly(count: i16) -> Arity {
    Arity(count)
}

/// So many or more.
pub const fn at_least(count: i16) -> Arity {
    Arity(-count)
}

impl Arity {
    #[inline]
    pub fn accepts(self, count: usize) -> bool {
        if self.0 >= 0 { count == self.0 as usize } else { count >= self.0.unsigned_abs() as usize }
    }
}

/// The code behind a row. Read commands get a context that cannot write.
#[derive(Clone, Copy)]
pub enum Handler {
    Read(fn(&mut ReadCx<'_>) -> CommandResult),
    Write(fn(&mut WriteCx<'_>) -> CommandResult),
    /// Commands about the server or the connection: no keys locked for them.
    Server(fn(&mut ServerCx<'_>) -> CommandResult),
    /// Runs other commands, and takes their locks itself.
    Script(fn(&mut ScriptCx<'_, '_>) -> CommandResult),
    /// Has subcommands and nothing else.
    Container,
}

const fn row(name: &'static str, arity: Arity, keys: Keys, flags: Flags, handler: Handler) -> Command {
    Command {
        name,
        handler,
        flags: if keys.are_movable() { flags.union(Flags::MOVABLE_KEYS) } else { flags },
        arity,
        keys,
        subcommands: &[],
        tips: &[],
        categories: &[],
        only_removes: None,
        only_reads: None,
        only_tells: None,
        declared: None,
        calls_behind: None,
        relative_time: None,
        crosses_databases: None,
        reaches_beyond: None,
        names_channels: None,
        databases: None,
        searches: None,
        docs: CommandDoc::EMPTY,
    }
}

/// A command that only reads keys.
pub const fn read(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut ReadCx<'_>) -> CommandResult,
) -> Command {
    row(name, arity, keys.usually(KeyFlags::READ), Flags::READONLY, Handler::Read(handler))
}

/// A command that may change keys.
pub const fn write(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut WriteCx<'_>) -> CommandResult,
) -> Command {
    let keys = keys.usually(KeyFlags::RW.union(KeyFlags::UPDATE));
    row(name, arity, keys, Flags::WRITE, Handler::Write(handler))
}

/// A command about the server or the connection.
pub const fn server(name: &'static str, arity: Arity, handler: fn(&mut ServerCx<'_>) -> CommandResult) -> Command {
    row(name, arity, Keys::NONE, Flags::empty(), Handler::Server(handler))
}

/// A command that runs a script, to which these keys are given.
pub const fn script(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, keys.declared(), Flags::empty(), Handler::Script(handler))
}

/// A command that changes definitions (functions, indexes). It takes its locks itself, once it has parsed its
/// arguments.
pub const fn definition(
    name: &'static str,
    arity: Arity,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, Keys::EVERYTHING, Flags::WRITE, Handler::Script(handler))
}

/// Like `definition`, for commands with keys among their arguments.
pub const fn definition_on(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, keys.beside_everything(), Flags::WRITE, Handler::Script(handler))
}

/// A command that reads across all shards. It takes its locks itself, once it has parsed its arguments.
pub const fn overview(
    name: &'static str,
    arity: Arity,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, Keys::EVERYTHING, Flags::READONLY, Handler::Script(handler))
}

/// A command that shows definitions. It takes its locks itself, once it has parsed its arguments.
pub const fn catalogue(
    name: &'static str,
    arity: Arity,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, Keys::EVERYTHING, Flags::empty(), Handler::Script(handler))
}

/// A command that consists of its subcommands: see [`Command::with_subcommands`].
pub const fn container(name: &'static str) -> Command {
    row(name, at_least(2), Keys::NONE, Flags::empty(), Handler::Container)
}

impl Command {
    /// Adds flags.
    pub const fn flag(mut self, flags: Flags) -> Command {
        self.flags = self.flags.union(flags);
        self
    }

    /// Takes constant or logarithmic time.
    pub const fn fast(self) -> Command {
        self.flag(Flags::FAST)
    }

    /// Refused when memory is short.
    pub const fn grows_memory(self) -> Command {
        self.flag(Flags::DENYOOM)
    }

    /// Requests for which this is true pass even when memory is short.
    pub const fn unless(mut self, only_removes: fn(Request<'_>) -> bool) -> Command {
        self.only_removes = Some(only_removes);
        self
    }

    /// Requests for which this is true only read.
    pub const fn reads_if(mut self, only_reads: fn(Request<'_>) -> bool) -> Command {
        self.only_reads = Some(only_reads);
        self
    }

    /// Requests for which this is true change nothing, though they count as writes.
    pub const fn tells_if(mut self, only_tells: fn(Request<'_>) -> bool) -> Command {
        self.only_tells = Some(only_tells);
        self
    }

    /// Runs a script or function; `declared` finds its flags.
    pub const fn declares(mut self, declared: Declared) -> Command {
        self.declared = Some(declared);
        self
    }

    /// Runs another command, whose request follows after so many arguments.
    pub const fn calls_behind(mut self, arguments: u8) -> Command {
        self.calls_behind = Some(arguments);
        self
    }

    /// Uses databases other than the selected one.
    pub const fn uses_databases(mut self, databases: DatabasesUsed) -> Command {
        self.databases = Some(databases);
        self
    }

    /// Records values that it finds under its keys.
    pub const fn copies_values(self) -> Command {
        self.flag(Flags::COPIES_VALUES)
    }

    /// Neither reads nor writes keys, although its kind suggests it: INFO, DEBUG…
    pub const fn not_data(mut self) -> Command {
        self.flags = self.flags.difference(Flags::READONLY.union(Flags::WRITE));
        self
    }

    pub const fn with_subcommands(mut self, subcommands: &'static [Command]) -> Command {
        self.subcommands = subcommands;
        self
    }

    /// Names channels where other commands name keys: nothing is locked for them.
    pub const fn channels(mut self, channels: Keys) -> Command {
        self.keys = channels.channels();
        self
    }

    /// Requests for which this is true have a relative time.
    pub const fn relative_time(mut self, relative_time: fn(Request<'_>) -> bool) -> Command {
        self.relative_time = Some(relative_time);
        self
    }

    /// Requests for which this is true may touch another database.
    pub const fn crosses_databases(mut self, crosses_databases: fn(Request<'_>) -> bool) -> Command {
        self.crosses_databases = Some(crosses_databases);
        self
    }

    /// Requests for which this is true read keys that they do not name: everything is locked for them.
    pub const fn reaches_beyond(mut self, reaches_beyond: fn(Request<'_>) -> bool) -> Command {
        self.reaches_beyond = Some(reaches_beyond);
        self
    }

    /// The arguments from this one on are channels.
    pub const fn to_channels(mut self, first: usize) -> Command {
        self.names_channels = Some(Channels { first, is_one: false, are_patterns: false });
        self
    }

    /// The arguments from this one on are patterns of channels.
    pub const fn to_channel_patterns(mut self, first: usize) -> Command {
        self.names_channels = Some(Channels { first, is_one: false, are_patterns: true });
        self
    }

    /// This argument is a channel.
    pub const fn to_channel(mut self, at: usize) -> Command {
        self.names_channels = Some(Channels { first: at, is_one: true, are_patterns: false });
        self
    }

    /// A request searches these keys and prefixes.
    pub const fn searches(mut self, searches: fn(&Engine, Request<'_>) -> Vec<Searched>) -> Command {
        self.searches = Some(searches);
        self
    }

    pub const fn tips(mut self, tips: &'static [&'static str]) -> Command {
        self.tips = tips;
        self
    }

    pub const fn categories(mut self, categories: &'static [&'static str]) -> Command {
        self.categories = categories;
        self
    }

    /// Sets the first version of Redis with this command, and what it does, in one sentence.
    pub const fn doc(mut self, since: &'static str, summary: &'static str) -> Command {
        self.docs.since = since;
        self.docs.summary = summary;
        self
    }

    /// Like `doc`, for a command that Redis does not have: the version is the first of Holdfast with it.
    pub const fn own_doc(mut self, since: &'static str, summary: &'static str) -> Command {
        self.docs.is_own = true;
        self.doc(since, summary)
    }

    /// Like `own_doc`, for a command of Valkey that Redis does not have.
    pub const fn valkey_doc(mut self, valkey: &'static str, since: &'static str, summary: &'static str) -> Command {
        self.docs.valkey_since = Some(valkey);
        self.own_doc(since, summary)
    }

    /// Sets its group, where that differs from its table's.
    pub const fn group(mut self, group: &'static str) -> Command {
        self.docs.group = Some(group);
        self
    }

    pub const fn complexity(mut self, complexity: &'static str) -> Command {
        self.docs.complexity = Some(complexity);
        self
    }

    /// Not meant for applications.
    pub const fn system(mut self) -> Command {
        self.docs.doc_flags = &["syscmd"];
        self
    }

    pub const fn deprecated(mut self, since: &'static str, replaced_by: &'static str) -> Command {
        self.docs.doc_flags = &["deprecated"];
        self.docs.deprecated_since = Some(since);
        self.docs.replaced_by = Some(replaced_by);
        self
    }

    /// Versions and what they changed, oldest first.
    pub const fn history(mut self, history: &'static [(&'static str, &'static str)]) -> Command {
        self.docs.history = history;
        self
    }

    pub const fn arguments(mut self, arguments: &'static [Argument]) -> Command {
        self.docs.arguments = arguments;
        self
    }
}
