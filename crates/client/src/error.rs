//! What can go wrong with a store, sorted by what its caller can do about it.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use thiserror::Error;

use crate::lost::Lost;

/// Why a request to a store failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The key holds something else than a record; nothing was changed.
    #[error("the key is of another type: {0}")]
    WrongType(RedisError),
    /// A record has at least one field; nothing was sent.
    #[error("a record has at least one field, and none was given")]
    NoFields,
    /// No server takes this lifetime; nothing was sent.
    #[error("a record cannot live for {0:?}: a lifetime is a millisecond or more, and ends before the year 100 000")]
    Lifetime(Duration),
    /// The command is Holdfast's, and the server at the other end does not know it; nothing was sent.
    #[error("this server does not know {0}, which is one of Holdfast's own commands")]
    NeedsHoldfast(&'static str),
    /// The job is not this worker's any more: its lease has ended, or it was ended by another. Nothing was changed.
    #[error("{0}")]
    Lost(Box<Lost>),
    /// A transaction met another client's change each time it was tried. Nothing was changed.
    #[error("other clients changed what the transaction read, each of the {0} times it was tried")]
    Conflict(usize),
    /// [`StateStore::close`](crate::StateStore::close) was called.
    #[error("the store is closed")]
    Closed,
    /// No answer: the server is away, or too slow. A write may have been made or not; a compare-and-swap can be
    /// repeated safely, and then shows by its answer and the record's content what became of the first one.
    #[error("no answer from the server: {0}")]
    Unavailable(RedisError),
    /// The server refused the request, with its code and sentence (`NOAUTH`, `OOM`, `MISCONF`…); nothing was changed.
    #[error("the server refused: {0}")]
    Refused(RedisError),
    /// An answer came that does not fit the request.
    #[error("an answer has an unexpected form: {0}")]
    Reply(RedisError),
}

impl Error {
    /// Whether the same request may succeed a little later: the server is away, or still reads its data.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Error::Unavailable(_)) || self.is_loading()
    }

    /// Whether the server refused because it still reads its data.
    pub(crate) fn is_loading(&self) -> bool {
        matches!(self, Error::Refused(error) if error.kind() == ErrorKind::Server(ServerErrorKind::BusyLoading))
    }
}

impl From<RedisError> for Error {
    fn from(error: RedisError) -> Error {
        let wrong_type = |error: &RedisError| {
            let errors = error.clone().into_server_errors();
            errors.is_some_and(|errors| errors.iter().any(|(_, error)| error.code() == "WRONGTYPE"))
        };
        match error.kind() {
            ErrorKind::Io => Error::Unavailable(error),
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Error::Reply(error),
            _ if wrong_type(&error) => Error::WrongType(error),
            _ => Error::Refused(error),
        }
    }
}
