//! Errors of a store, grouped by what the caller can do about them.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerError};
use thiserror::Error;

use crate::addresses::NoWriter;
use crate::index_difference::{IndexDiffers, OutsideIndex};
use crate::lost::{Lost, LostSession};
use crate::prepared_request::PreparedRequest;

/// Why a request to a store failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The key does not hold a record; nothing was changed.
    #[error("the key is of another type: {0}")]
    WrongType(RedisError),
    /// The record would have no fields; nothing was sent.
    #[error("a record has at least one field, and none was given")]
    NoFields,
    /// No server accepts this lifetime; nothing was sent.
    #[error("a record cannot live for {0:?}: a lifetime is a millisecond or more, and ends before the year 100 000")]
    Lifetime(Duration),
    /// A claim or a sweep writes fields and removes none; nothing was sent.
    #[error("CLAIM and SWEEP write fields, and cannot remove one")]
    CannotRemove,
    /// An index of that name exists with another definition; nothing was changed.
    #[error("{0}")]
    IndexDiffers(Box<IndexDiffers>),
    /// The key of a job has none of the prefixes of its queue's indexes, so no worker would claim it; nothing was changed.
    #[error("{0}")]
    OutsideIndex(Box<OutsideIndex>),
    /// A queue does not have the groups that were asked for, or has no one index; nothing was changed.
    #[error("{0}")]
    Groups(String),
    /// A name that the cells or the branches of a store cannot have; nothing was sent.
    #[error("{0}")]
    Name(&'static str),
    /// The value has no encoded form; nothing was sent.
    #[error("the value cannot be encoded: {0}")]
    Encode(Box<dyn std::error::Error + Send + Sync>),
    /// Nothing waits in a transaction or in a session: waits, watches and `follow` are for a store. Nothing was sent.
    #[error("nothing waits in a transaction or in a session")]
    CannotWait,
    /// The command needs Holdfast, and the server does not have it; nothing was sent.
    #[error("this server does not know {0}, which is one of Holdfast's own commands")]
    NeedsHoldfast(&'static str),
    /// This worker no longer holds the job: its lease has ended, or another worker has finished it. Nothing was
    /// changed.
    #[error("{0}")]
    Lost(Box<Lost>),
    /// Another client's change conflicted with the transaction at each attempt. Nothing was changed.
    #[error("other clients changed what the transaction read, each of the {0} times it was tried")]
    Conflict(usize),
    /// [`StateStore::close`](crate::StateStore::close) or [`Session::close`](crate::Session::close) was called.
    #[error("the store or the session is closed")]
    Closed,
    /// The session is gone: it has expired, was closed or was deleted. Nothing is sent again in another session,
    /// because it might run twice: check what the request would have changed.
    #[error("{0}")]
    SessionLost(Box<LostSession>),
    /// A request of a session got no answer during all attempts. It may have run or not.
    /// [`request.send()`](PreparedRequest::send) sends the same words under the same number: it finds out, and runs the
    /// request at most once. Until the request is dropped, the server also keeps the replies of all later requests of
    /// the session.
    #[error("request {}: {cause}", request.id())]
    Unanswered {
        /// The request, to be sent again.
        request: PreparedRequest,
        /// Why there is no answer.
        cause: RedisError,
    },
    /// This number belongs to a request of this session already, so nothing was prepared. Send that
    /// [`PreparedRequest`] again.
    #[error("number {0} belongs to a request of this session already: send that one again")]
    RequestIdUsed(u64),
    /// There is no session of that name.
    #[error("there is no such session: {0}")]
    NoSession(RedisError),
    /// A request's number was used for another request of the session: two programs number requests in one session.
    #[error("the number was used for another request: {0}")]
    Mismatch(RedisError),
    /// The reply of a request was dropped, because the client had confirmed it. The request was not run again.
    #[error("the reply was dropped: {0}")]
    Evicted(RedisError),
    /// No answer: the server is unreachable, or too slow. A write may have been made or not. A compare-and-swap can be
    /// repeated safely: its answer and the record show what happened to the first one.
    #[error("no answer from the server: {0}")]
    Unavailable(RedisError),
    /// None of the servers of a list of addresses is the writer, for as long as the store has looked. Nothing was sent.
    #[error("none of the servers writes: {0}")]
    NoWriter(NoWriter),
    /// A server of a list of addresses follows another one, and no server has become the writer for as long as the store
    /// has tried. Nothing was changed.
    #[error("the server follows another one: {0}")]
    NotWriter(RedisError),
    /// The server refused the request, with its code and sentence (`NOAUTH`, `OOM`, `MISCONF`…); nothing was changed.
    #[error("the server refused: {0}")]
    Refused(RedisError),
    /// The answer does not fit the request.
    #[error("an answer has an unexpected form: {0}")]
    Reply(RedisError),
}

impl Error {
    /// True when the same request may succeed later: the server is unreachable, or still loads its data, or no server of
    /// several is the writer.
    pub fn is_temporary(&self) -> bool {
        let away = matches!(self, Error::Unavailable(_) | Error::Unanswered { .. });
        away || matches!(self, Error::NoWriter(_) | Error::NotWriter(_)) || self.is_loading()
    }

    /// The request that got no answer, to be sent again: the only way to retry it.
    pub fn request(&self) -> Option<&PreparedRequest> {
        match self {
            Error::Unanswered { request, .. } => Some(request),
            _ => None,
        }
    }

    /// True when the server refused because it still loads its data.
    pub(crate) fn is_loading(&self) -> bool {
        matches!(self, Error::Refused(error) if has(error, |reply| reason(reply) == "LOADING"))
    }
}

/// True when a server has refused a request because it is not the writer, or has just ceased to be. It was not executed.
pub(crate) fn is_by_follower(error: &RedisError) -> bool {
    has(error, |reply| match reason(reply) {
        "READONLY" | "MASTERDOWN" => true,
        "UNBLOCKED" => reply.details().is_some_and(|details| details.contains("instance state changed")),
        _ => false,
    })
}

/// True when the server has refused a request with the code ERR: the request does not fit what is there.
pub(crate) fn is_plain_refusal(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if has(refusal, |reply| reply.code() == "ERR"))
}

/// True when a claim has ended because an index that it waited for was dropped. Another one may be in its place.
pub(crate) fn is_dropped_index(error: &Error) -> bool {
    let was_dropped = |reply: &ServerError| reply.details().is_some_and(|details| details.ends_with("was dropped"));
    matches!(error, Error::Refused(refusal) if has(refusal, was_dropped))
}

/// The code of a reply; that of the reason for which EXEC has executed nothing.
fn reason(reply: &ServerError) -> &str {
    let because = || reply.details()?.strip_prefix("Transaction discarded because of: ")?.split(' ').next();
    match reply.code() {
        "EXECABORT" => because().unwrap_or("EXECABORT"),
        code => code,
    }
}

/// True when the error has such a reply of the server: that to a request, or to one of a pipeline. Of a MULTI whose
/// commands were refused, the code of the whole says EXECABORT, whatever the reason was.
fn has(error: &RedisError, is_it: impl Fn(&ServerError) -> bool) -> bool {
    let replies = error.clone().into_server_errors();
    replies.is_some_and(|replies| replies.iter().any(|(_, reply)| is_it(reply)))
}

impl From<RedisError> for Error {
    fn from(error: RedisError) -> Error {
        let has = |code: &str| has(&error, |reply| reply.code() == code);
        match error.kind() {
            ErrorKind::Io => Error::Unavailable(error),
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Error::Reply(error),
            // Another server has taken over. What was asked for last may have been done or not.
            _ if has("FENCED") => Error::Unavailable(error),
            _ if has("WRONGTYPE") => Error::WrongType(error),
            _ if has("NOSESSION") => Error::NoSession(error),
            _ if has("MISMATCH") => Error::Mismatch(error),
            _ if has("EVICTED") => Error::Evicted(error),
            _ => Error::Refused(error),
        }
    }
}
