//! Where connections lead: to one server, or to the one of several that writes. Knows ROLE; refuses to know what else is
//! sent.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, Value, cmd};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::addresses::{Address, Known, RoleAnswer, SearchFailure};
use crate::error::{Error, is_by_follower};
use crate::pause::randomized;

/// The servers of a store.
pub(crate) enum Target {
    One(Box<Client>),
    Several(Box<Writer>),
}

/// The one of several servers that writes. It is found by asking all of them, and found again after it was lost.
pub(crate) struct Writer {
    make: MakeClient,
    /// How long a request waits for a writer.
    timeout: Duration,
    state: Mutex<State>,
    /// One search at a time.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    known: Known,
    /// `None` when it is to be found.
    current: Option<(Address, Client)>,
    /// Grows when the writer is to be found again. Connections of another epoch are not used any more.
    epoch: u64,
    checked_at: Instant,
    /// Those that wait for a search share its result.
    searches: u64,
    failure: Option<SearchFailure>,
}

/// Makes the client of one address.
type MakeClient = Box<dyn Fn(&Address) -> RedisResult<Client> + Send + Sync>;

/// How long one server of several may take to tell its role.
const ROLE_WITHIN: Duration = Duration::from_secs(2);
/// How often a server that writes is asked whether it still does, by a program that asks it for something. A write finds
/// out at once.
const ROLE_CHECK_EVERY: Duration = Duration::from_secs(2);
/// The pause between two attempts; with several servers it grows.
const PAUSE: Duration = Duration::from_millis(50);
const SEARCH_PAUSE_MAX: Duration = Duration::from_millis(500);

impl Target {
    pub(crate) fn has_several(&self) -> bool {
        matches!(self, Target::Several(_))
    }

    /// The client of the server to connect to, and the epoch.
    pub(crate) async fn client(&self) -> Result<(Client, u64), Error> {
        match self {
            Target::One(client) => Ok(((**client).clone(), 0)),
            Target::Several(writer) => Ok(writer.find().await?),
        }
    }

    /// Connects once to a single server, and names its address if that fails. A connection that retries would hide a
    /// wrong address.
    pub(crate) async fn reach(&self, within: Duration) -> Result<(), Error> {
        let Target::One(client) = self else { return Ok(()) };
        let config =
            AsyncConnectionConfig::new().set_response_timeout(Some(within)).set_connection_timeout(Some(within));
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Err(error)
                if error.is_connection_refusal() || error.kind() == ErrorKind::Io && !error.is_connection_dropped() =>
            {
                let address = client.get_connection_info().addr();
                let cause = format!("{address}: {error}");
                Err(Error::Unavailable((ErrorKind::Io, "cannot connect to", cause).into()))
            }
            // Other errors are of a server that exists. It may still load its data.
            _ => Ok(()),
        }
    }

    /// True when a connection of this epoch still leads where it should.
    pub(crate) async fn is_current(&self, epoch: u64, connection: &mut impl ConnectionLike) -> bool {
        match self {
            Target::One(_) => true,
            Target::Several(writer) => writer.is_current(epoch, connection).await,
        }
    }

    /// An error of a connection of this epoch, as the caller sees it. If it says that the server is lost, or follows
    /// another one, the writer is found again.
    pub(crate) fn note(&self, epoch: u64, error: Error) -> Error {
        let Target::Several(writer) = self else { return error };
        let error = match error {
            Error::Refused(refusal) if is_by_follower(&refusal) => Error::NotWriter(refusal),
            other => other,
        };
        if error.is_temporary() {
            writer.forget(epoch);
        }
        error
    }

    /// The longest that a request waits for a server, if it would wait for so long by itself.
    pub(crate) fn patience(&self, own: Duration) -> Duration {
        match self {
            Target::One(_) => own,
            Target::Several(writer) => own.max(writer.timeout),
        }
    }

    /// The pause before the next attempt, after so many.
    pub(crate) fn pause(&self, tried: u32) -> Duration {
        if !self.has_several() {
            return PAUSE;
        }
        randomized((PAUSE * 2_u32.pow(tried.min(8))).min(SEARCH_PAUSE_MAX))
    }
}

impl Writer {
    /// `make` makes the client of one address.
    pub(crate) fn new(
        addresses: Vec<Address>,
        timeout: Duration,
        make: impl Fn(&Address) -> RedisResult<Client> + Send + Sync + 'static,
    ) -> Writer {
        let (known, checked_at) = (Known::new(addresses), Instant::now());
        let state = State { known, current: None, epoch: 0, checked_at, searches: 0, failure: None };
        Writer { make: Box::new(make), timeout, state: Mutex::new(state), turn: tokio::sync::Mutex::default() }
    }

    async fn find(&self) -> Result<(Client, u64), Error> {
        let before = self.state().searches;
        if let Some(found) = self.state().found() {
            return Ok(found);
        }
        let _turn = self.turn.lock().await;
        {
            let state = self.state();
            if let Some(found) = state.found() {
                return Ok(found);
            }
            if let Some(failure) = state.failure.clone().filter(|_| state.searches != before) {
                return Err(failure.into());
            }
        }
        let asked = self.state().known.all();
        let answers = self.ask_all(&asked).await?;
        let mut state = self.state();
        answers.iter().for_each(|answer| state.known.learn(answer));
        state.searches += 1;
        state.checked_at = Instant::now();
        let Some(writer) = answers.iter().find(|answer| answer.is_writer) else {
            let failure = SearchFailure::of(&answers);
            state.failure = Some(failure.clone());
            return Err(failure.into());
        };
        let client = (self.make)(&writer.address)?;
        state.current = Some((writer.address.clone(), client.clone()));
        Ok((client, state.epoch))
    }

    /// Asks all servers at the same time. Returns the answers that have come when one of them writes, or else all, in
    /// the order of the addresses.
    async fn ask_all(&self, addresses: &[Address]) -> Result<Vec<RoleAnswer>, Error> {
        let mut asked = JoinSet::new();
        for address in addresses {
            let (address, client) = (address.clone(), (self.make)(address)?);
            asked.spawn(async move { ask_client(client, address).await });
        }
        let mut answers: Vec<RoleAnswer> = Vec::new();
        while let Some(answer) = asked.join_next().await {
            let Ok(answer) = answer else { continue }; // the runtime ends
            answers.push(answer);
            if answers.iter().any(|answer| answer.is_writer) {
                break;
            }
        }
        answers.sort_by_key(|answer| addresses.iter().position(|address| *address == answer.address));
        Ok(answers)
    }

    async fn is_current(&self, epoch: u64, connection: &mut impl ConnectionLike) -> bool {
        let address = {
            let mut state = self.state();
            let Some((address, _)) = state.current.clone().filter(|_| state.epoch == epoch) else { return false };
            if state.checked_at.elapsed() < ROLE_CHECK_EVERY {
                return true;
            }
            state.checked_at = Instant::now();
            address
        };
        let answer = ask_role(connection, address).await;
        if answer.has_role {
            self.state().known.learn(&answer);
        }
        if !answer.is_still_writer() {
            self.forget(epoch);
        }
        answer.is_still_writer()
    }

    fn forget(&self, epoch: u64) {
        let mut state = self.state();
        if state.epoch == epoch {
            state.epoch += 1;
            state.current = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn found(&self) -> Option<(Client, u64)> {
        self.current.as_ref().map(|(_, client)| (client.clone(), self.epoch))
    }
}

async fn ask_client(client: Client, address: Address) -> RoleAnswer {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ROLE_WITHIN));
    let config = config.set_connection_timeout(Some(ROLE_WITHIN));
    match timeout(ROLE_WITHIN, client.get_multiplexed_async_connection_with_config(&config)).await {
        Ok(Ok(mut connection)) => ask_role(&mut connection, address).await,
        Ok(Err(error)) => RoleAnswer::failed(address, error),
        Err(_) => RoleAnswer::failed(address, too_late()),
    }
}

async fn ask_role(connection: &mut impl ConnectionLike, address: Address) -> RoleAnswer {
    let reply = timeout(ROLE_WITHIN, cmd("ROLE").query_async::<Value>(connection)).await;
    RoleAnswer::read(address, reply.unwrap_or_else(|_| Err(too_late())))
}

fn too_late() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
