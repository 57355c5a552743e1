//! The connection that the requests of a store share, to its server or to the one of several that writes. Knows when a
//! request is sent again; refuses to know commands.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::send::without_reply;
use crate::target::Target;

/// The shared connection of a store.
pub(crate) struct Links {
    target: Arc<Target>,
    /// `None` when the store is closed.
    link: RwLock<Option<Link>>,
    /// One new connection at a time.
    turn: tokio::sync::Mutex<()>,
    response_timeout: Duration,
}

#[derive(Clone)]
struct Link {
    connection: ConnectionManager,
    epoch: u64,
}

impl Links {
    /// Connects. With several servers, waits for a writer; a single one that cannot be reached is an error at once.
    pub(crate) async fn connect(target: Arc<Target>, response_timeout: Duration) -> Result<Links, Error> {
        target.reach(response_timeout).await?;
        let (began, mut tried) = (Instant::now(), 0);
        let link = loop {
            match Link::make(&target, response_timeout).await {
                Err(error) if target.has_several() && error.is_temporary() => {
                    if began.elapsed() >= target.patience(response_timeout) {
                        return Err(error);
                    }
                }
                made => break made?,
            }
            sleep(target.pause(tried)).await;
            tried += 1;
        };
        let (link, turn) = (RwLock::new(Some(link)), tokio::sync::Mutex::default());
        Ok(Links { target, link, turn, response_timeout })
    }

    /// The connection, unless the store is closed.
    pub(crate) fn connection(&self) -> Result<ConnectionManager, Error> {
        Ok(self.link()?.connection)
    }

    /// Sends a request. With several servers, it is sent to the writer: again if the server has refused it because it is
    /// not the writer or still loads its data. A request whose answer is lost is not sent again.
    pub(crate) async fn run<T, F: Future<Output = Result<T, Error>>>(
        &self,
        request: impl Fn(ConnectionManager) -> F,
    ) -> Result<T, Error> {
        if !self.target.has_several() {
            return request(self.connection()?).await;
        }
        let (began, mut tried) = (Instant::now(), 0);
        loop {
            let error = match self.lead().await {
                Ok(link) => match request(link.connection).await.map_err(|error| self.target.note(link.epoch, error)) {
                    Err(error) if error.is_loading() || matches!(error, Error::NotWriter(_)) => error,
                    answer => return answer,
                },
                Err(error) if error.is_temporary() => error,
                Err(error) => return Err(error),
            };
            if began.elapsed() >= self.target.patience(self.response_timeout) {
                return Err(error);
            }
            sleep(self.target.pause(tried)).await;
            tried += 1;
        }
    }

    pub(crate) fn close(&self) {
        self.link.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn link(&self) -> Result<Link, Error> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)
    }

    /// The connection to the writer. It is found, and the connection made, if that is necessary.
    async fn lead(&self) -> Result<Link, Error> {
        let mut link = self.link()?;
        if self.target.is_current(link.epoch, &mut link.connection).await {
            return Ok(link);
        }
        // Those that come at the same time share one search.
        let (client, epoch) = self.target.client().await?;
        let _turn = self.turn.lock().await;
        let link = self.link()?;
        if link.epoch == epoch {
            return Ok(link);
        }
        let made = Link::to(client, epoch, &self.target, self.response_timeout).await?;
        let mut link = self.link.write().unwrap_or_else(PoisonError::into_inner);
        if link.is_none() {
            return Err(Error::Closed);
        }
        *link = Some(made.clone());
        Ok(made)
    }
}

impl Link {
    async fn make(target: &Target, response_timeout: Duration) -> Result<Link, Error> {
        let (client, epoch) = target.client().await?;
        Link::to(client, epoch, target, response_timeout).await
    }

    async fn to(client: Client, epoch: u64, target: &Target, response_timeout: Duration) -> Result<Link, Error> {
        let mut settings = ConnectionManagerConfig::new().set_response_timeout(Some(response_timeout));
        if target.has_several() {
            // The writer is somewhere else when this connection is lost.
            settings = settings.set_number_of_retries(0).set_connection_timeout(Some(response_timeout));
        }
        match client.get_connection_manager_with_config(settings).await {
            Ok(connection) => Ok(Link { connection, epoch }),
            Err(error) => Err(target.note(epoch, without_reply(error))),
        }
    }
}
