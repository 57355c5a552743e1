//! The state of a connection: one value for its requests, one for its client's input, one for its output, and one for
//! how it is to leave its worker. Knows which states exist and what each needs; refuses to know requests and buffers.
//!
//! They are separate because they change independently: a client may half-close while its command waits, its output is
//! held while the next request is read, and its worker may want to give it away at any time.

use super::transport::Transport;
use engine::clients::Account;
use engine::{Blocked, Event};
use std::pin::Pin;
use std::sync::Arc;

/// What the connection does with requests.
pub(crate) enum ConnectionState<T: Transport> {
    /// Executes requests as they arrive.
    Running,
    /// A command of this client waits, with or without a timeout.
    Blocked(Blocked, Option<Pin<Box<T::Timer>>>),
    /// CLIENT PAUSE or the load at the start delays the next request.
    Paused(Pin<Box<T::Timer>>),
    /// A limit of its user delays the next request. Meanwhile nothing is read.
    Delayed(Delay<T>),
    /// A long script holds a lock that the next request needs: it is retried when the task is woken.
    AwaitsScript,
    /// The command works in slices: its next slice runs in the connection's next turn.
    Yielding,
    /// Executes nothing more: sends the remaining output, then closes. This is the last state.
    Closing,
}

/// A delay by a limit of the client's user.
pub(crate) struct Delay<T: Transport> {
    pub(super) account: Arc<Account>,
    /// When it began and when it ends, on the monotonic clock.
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
    /// Ends when the connection is looked at again.
    pub(super) look: Pin<Box<T::Timer>>,
}

impl<T: Transport> ConnectionState<T> {
    #[inline]
    pub(super) fn is_running(&self) -> bool {
        matches!(self, ConnectionState::Running)
    }

    /// True when the state ends by itself, or by an action of another client.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(
            self,
            ConnectionState::Blocked(..)
                | ConnectionState::Paused(_)
                | ConnectionState::Delayed(_)
                | ConnectionState::AwaitsScript
        )
    }

    /// True when the next request is delayed: the client is not idle.
    pub(super) fn is_delayed(&self) -> bool {
        matches!(self, ConnectionState::Paused(_) | ConnectionState::Delayed(_) | ConnectionState::AwaitsScript)
    }

    /// True while a script of this client runs on the script thread.
    pub(super) fn runs_script(&self) -> bool {
        matches!(self, ConnectionState::Blocked(Blocked { event: Event::Background(_), .. }, _))
    }

    /// True when the command waits for the journal, a snapshot or another event for which the keeper wakes the worker.
    pub(super) fn awaits_keeper(&self) -> bool {
        match self {
            ConnectionState::Blocked(blocked, _) => {
                !matches!(blocked.event, Event::Never(_) | Event::Background(_) | Event::Value)
            }
            _ => false,
        }
    }

    /// True when a complete request is still to be executed or answered, even if its client sends no more.
    pub(super) fn has_request_in_flight(&self) -> bool {
        matches!(self, ConnectionState::Yielding | ConnectionState::AwaitsScript) || self.runs_script()
    }
}

/// Whether the client may still send requests.
pub(super) enum Incoming<T: Transport> {
    /// It may.
    Open,
    /// It may, though the server stops: the connection is closed if the client is silent until the timer ends.
    Draining(Pin<Box<T::Timer>>),
    /// It has closed, or half-closed, since this time of the monotonic clock: its requests are executed, then the connection
    /// ends.
    Ended { since_ns: u64 },
}

impl<T: Transport> Incoming<T> {
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Incoming::Ended { .. })
    }
}

/// Where the output of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// There is none, or the task sends it when the stream takes more.
    Idle,
    /// It is sent at the end of the tick.
    Queued,
    /// It waits for the journal. No request is executed meanwhile; `wakes` is set if one waits for that.
    Held { wakes: bool },
}

impl Flush {
    #[inline]
    pub(super) fn is_held(self) -> bool {
        matches!(self, Flush::Held { .. })
    }
}

/// How the connection is to leave its worker. Each is stronger than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    /// It stays.
    Stay,
    /// The worker has too many connections: this one moves to another when it has nothing in flight.
    Move,
    /// Its last replies were dropped, or its peer is gone: it sends the remaining output, then closes.
    Close,
    /// The stream has failed, or a limit is exceeded: it closes at once, and nothing more is sent.
    Abort,
}
