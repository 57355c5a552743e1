//! The row of a command: all that is known about it but what it does to whom. `COMMAND`, key extraction, ACL
//! categories, the gates and the documentation all come from here.

use crate::commands;
use crate::context::{ReadCx, ScriptCx, ServerCx, WriteCx};
use crate::engine::Engine;
use crate::error::CommandResult;
use crate::keyspace::Key;
use crate::pure::numbers::parse_i64;
use hashbrown::HashTable;
use lua::ScriptFlags;
use resp::Request;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// One command or subcommand.
pub struct Command {
    /// In lower case; a subcommand without its container.
    pub name: &'static str,
    pub arity: Arity,
    pub keys: Keys,
    pub flags: Flags,
    pub handler: Handler,
    pub subcommands: &'static [Command],
    /// What it does with each group of keys, where that is not the usual for its kind.
    pub key_specs: &'static [KeySpec],
    /// Hints for clients, as in COMMAND INFO.
    pub tips: &'static [&'static str],
    /// ACL categories beyond those that follow from the family and the flags.
    pub categories: &'static [&'static str],
    /// True for a request that only removes: it is not refused when memory is short, though others of the command are.
    pub only_removes: Option<fn(Request<'_>) -> bool>,
    /// What the script or function that argument 1 stands for says of itself.
    pub declared: Option<Declared>,
}

/// Finds what a script or function says of itself, by the argument that stands for it; `None` when it says nothing.
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
    fn accepts(self, count: usize) -> bool {
        if self.0 >= 0 { count == self.0 as usize } else { count >= self.0.unsigned_abs() as usize }
    }
}

/// Where a command's keys are, which says what has to be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// It touches no key.
    None,
    /// Arguments `first` to `last` (counted from the end when negative), every `step`th.
    Range { first: u8, last: i8, step: u8 },
    /// Argument `at` says how many keys follow it; `also` is one more, where a result is kept.
    Counted { at: u8, also: Option<u8> },
    /// It may touch any key.
    Everything,
    /// It looks at any key, a shard at a time: it locks none up front (see [`ReadCx::shard`]).
    Walk,
}

/// One key at a fixed place.
pub const fn key(at: u8) -> Keys {
    Keys::Range { first: at, last: at as i8, step: 1 }
}

/// Several keys.
pub const fn keys(first: u8, last: i8, step: u8) -> Keys {
    Keys::Range { first, last, step }
}

/// As many keys as the argument before them says.
pub const fn counted(at: u8) -> Keys {
    Keys::Counted { at, also: None }
}

/// What a command does with one group of its keys, in the words of COMMAND INFO.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub flags: &'static [&'static str],
    pub first: u8,
    /// As COMMAND INFO has it: relative to `first`, or from the end when negative.
    pub last: i8,
    pub step: u8,
    /// The argument at `first` says how many keys follow it.
    pub counted: bool,
}

impl KeySpec {
    /// Keys from argument `first` on.
    pub const fn range(flags: &'static [&'static str], first: u8, last: i8, step: u8) -> KeySpec {
        KeySpec { flags, first, last, step, counted: false }
    }

    /// As many keys as argument `at` says, behind it.
    pub const fn counted(flags: &'static [&'static str], at: u8) -> KeySpec {
        KeySpec { flags, first: at, last: 0, step: 1, counted: true }
    }
}

/// Properties of a command; a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    pub const WRITE: Flags = Flags(1);
    pub const READONLY: Flags = Flags(1 << 1);
    /// May need more memory: refused when there is none.
    pub const DENYOOM: Flags = Flags(1 << 2);
    pub const ADMIN: Flags = Flags(1 << 3);
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    pub const LOADING: Flags = Flags(1 << 5);
    pub const STALE: Flags = Flags(1 << 6);
    pub const FAST: Flags = Flags(1 << 7);
    pub const NO_AUTH: Flags = Flags(1 << 8);
    pub const ALLOW_BUSY: Flags = Flags(1 << 9);
    pub const BLOCKING: Flags = Flags(1 << 10);
    pub const SKIP_MONITOR: Flags = Flags(1 << 11);
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 12);
    pub const PUBSUB: Flags = Flags(1 << 13);
    pub const NO_MULTI: Flags = Flags(1 << 14);
    pub const MOVABLE_KEYS: Flags = Flags(1 << 15);
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 16);
    pub const DANGEROUS: Flags = Flags(1 << 17);
    /// Looking at a key by this command is no use of it (OBJECT IDLETIME).
    pub const NO_TOUCH: Flags = Flags(1 << 18);

    /// Executed at once between MULTI and EXEC, where others are queued.
    pub const NOT_QUEUED: Flags = Flags(1 << 19);

    /// A client that has subscribed may say it, in RESP2 too.
    pub const WHILE_SUBSCRIBED: Flags = Flags(1 << 20);

    /// It may be given no key at all.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 21);

    /// Executes what MULTI has queued. Refused, it ends the transaction.
    pub const ENDS_QUEUE: Flags = Flags(1 << 22);

    /// Records values that it does not bring itself, but finds under its keys.
    pub const COPIES_VALUES: Flags = Flags(1 << 24);

    /// Has effects outside the keyspace, or may have some in it: read-only scripts may not call it, and CLIENT PAUSE WRITE
    /// holds it back.
    pub const MAY_REPLICATE: Flags = Flags(1 << 23);

    /// In the order of COMMAND INFO; flags without a name there are ours alone.
    pub const NAMES: &'static [(Flags, &'static str)] = &[
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::ALLOW_BUSY, "allow_busy"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::MOVABLE_KEYS, "movablekeys"),
    ];

    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The code behind a row. Read commands get a context that cannot write.
#[derive(Clone, Copy)]
pub enum Handler {
    Read(fn(&mut ReadCx<'_>) -> CommandResult),
    Write(fn(&mut WriteCx<'_>) -> CommandResult),
    /// Commands about the server or the connection: no keys locked for them.
    Server(fn(&mut ServerCx<'_>) -> CommandResult),
    /// Runs other commands, and sees to the locks for them itself.
    Script(fn(&mut ScriptCx<'_, '_>) -> CommandResult),
    /// Has subcommands and nothing else.
    Container,
}

const fn row(name: &'static str, arity: Arity, keys: Keys, flags: Flags, handler: Handler) -> Command {
    Command {
        name,
        arity,
        keys,
        flags,
        handler,
        subcommands: &[],
        key_specs: &[],
        tips: &[],
        categories: &[],
        only_removes: None,
        declared: None,
    }
}

/// A command that only looks at keys.
pub const fn read(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut ReadCx<'_>) -> CommandResult,
) -> Command {
    row(name, arity, keys, Flags::READONLY, Handler::Read(handler))
}

/// A command that may change keys.
pub const fn write(
    name: &'static str,
    arity: Arity,
    keys: Keys,
    handler: fn(&mut WriteCx<'_>) -> CommandResult,
) -> Command {
    row(name, arity, keys, Flags::WRITE, Handler::Write(handler))
}

/// A command about the server or the connection.
pub const fn server(name: &'static str, arity: Arity, handler: fn(&mut ServerCx<'_>) -> CommandResult) -> Command {
    row(name, arity, Keys::None, Flags(0), Handler::Server(handler))
}

/// A command that runs a script. The argument behind the script says how many keys follow it.
pub const fn script(name: &'static str, arity: Arity, handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult) -> Command {
    row(name, arity, Keys::None, Flags::MOVABLE_KEYS, Handler::Script(handler))
}

/// A command that changes what is defined beside the keys. It takes its locks when it knows what it wants.
pub const fn definition(
    name: &'static str,
    arity: Arity,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, Keys::Everything, Flags::WRITE, Handler::Script(handler))
}

/// A command that looks at what is spread over everything. It takes its locks when it knows what it wants.
pub const fn overview(
    name: &'static str,
    arity: Arity,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
) -> Command {
    row(name, arity, Keys::Everything, Flags::READONLY, Handler::Script(handler))
}

/// A command that has subcommands.
pub const fn container(name: &'static str, subcommands: &'static [Command]) -> Command {
    Command { subcommands, ..row(name, at_least(2), Keys::None, Flags(0), Handler::Container) }
}

impl Command {
    /// Adds flags.
    pub const fn flag(mut self, flags: Flags) -> Command {
        self.flags = self.flags.with(flags);
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

    /// But not a request for which this holds.
    pub const fn unless(mut self, only_removes: fn(Request<'_>) -> bool) -> Command {
        self.only_removes = Some(only_removes);
        self
    }

    /// Runs a script or function, of which this tells what it says of itself.
    pub const fn declares(mut self, declared: Declared) -> Command {
        self.declared = Some(declared);
        self
    }

    /// Records values that it finds under its keys.
    pub const fn copies_values(self) -> Command {
        self.flag(Flags::COPIES_VALUES)
    }

    /// Neither reads nor writes keys although its kind would say so: INFO, DEBUG…
    pub const fn not_data(mut self) -> Command {
        self.flags = Flags(self.flags.0 & !(Flags::READONLY.0 | Flags::WRITE.0));
        self
    }

    pub const fn with_subcommands(mut self, subcommands: &'static [Command]) -> Command {
        self.subcommands = subcommands;
        self
    }

    /// Names channels where others have keys: nothing is locked for them.
    pub const fn channels(mut self, keys: Keys, specs: &'static [KeySpec]) -> Command {
        self.keys = keys;
        self.key_specs = specs;
        self
    }

    pub const fn specs(mut self, specs: &'static [KeySpec]) -> Command {
        self.key_specs = specs;
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
}

/// A family of commands: one file of `commands`.
pub struct Family {
    /// The ACL category of its commands, without the `@`; empty when they have none of their own.
    pub category: &'static str,
    pub commands: &'static [Command],
}

/// A row in its place in the table.
pub struct Registered {
    pub command: &'static Command,
    /// Position in [`Registry::rows`]; the index of its counters.
    pub index: usize,
    /// `get`, `config|get`.
    pub full_name: String,
    pub family: &'static Family,
    /// The rows of its subcommands.
    pub subcommands: Vec<&'static Registered>,
    /// 1, or 2 for a subcommand: how many arguments its name takes.
    pub name_args: usize,
}

/// The table of all commands, with its index by name.
pub struct Registry {
    rows: Vec<&'static Registered>,
    by_name: HashTable<&'static Registered>,
}

/// The one table.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(commands::FAMILIES));
    &REGISTRY
}

impl Registry {
    fn new(families: &'static [&'static [Family]]) -> Registry {
        let mut registry = Registry { rows: Vec::new(), by_name: HashTable::new() };
        for family in families.iter().copied().flatten() {
            for command in family.commands {
                let subcommands = command
                    .subcommands
                    .iter()
                    .map(|sub| registry.add(sub, Some(command.name), family, Vec::new()))
                    .collect();
                let registered = registry.add(command, None, family, subcommands);
                registry.by_name.insert_unique(hash_of(command.name.as_bytes()), registered, |row| {
                    hash_of(row.command.name.as_bytes())
                });
            }
        }
        registry
    }

    /// Rows live as long as the process, so they are leaked once and referred to without counting.
    fn add(
        &mut self,
        command: &'static Command,
        container: Option<&str>,
        family: &'static Family,
        subcommands: Vec<&'static Registered>,
    ) -> &'static Registered {
        let full_name = match container {
            Some(container) => format!("{container}|{}", command.name),
            None => command.name.to_owned(),
        };
        let name_args = if container.is_some() { 2 } else { 1 };
        let registered = Box::leak(Box::new(Registered {
            command,
            index: self.rows.len(),
            full_name,
            family,
            subcommands,
            name_args,
        }));
        self.rows.push(registered);
        registered
    }

    /// All rows, subcommands before their container.
    pub fn rows(&self) -> &[&'static Registered] {
        &self.rows
    }

    /// All top-level commands.
    pub fn commands(&self) -> impl Iterator<Item = &'static Registered> {
        self.rows.iter().copied().filter(|row| row.name_args == 1)
    }

    /// The command of that name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Registered> {
        self.by_name.find(hash_of(name), |row| name.eq_ignore_ascii_case(row.command.name.as_bytes())).copied()
    }

    /// The row of a full name such as `config|get`.
    pub fn find_full(&self, name: &[u8]) -> Option<&'static Registered> {
        match memchr::memchr(b'|', name) {
            None => self.find(name),
            Some(bar) => self.find(&name[..bar])?.subcommand(&name[bar + 1..]),
        }
    }
}

fn hash_of(name: &[u8]) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    let mut lower = [0; 32];
    let len = name.len().min(lower.len());
    lower[..len].copy_from_slice(&name[..len]);
    lower[..len].make_ascii_lowercase();
    hasher.write(&lower[..len]);
    hasher.finish()
}

impl Registered {
    /// The subcommand of that name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Registered> {
        self.subcommands.iter().copied().find(|row| name.eq_ignore_ascii_case(row.command.name.as_bytes()))
    }

    /// True when a request only removes: see [`Command::only_removes`].
    #[cold]
    pub fn only_removes(&self, request: Request<'_>) -> bool {
        self.command.only_removes.is_some_and(|holds| holds(request))
    }

    /// True when a request of `count` arguments has the right number.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        self.command.arity.accepts(count)
    }

    /// Positions of the keys in a request. A count of keys that cannot be right stands for none: the handler refuses
    /// the request before it looks at any.
    pub fn key_positions(&self, request: Request<'_>) -> impl Iterator<Item = usize> + use<> {
        let count = request.len() as i64;
        let (also, first, last, step) = match self.command.keys {
            Keys::Range { first, last, step } => {
                let last = if last < 0 { count + i64::from(last) } else { i64::from(last) };
                (None, i64::from(first), last.min(count - 1), usize::from(step))
            }
            Keys::Counted { at, also } => {
                let given = request.iter().nth(usize::from(at)).and_then(parse_i64);
                let keys = given.filter(|keys| (1..count - i64::from(at)).contains(keys)).unwrap_or(0);
                (also, i64::from(at) + 1, i64::from(at) + keys, 1)
            }
            Keys::None | Keys::Everything | Keys::Walk => (None, 1, 0, 1),
        };
        also.into_iter().map(usize::from).chain((first..=last).step_by(step).map(|at| at as usize))
    }

    /// The keys of a request.
    pub fn keys<'a>(&self, request: Request<'a>) -> impl Iterator<Item = Key<'a>> + use<'a> {
        self.key_positions(request).map(move |at| Key::new(request.arg(at)))
    }

    /// What the command does with its keys: as its row says, or what is usual for its kind.
    pub fn key_specs(&self) -> Vec<KeySpec> {
        match self.command.keys {
            Keys::Range { first, last, step } if self.command.key_specs.is_empty() => {
                let flags: &[&str] = match self.command.handler {
                    Handler::Write(_) => &["RW", "update"],
                    _ => &["RO", "access"],
                };
                let last = if last < 0 { last } else { last - first as i8 };
                vec![KeySpec::range(flags, first, last, step)]
            }
            _ => self.command.key_specs.to_vec(),
        }
    }

    /// ACL categories, `@` included, as COMMAND INFO lists them.
    pub fn acl_categories(&self) -> Vec<String> {
        let flags = self.command.flags;
        let has = |category: &str| match category {
            // Nobody knows what a script does: those that promise not to write are no reads either.
            "read" => flags.has(Flags::READONLY) && !matches!(self.command.handler, Handler::Script(_)),
            "write" => flags.has(Flags::WRITE),
            "admin" => flags.has(Flags::ADMIN),
            "dangerous" => flags.has(Flags::ADMIN) || flags.has(Flags::DANGEROUS),
            "pubsub" => flags.has(Flags::PUBSUB),
            "blocking" => flags.has(Flags::BLOCKING),
            "fast" => flags.has(Flags::FAST),
            "slow" => !flags.has(Flags::FAST),
            _ => false,
        };
        let family = match self.command.handler {
            Handler::Container => "",
            _ => self.family.category,
        };
        ACL_CATEGORIES
            .iter()
            .filter(|name| has(name) || **name == family || self.command.categories.contains(name))
            .map(|name| format!("@{name}"))
            .collect()
    }
}

/// All ACL categories, in the order in which COMMAND INFO lists them.
pub const ACL_CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];
