//! A request of a session with its number: the same words under the same number, however often it is sent. Refuses to
//! know how it is sent.

use std::fmt;
use std::sync::Arc;

use redis::{FromRedisValue, Value};

use crate::answer::Answer;
use crate::asker::read;
use crate::error::Error;

/// A request of a session, to send and to send again. Its words and its number cannot be changed, so a retry cannot send
/// other words under that number.
///
/// While it or a clone is held, the server keeps its reply, and the replies of all later requests of the session.
/// Dropping the last one abandons the request.
#[derive(Clone)]
pub struct PreparedRequest {
    request: Arc<dyn NumberedRequest>,
}

/// What a session knows of a request.
pub(crate) trait NumberedRequest: Send + Sync {
    fn id(&self) -> u64;
    fn command(&self) -> String;
    fn send(self: Arc<Self>) -> Answer<'static, Value>;
}

impl PreparedRequest {
    pub(crate) fn new(request: Arc<dyn NumberedRequest>) -> PreparedRequest {
        PreparedRequest { request }
    }

    /// Its number in the session. A program that stores it, with the session's name, before it sends the request, can
    /// send the same request after its own crash: [`Sessions::resume`](crate::Sessions::resume) and
    /// [`Session::prepare_as`](crate::Session::prepare_as).
    pub fn id(&self) -> u64 {
        self.request.id()
    }

    /// Sends it, and returns its reply: the first time it runs, and every other time the server returns the same reply
    /// and runs nothing. If connections are lost it is sent again for as long as the session retries; then it is
    /// [`Error::Unanswered`], which carries this request.
    pub async fn send<T: FromRedisValue>(&self) -> Result<T, Error> {
        read(self.request.clone().send().await?)
    }
}

impl fmt::Debug for PreparedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedRequest").field("id", &self.id()).field("command", &self.request.command()).finish()
    }
}
