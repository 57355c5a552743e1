//! What a connection does after a request.

use crate::waiting::Blocked;

/// What the connection does after a request.
pub enum Flow {
    /// Continue with the next request.
    Continue,
    /// Send the pending output, then close the connection.
    Close,
    /// Wait. There is no reply yet.
    Block(Blocked),
    /// Keep the request and try again at this time (unix ms), or when woken.
    Paused(u64),
    /// Keep the request, yield to other connections, then execute it again to continue.
    Again,
    /// Keep the request and execute it again when woken: a long script holds a lock that it needs.
    AwaitScript,
}
