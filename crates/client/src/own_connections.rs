//! Connections that one request or one transaction has to itself. Knows nothing of what they ask.
//!
//! A request that waits at the server holds up every other one on its connection, and every command on the connection of a
//! transaction belongs to it. Either has its connection for as long as it lasts. One that is dropped meanwhile takes its connection
//! with it: the server sees the end of it, gives the client nothing that no one would read, and rolls its transaction back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, ProtocolVersion, PushInfo};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::send::{send, without_reply};

/// The connections of a store beside the one that all requests share.
pub(crate) struct OwnConnections {
    client: Client,
    /// How long an answer may take, beside the wait of a request that waits.
    response_timeout: Duration,
    /// Connections that nobody uses: at most as many as were used at a time.
    idle: Mutex<Vec<MultiplexedConnection>>,
}

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

impl OwnConnections {
    pub(crate) fn new(client: Client, response_timeout: Duration) -> OwnConnections {
        OwnConnections { client, response_timeout, idle: Mutex::default() }
    }

    /// Sends a command that waits for so long. If the server is not there, or still reads its data, tries for as long to
    /// get the command to it.
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

    /// One for the caller alone.
    pub(crate) async fn take(&self) -> Result<MultiplexedConnection, Error> {
        if let Some(mut connection) = self.with_idle(Vec::pop) {
            connection.set_response_timeout(self.response_timeout);
            return Ok(connection);
        }
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(without_reply)
    }

    /// One that takes what the server sends by itself, which RESP2 has no way for.
    pub(crate) async fn attach(&self, pushes: UnboundedSender<PushInfo>) -> Result<MultiplexedConnection, Error> {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.response_timeout));
        let config = config.set_push_sender(pushes);
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(without_reply)
    }

    /// Gives one back on which nothing is under way.
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
            // The others were open to the same server, which is gone.
            Err(Error::Unavailable(_)) => self.close(),
            _ => self.give_back(connection),
        }
        reply
    }

    fn with_idle<T>(&self, change: impl FnOnce(&mut Vec<MultiplexedConnection>) -> T) -> T {
        change(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
