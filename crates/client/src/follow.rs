//! A reader that follows a run: every event once and in order, across outages of the server. Holdfast only. Refuses to
//! know what an event means.

use std::time::Duration;
use std::vec;

use redis::{ErrorKind, FromRedisValue};
use tokio::time::sleep;

use crate::error::Error;
use crate::event::Event;
use crate::run::{Lag, Run};

/// The events of a run as they come.
pub struct Follow<D> {
    run: Run<D>,
    /// The last event that [`next`](Follow::next) has returned.
    position: u64,
    page: vec::IntoIter<Event<D>>,
    page_size: usize,
    /// A page was returned whole, and `on_lag` was not called for it yet.
    is_page_over: bool,
    on_lag: Option<OnLag>,
    on_retry: Option<OnRetry>,
}

type OnLag = Box<dyn FnMut(Lag) + Send>;
type OnRetry = Box<dyn FnMut(&Error) + Send>;

/// How long one wait at the server lasts.
const WAIT: Duration = Duration::from_secs(5);
/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(100);
const PAGE: usize = 1000;

impl<D: FromRedisValue> Run<D> {
    /// Follows the run after this event, 0 for all: [`Follow::next`] returns the existing events and then each new one.
    /// The run need not exist yet.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// let run = store.run::<String>("run:42");
    /// let mut events = run.follow(0).on_lag(|lag| println!("{} events behind, {:?}", lag.events, lag.age));
    /// loop {
    ///     let event = events.next().await?;
    ///     println!("{}: {}", event.run_seq, event.event_type.escape_ascii());
    /// }
    /// # }
    /// ```
    pub fn follow(&self, after: u64) -> Follow<D> {
        Follow {
            run: self.clone(),
            position: after,
            page: Vec::new().into_iter(),
            page_size: PAGE,
            is_page_over: false,
            on_lag: None,
            on_retry: None,
        }
    }
}

impl<D: FromRedisValue> Follow<D> {
    /// Calls this after each page of events, when all of them were returned, with how far the reader is behind then:
    /// the place for a metric. It costs up to three small requests for each page.
    #[must_use]
    pub fn on_lag(mut self, hook: impl FnMut(Lag) + Send + 'static) -> Follow<D> {
        self.on_lag = Some(Box::new(hook));
        self
    }

    /// Calls this with the error whenever the server does not answer, before it is tried again.
    #[must_use]
    pub fn on_retry(mut self, hook: impl FnMut(&Error) + Send + 'static) -> Follow<D> {
        self.on_retry = Some(Box::new(hook));
        self
    }

    /// How many events are read at a time, at least one; 1,000 otherwise.
    #[must_use]
    pub fn page_size(mut self, events: usize) -> Follow<D> {
        self.page_size = events.max(1);
        self
    }

    /// The last event that was returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Waits for the next event. While the server is away it tries again, for as long as it takes. It may be dropped at
    /// any time: no event is lost. A run that was deleted and made anew with fewer events is [`Error::Refused`].
    pub async fn next(&mut self) -> Result<Event<D>, Error> {
        loop {
            if let Some(event) = self.page.next() {
                if event.run_seq != self.position + 1 {
                    let gap = (ErrorKind::UnexpectedReturnType, "an event is not the successor of the one before it");
                    return Err(Error::Reply(gap.into()));
                }
                self.position = event.run_seq;
                self.is_page_over = self.page.len() == 0;
                return Ok(event);
            }
            if let Err(error) = self.read_on().await {
                if !error.is_temporary() {
                    return Err(error);
                }
                self.on_retry.iter_mut().for_each(|hook| hook(&error));
                sleep(PAUSE).await;
            }
        }
    }

    async fn read_on(&mut self) -> Result<(), Error> {
        if self.is_page_over {
            if let Some(hook) = &mut self.on_lag {
                hook(self.run.lag(self.position).await?);
            }
            self.is_page_over = false;
        }
        self.page = self.run.wait_for_events(self.position, self.page_size, WAIT).await?.into_iter();
        Ok(())
    }
}
