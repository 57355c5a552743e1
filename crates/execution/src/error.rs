//! What can be wrong with a request, with the exact error text for the wire.

use crate::denied::{Denied, Object};
use keyspace::types::ValueType;
use std::borrow::Cow;
use std::fmt;

/// The error for a wait or a work in progress that ends because the server has become a follower.
pub const DEMOTED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

/// Of AUTH and HELLO, whoever is asked: a server, or its Sentinel port.
pub const WRONG_PASS: CommandError =
    CommandError::fixed("WRONGPASS invalid username-password pair or user is disabled.");
pub const NO_PASSWORD_SET: CommandError = CommandError::fixed(
    "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?",
);
pub const HELLO_NEEDS_AUTH: CommandError = CommandError::fixed(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);
pub const BAD_NAME: CommandError =
    CommandError::fixed("ERR Client names cannot contain spaces, newlines or special characters.");

/// At a limit of the user: see `clients::account`.
pub const TOO_MANY_CLIENTS: CommandError = CommandError::fixed("LIMIT max number of clients of this user reached");
pub const REPLY_TOO_LONG: CommandError =
    CommandError::fixed("LIMIT the reply is longer than this user may get (limit:reply)");
pub const NO_MEMORY_LEFT: CommandError = CommandError::fixed(
    "LIMIT the clients of this user hold as much memory in buffers and transactions as they may (limit:memory)",
);

/// A refused command. Refusing changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    Syntax,
    /// With the name of the type that the key has.
    WrongType(&'static str),
    /// The arguments of an own command.
    Arguments(Box<ArgumentError>),
    NotInteger,
    NotFloat,
    NoSuchKey,
    OutOfMemory,
    NoAuth,
    Loading,
    /// A script has been running for long.
    Busy,
    /// A function has been running for long.
    BusyFunction,
    /// A long script holds a lock that the command needs. The command has changed nothing, and is executed again later.
    /// This is never sent to a client.
    AwaitsScript,
    /// A handler panicked before it changed anything.
    Internal,
    /// The user has no right to it.
    Denied(Box<Denied>),
    /// The row's name, `config|get` for a subcommand.
    WrongArity(Cow<'static, str>),
    /// Any other text, code first.
    Message(Cow<'static, str>),
}

/// Arguments that a command does not take. Its row completes the text: see [`crate::command::CommandRow::explain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// Without the code.
    pub text: String,
    pub hint: Hint,
}

/// What helps with arguments that a command does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Usage,
    /// The options that there are in place of the argument at this position.
    Options {
        at: usize,
    },
}

impl CommandError {
    /// The error for a key that holds a value of another type.
    #[cold]
    pub fn wrong_type(found: &ValueType) -> CommandError {
        CommandError::WrongType(found.name)
    }

    /// An error with a fixed text, which begins with its code, such as `ERR`.
    pub const fn fixed(text: &'static str) -> CommandError {
        CommandError::Message(Cow::Borrowed(text))
    }

    /// An error with a text made at run time.
    pub fn said(text: String) -> CommandError {
        CommandError::Message(Cow::Owned(text))
    }

    /// `EXPIRE` and related commands refuse a time that is out of range.
    pub fn invalid_expire(command: &str) -> CommandError {
        CommandError::said(format!("ERR invalid expire time in '{command}' command"))
    }

    /// The error for an unknown subcommand of a container.
    pub fn unknown_subcommand(container: &str, given: &[u8]) -> CommandError {
        let given = String::from_utf8_lossy(&given[..given.len().min(128)]).into_owned();
        let container = container.to_uppercase();
        CommandError::said(format!("ERR unknown subcommand '{given}'. Try {container} HELP."))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CommandError::Syntax => "ERR syntax error",
            CommandError::WrongType(_) => "WRONGTYPE Operation against a key holding the wrong kind of value",
            CommandError::NotInteger => "ERR value is not an integer or out of range",
            CommandError::NotFloat => "ERR value is not a valid float",
            CommandError::NoSuchKey => "ERR no such key",
            CommandError::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            CommandError::Loading => "LOADING Redis is loading the dataset in memory",
            CommandError::Busy | CommandError::AwaitsScript => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            }
            CommandError::BusyFunction => {
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
            }
            CommandError::Internal => {
                "ERR internal error: this command has met a bug and changed nothing; the server's log tells where"
            }
            CommandError::NoAuth => "NOAUTH Authentication required.",
            CommandError::Denied(denied) => {
                let code = if matches!(denied.object, Object::Anything(_)) { "ERR" } else { "NOPERM" };
                return write!(f, "{code} {}", denied.object.briefly(&denied.user));
            }
            CommandError::Arguments(wrong) => return write!(f, "ERR {}", wrong.text),
            CommandError::WrongArity(name) => {
                return write!(f, "ERR wrong number of arguments for '{name}' command");
            }
            CommandError::Message(text) => text,
        })
    }
}

impl std::error::Error for CommandError {}

/// What a handler returns: `Ok` when its reply is written, an error when nothing was changed.
pub type CommandResult = Result<(), CommandError>;

/// Formats an argument for an error text: shortened, on one line.
pub fn shown(arg: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    format!("'{}{}'", arg[..arg.len().min(BYTES_MAX)].escape_ascii(), if arg.len() > BYTES_MAX { "…" } else { "" })
}
