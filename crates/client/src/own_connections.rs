//! Connections for the exclusive use of one request or transaction. Knows nothing of what they send.
//!
//! A request that waits at the server blocks every other request on its connection, and every command on the connection
//! of a transaction belongs to it. So each gets its own connection. A request that is dropped closes its connection:
//! the server notices, gives the client nothing that would be lost, and rolls its transaction back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, ProtocolVersion, PushInfo};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::send::{send, without_reply};

/// The connections of a store in addition to the shared one.
pub(crate) struct OwnConnections {
    client: Client,
    /// How long an answer may take, in addition to the wait of a waiting request.
    response_timeout: Duration,
    /// Unused connections: at most as many as were used at a time.
    idle: Mutex<Vec<MultiplexedConnection>>,
}

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

impl OwnConnections {
    pub(crate) fn new(client: Client, response_timeout: Duration) -> OwnConnections {
        OwnConnections { client, response_timeout, idle: Mutex::default() }
    }

    /// Sends a command that waits for this long. If the server is unreachable, or still loads its data, tries for as
    /// long to deliver the command.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd, wait: Duration) -> Result<T, Error> {
        let began = Instant::now();
        loop {
            let not_made = match self.take().await {
                Err(error) if error.is_temporary() => error,
                Err(error) => return Err(error),
                Ok(connection) => match self.send(connection, command, wait).await {
                    Err(error) if error.is_loading() => error,
                    reply => return reply,
                },
            };
            if began.elapsed() >= wait {
                return Err(not_made);
            }
            sleep(PAUSE).await;
        }
    }

    /// Closes the connections that are idle.
    pub(crate) fn close(&self) {
        self.with_idle(Vec::clear);
    }

    /// Takes a connection for exclusive use.
    pub(crate) async fn take(&self) -> Result<MultiplexedConnection, Error> {
        if let Some(mut connection) = self.with_idle(Vec::pop) {
            connection.set_response_timeout(self.response_timeout);
            return Ok(connection);
        }
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(without_reply)
    }

    /// Opens a connection that receives push messages, which RESP2 does not have.
    pub(crate) async fn attach(&self, pushes: UnboundedSender<PushInfo>) -> Result<MultiplexedConnection, Error> {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        let config = config.set_push_sender(pushes);
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(without_reply)
    }

    /// Returns a connection that has nothing in flight.
    pub(crate) fn give_back(&self, connection: MultiplexedConnection) {
        self.with_idle(|idle| idle.push(connection));
    }

    async fn send<T: FromRedisValue>(
        &self,
        mut connection: MultiplexedConnection,
        command: &Cmd,
        wait: Duration,
    ) -> Result<T, Error> {
        connection.set_response_timeout(wait.saturating_add(self.response_timeout));
        let reply = send(command, &mut connection).await;
        match &reply {
            // The other connections were open to the same server, which is gone.
            Err(Error::Unavailable(_)) => self.close(),
            _ => self.give_back(connection),
        }
        reply
    }

    fn with_idle<T>(&self, change: impl FnOnce(&mut Vec<MultiplexedConnection>) -> T) -> T {
        change(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
