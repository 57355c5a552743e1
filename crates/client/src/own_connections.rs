//! Connections for the exclusive use of one request or transaction. Knows nothing of what they send.
//!
//! A request that waits at the server blocks every other request on its connection, and every command on the connection
//! of a transaction belongs to it. So each gets its own connection. A request that is dropped closes its connection:
//! the server notices, gives the client nothing that would be lost, and rolls its transaction back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, ProtocolVersion, PushInfo};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::send::{send, without_reply};
use crate::target::Target;

/// The connections of a store in addition to the shared one.
pub(crate) struct OwnConnections {
    target: Arc<Target>,
    /// How long an answer may take, in addition to the wait of a waiting request.
    response_timeout: Duration,
    /// Unused connections: at most as many as were used at a time.
    idle: Mutex<Vec<OwnConnection>>,
}

/// A connection for exclusive use.
pub(crate) struct OwnConnection {
    pub(crate) connection: MultiplexedConnection,
    /// Of the writer to which it leads.
    pub(crate) epoch: u64,
    /// Its number at the server, if that was asked for.
    pub(crate) client_id: Option<i64>,
}

impl OwnConnections {
    pub(crate) fn new(target: Arc<Target>, response_timeout: Duration) -> OwnConnections {
        OwnConnections { target, response_timeout, idle: Mutex::default() }
    }

    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// Sends a command that waits for this long. If the server is unreachable, still loads its data, or is not the
    /// writer, tries for as long to deliver the command; with several servers, at least for as long as for a writer.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd, wait: Duration) -> Result<T, Error> {
        let (began, mut tried) = (Instant::now(), 0);
        loop {
            let not_made = match self.take().await {
                Err(error) if error.is_temporary() => error,
                Err(error) => return Err(error),
                Ok(connection) => match self.send(connection, command, wait).await {
                    Err(error) if error.is_loading() || matches!(error, Error::NotWriter(_)) => error,
                    reply => return reply,
                },
            };
            if began.elapsed() >= self.target.patience(wait) {
                return Err(not_made);
            }
            sleep(self.target.pause(tried)).await;
            tried += 1;
        }
    }

    /// Closes the connections that are idle.
    pub(crate) fn close(&self) {
        self.with_idle(Vec::clear);
    }

    /// Takes a connection for exclusive use.
    pub(crate) async fn take(&self) -> Result<OwnConnection, Error> {
        while let Some(mut own) = self.with_idle(Vec::pop) {
            if self.target.is_current(own.epoch, &mut own.connection).await {
                own.connection.set_response_timeout(self.response_timeout);
                return Ok(own);
            }
        }
        let (client, epoch) = self.target.client().await?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => Ok(OwnConnection { connection, epoch, client_id: None }),
            Err(error) => Err(self.target.note(epoch, without_reply(error))),
        }
    }

    /// Opens a connection that receives push messages, which RESP2 does not have.
    pub(crate) async fn attach(&self, pushes: UnboundedSender<PushInfo>) -> Result<OwnConnection, Error> {
        let (client, epoch) = self.target.client().await?;
        let info = client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        let config = config.set_push_sender(pushes);
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => Ok(OwnConnection { connection, epoch, client_id: None }),
            Err(error) => Err(self.target.note(epoch, without_reply(error))),
        }
    }

    /// Returns a connection that has nothing in flight.
    pub(crate) fn give_back(&self, connection: OwnConnection) {
        self.with_idle(|idle| idle.push(connection));
    }

    /// How long the answer to a request that waits for this long may take.
    pub(crate) fn response_timeout_after(&self, wait: Duration) -> Duration {
        wait.saturating_add(self.response_timeout)
    }

    async fn send<T: FromRedisValue>(&self, mut own: OwnConnection, command: &Cmd, wait: Duration) -> Result<T, Error> {
        own.connection.set_response_timeout(self.response_timeout_after(wait));
        let reply = send(command, &mut own.connection).await;
        self.finish(own, reply)
    }

    /// Returns a connection whose request was answered, and closes it if there was no answer.
    pub(crate) fn finish<T>(&self, own: OwnConnection, reply: Result<T, Error>) -> Result<T, Error> {
        let reply = reply.map_err(|error| self.target.note(own.epoch, error));
        match &reply {
            // The other connections were open to the same server, which is gone.
            Err(Error::Unavailable(_)) => self.close(),
            _ => self.give_back(own),
        }
        reply
    }

    fn with_idle<T>(&self, change: impl FnOnce(&mut Vec<OwnConnection>) -> T) -> T {
        change(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
