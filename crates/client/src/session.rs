//! An open session: requests that each run once however often they are sent, and requests from the server to a client.
//! Holdfast only. Knows when a request is retried and how a session is renewed; refuses to know what a request does.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, PushInfo, PushKind, Value, cmd};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

use crate::answer::Answer;
use crate::asker::{Asker, read};
use crate::cell::{Cell, Version, get_cells};
use crate::encode::Encode;
use crate::error::Error;
use crate::exactly_once::ExactlyOnceState;
use crate::exchange::{Exchange, Outcome};
use crate::lost::LostSession;
use crate::own_connections::OwnConnection;
use crate::prepared_request::{NumberedRequest, PreparedRequest};
use crate::record::{Fields, Record};
use crate::records;
use crate::request_numbers::{Insistence, RequestNumbers};
use crate::run::Run;
use crate::send::send;
use crate::session_requests::{PendingRequest, PushedRequest, SessionInfo, pending_command};
use crate::store::Store;

/// Runs each request once, even if connections are lost or the server is killed: a request has a number, and is sent
/// again under that number until its reply arrives. Records, cells, runs and exactly-once state of a session are asked
/// through it, one request for each call; [`call`](Session::call) is for all other commands.
///
/// Requests are not queued: clones share the session, and several requests may be in flight. An idle session is renewed
/// in the background, until all clones are dropped.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// use holdfast_client::redis::Cmd;
/// use holdfast_client::{Error, SessionConfig};
///
/// let session = store.sessions().open(&SessionConfig::default()).await?;
/// session.cell::<String>("status").set(&"open".to_owned()).await?; // sets it once
/// let visits: i64 = match session.call(&Cmd::incr("visits", 1)).await {
///     Ok(visits) => visits, // counted once, over lost connections and restarts of the server
///     Err(Error::Unanswered { request, .. }) => request.send().await?, // the same request: it never counts twice
///     Err(Error::SessionLost(lost)) if lost.maybe_applied => panic!("{lost}"), // look at what it changes
///     Err(error) => return Err(error),
/// };
/// session.close().await?;
/// # let _ = visits;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    id: Vec<u8>,
    retry_for: Duration,
    numbers: Mutex<RequestNumbers>,
    /// When the session was last renewed by a request.
    renewed_at: Mutex<Instant>,
    closed: AtomicBool,
    lost: AtomicBool,
}

/// How long an attached connection may be silent before the client pings the server.
const SILENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts to attach.
const PAUSE: Duration = Duration::from_millis(50);

impl Session {
    pub(crate) fn new(store: Store, id: Vec<u8>, next_request_id: u64, ttl: Duration, retry_for: Duration) -> Session {
        let inner = Arc::new(Inner {
            store,
            id,
            retry_for,
            numbers: Mutex::new(RequestNumbers::new(next_request_id)),
            renewed_at: Mutex::new(Instant::now()),
            closed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
        });
        tokio::spawn(keep_alive(Arc::downgrade(&inner), ttl / 3));
        Session { inner }
    }

    /// Its name, which is also its key.
    pub fn id(&self) -> &[u8] {
        &self.inner.id
    }

    /// The number of the next request. A program that stores it with the session's name before it calls can continue
    /// after its own crash: [`Sessions::resume`](crate::Sessions::resume), and the same call again.
    pub fn next_request_id(&self) -> u64 {
        self.inner.numbers().following()
    }

    /// Runs a command once, and returns its reply. If connections are lost it is sent again under its number, for as
    /// long as the session retries; then it is [`Error::Unanswered`], and `request.send()` of that error is the way to
    /// try again. A dropped call is abandoned: it may run or not.
    pub async fn call<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.prepare(command).send().await
    }

    /// Gives a command the next number, and sends nothing: the request can be sent, and sent again, under that number.
    pub fn prepare(&self, command: &Cmd) -> PreparedRequest {
        let id = self.inner.numbers().begin();
        self.numbered(id, command, false)
    }

    /// Prepares a request of an earlier program under the number that it had there: after
    /// [`Sessions::resume`](crate::Sessions::resume) with that number or a higher one. If it has run,
    /// [`PreparedRequest::send`] returns its reply, else it runs. Prepare such requests before the session sends others,
    /// which would tell the server that the earlier replies are not needed.
    ///
    /// A number that this program has given itself is [`Error::RequestIdUsed`]: its request can be sent again. Another
    /// command than the one that ran under the number is [`Error::Mismatch`], and does not run.
    pub fn prepare_as(&self, request_id: u64, command: &Cmd) -> Result<PreparedRequest, Error> {
        match self.inner.numbers().begin_again(request_id) {
            true => Ok(self.numbered(request_id, command, true)),
            false => Err(Error::RequestIdUsed(request_id)),
        }
    }

    /// The cell with this name. Each of its operations is a request of the session.
    pub fn cell<T>(&self, name: impl AsRef<[u8]>) -> Cell<T> {
        Cell::new(self.asker(), name.as_ref())
    }

    /// The values of several cells as they all were at one instant, in the order of the names.
    pub async fn get_cells<T: FromRedisValue>(
        &self,
        names: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Option<Version<T>>>, Error> {
        get_cells(self, names).await
    }

    /// The run with this name. Each of its operations is a request of the session.
    pub fn run<D>(&self, name: impl AsRef<[u8]>) -> Run<D> {
        Run::new(self.asker(), name.as_ref())
    }

    /// The state under this prefix. Each of its operations is a request of the session.
    pub fn exactly_once_state<T>(&self, prefix: impl AsRef<[u8]>) -> ExactlyOnceState<T> {
        ExactlyOnceState::new(self.asker(), prefix.as_ref())
    }

    /// The record under a key, with its remaining lifetime.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Record>, Error> {
        records::get(self, key).await
    }

    /// Writes fields and, if given, the record's lifetime, once, as [`StateStore::put`](crate::StateStore::put).
    pub async fn put(&self, key: &[u8], fields: &Fields, ttl: Option<Duration>) -> Result<(), Error> {
        records::put(self, key, fields, ttl).await
    }

    /// Removes a key, once; returns whether it existed.
    pub async fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.call(cmd("DEL").arg(key)).await
    }

    /// One field's value.
    pub async fn get_field(&self, key: &[u8], field: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.call(cmd("HGET").arg(key).arg(field)).await
    }

    /// Writes one field, once, or removes it if the value is `None`.
    pub async fn set_field(&self, key: &[u8], field: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        records::set_field(self, key, field, value).await
    }

    /// Writes some fields, once, and removes those without a value.
    pub async fn set_fields(&self, key: &[u8], fields: &Fields) -> Result<(), Error> {
        records::put(self, key, fields, None).await
    }

    /// Writes a field if it has the expected value, once; returns whether it did. A lost answer is asked for again, so
    /// unlike that of a store this swap never fails because of its own success.
    pub async fn compare_and_swap(&self, key: &[u8], field: &[u8], expected: &[u8], new: &[u8]) -> Result<bool, Error> {
        records::compare_and_swap(self, key, field, expected, new).await
    }

    /// Changes a record if it has the expected values, once.
    pub async fn exchange(&self, key: &[u8], exchange: &Exchange) -> Result<Outcome, Error> {
        records::exchange(self, key, exchange).await
    }

    /// Pushes a request to another session, once. Returns its number there.
    pub async fn push(&self, session_id: impl AsRef<[u8]>, payload: impl Encode) -> Result<u64, Error> {
        self.call(cmd("SESSION.PUSH").arg(session_id.as_ref()).arg(payload.encode()?)).await
    }

    /// The unacknowledged requests that were pushed to this session: after this one, at most `limit`.
    pub async fn pending(&self, after: u64, limit: usize) -> Result<Vec<PendingRequest>, Error> {
        let pending = pending_command(self.id(), after, limit);
        self.inner.insist(&mut self.inner.insistence(), None, || pending.clone()).await
    }

    /// Acknowledges all pushed requests up to this one. Returns how many were removed; after a lost connection possibly
    /// fewer.
    pub async fn ack(&self, request_id: u64) -> Result<u64, Error> {
        let mut ack = cmd("SESSION.ACK");
        ack.arg(self.id()).arg(request_id);
        self.inner.insist(&mut self.inner.insistence(), None, || ack.clone()).await
    }

    /// Facts about the session; `None` if it is gone.
    pub async fn info(&self) -> Result<Option<SessionInfo>, Error> {
        self.inner.store.ask(cmd("SESSION.INFO").arg(self.id())).await
    }

    /// Calls the handler for each request that was pushed to this session, one at a time and in order: pending ones
    /// first, then each new one. A request is acknowledged when the handler has returned. After a lost connection it
    /// attaches again, and does not repeat handled requests.
    ///
    /// It ends when it is dropped, with an error of the handler, or when the session is closed or gone. A request whose
    /// handler did not return stays pending, and is delivered again by the next `serve`: a program that ends between
    /// the handler and the acknowledgement sees it again. If several clients serve a session, the last one gets the
    /// requests.
    pub async fn serve<E: From<Error>, F: Future<Output = Result<(), E>>>(
        &self,
        mut handler: impl FnMut(PushedRequest) -> F,
    ) -> Result<Infallible, E> {
        let mut handled = 0;
        let mut attachment = None;
        loop {
            let request = match self.next_pushed(&mut attachment).await {
                Ok(request) => request,
                Err(error) if error.is_temporary() => {
                    attachment = None;
                    sleep(PAUSE).await;
                    continue;
                }
                Err(error) => return Err(self.inner.failure(error, None, false).await.into()),
            };
            let id = request.id;
            if id > handled {
                handler(request).await?;
                handled = id;
            }
            match self.ack(id).await {
                Err(error) if error.is_temporary() => {} // it comes again, and is acknowledged then
                acknowledged => _ = acknowledged?,
            }
        }
    }

    /// Closes the session, and removes its state at the server; returns whether it existed. Later requests are
    /// [`Error::Closed`]. Otherwise the session expires.
    pub async fn close(&self) -> Result<bool, Error> {
        if self.inner.closed.swap(true, SeqCst) {
            return Ok(false);
        }
        self.inner.store.ask(cmd("SESSION.CLOSE").arg(self.id())).await
    }

    fn numbered(&self, id: u64, command: &Cmd, was_sent: bool) -> PreparedRequest {
        let (session, was_sent) = (self.inner.clone(), AtomicBool::new(was_sent));
        let request = Request { session, id, command: command.clone(), was_sent };
        PreparedRequest::new(Arc::new(request))
    }

    fn asker(&self) -> Arc<dyn Asker> {
        Arc::new(self.clone())
    }

    async fn next_pushed(&self, attachment: &mut Option<Attachment>) -> Result<PushedRequest, Error> {
        self.inner.check(None, false)?;
        if attachment.is_none() {
            *attachment = Some(Attachment::make(&self.inner).await?);
        }
        let attached = attachment.as_mut().expect("it was made");
        loop {
            match timeout(SILENCE, attached.pushes.recv()).await {
                // Detects a connection that has silently died.
                Err(_) => send::<()>(&cmd("PING"), &mut attached.own.connection).await?,
                Ok(Some(PushInfo { kind: PushKind::Other(kind), data })) if kind == "session" => {
                    if let Some(request) = pushed_request(&self.inner.id, data)? {
                        return Ok(request);
                    }
                }
                Ok(Some(PushInfo { kind: PushKind::Disconnection, .. }) | None) => {
                    let closed = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Err(Error::from(redis::RedisError::from(closed)));
                }
                Ok(Some(_)) => {}
            }
            self.inner.check(None, false)?;
        }
    }
}

/// The connection on which the server sends the requests of a session.
struct Attachment {
    own: OwnConnection,
    pushes: UnboundedReceiver<PushInfo>,
}

impl Attachment {
    async fn make(session: &Inner) -> Result<Attachment, Error> {
        session.store.connection()?; // unless the store is closed
        let (sender, pushes) = unbounded_channel();
        let mut own = session.store.own_connections().attach(sender).await?;
        let attached = send::<()>(cmd("SESSION.ATTACH").arg(&session.id), &mut own.connection).await;
        attached.map_err(|error| session.store.own_connections().target().note(own.epoch, error))?;
        Ok(Attachment { own, pushes })
    }
}

fn pushed_request(session_id: &[u8], data: Vec<Value>) -> Result<Option<PushedRequest>, Error> {
    let (id_of, id, payload): (Vec<u8>, u64, Vec<u8>) = read(Value::Array(data))?;
    Ok((id_of == session_id).then_some(PushedRequest { id, payload }))
}

impl Asker for Session {
    fn needs(&self, _: &'static str) -> Result<(), Error> {
        Ok(()) // a server that has sessions has all of them
    }

    fn ask_value<'a>(&'a self, command: &'a Cmd) -> Answer<'a, Value> {
        Box::pin(self.call(command))
    }

    fn ask_waiting<'a>(&'a self, _: &'a Cmd, _: Duration) -> Answer<'a, Value> {
        Box::pin(async { Err(Error::CannotWait) })
    }
}

/// A request with its number, which is open until the request is dropped.
struct Request {
    session: Arc<Inner>,
    id: u64,
    command: Cmd,
    /// It was sent before, by this program or an earlier one, and so may have run.
    was_sent: AtomicBool,
}

impl NumberedRequest for Request {
    fn id(&self) -> u64 {
        self.id
    }

    fn command(&self) -> String {
        self.command.args_iter().next().map_or_else(String::new, |word| match word {
            redis::Arg::Simple(word) => word.escape_ascii().to_string(),
            _ => String::new(),
        })
    }

    fn send(self: Arc<Self>) -> Answer<'static, Value> {
        Box::pin(async move {
            let mut insistence = self.session.insistence();
            insistence.maybe_applied = self.was_sent.swap(true, SeqCst);
            let call = || self.session.call_command(self.id, &self.command);
            let error = match self.session.insist(&mut insistence, Some(self.id), call).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            Err(match insistence.cause(error) {
                Ok(cause) => Error::Unanswered { request: PreparedRequest::new(self.clone()), cause },
                Err(error) => error,
            })
        })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.session.numbers().end(self.id);
    }
}

impl Inner {
    fn numbers(&self) -> MutexGuard<'_, RequestNumbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed_at(&self) -> MutexGuard<'_, Instant> {
        self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insistence(&self) -> Insistence {
        Insistence::new(self.retry_for)
    }

    fn call_command(&self, request_id: u64, command: &Cmd) -> Cmd {
        let mut call = cmd("SESSION.CALL");
        call.arg(&self.id).arg(request_id).arg("LOW").arg(self.numbers().low());
        for word in command.args_iter() {
            match word {
                redis::Arg::Simple(word) => call.arg(word),
                // The argument of a cursor; this command is not iterated.
                _ => call.arg(0),
            };
        }
        call
    }

    /// Sends a request until there is an answer.
    async fn insist<T: FromRedisValue>(
        &self,
        insistence: &mut Insistence,
        request_id: Option<u64>,
        make: impl Fn() -> Cmd,
    ) -> Result<T, Error> {
        loop {
            self.check(request_id, insistence.maybe_applied)?;
            let error = match self.send(&make(), insistence.maybe_applied).await {
                Ok(reply) => {
                    if request_id.is_some() {
                        *self.renewed_at() = Instant::now();
                    }
                    return Ok(reply);
                }
                Err(error) => error,
            };
            match insistence.pause(&error) {
                Some(pause) => sleep(pause).await,
                None => return Err(self.failure(error, request_id, insistence.maybe_applied).await),
            }
        }
    }

    /// Sends a request again on another connection: the shared one may have silently died.
    async fn send<T: FromRedisValue>(&self, command: &Cmd, is_again: bool) -> Result<T, Error> {
        self.store.connection()?; // unless the store is closed
        match is_again {
            false => self.store.ask(command).await,
            true => self.store.own_connections().ask(command, Duration::ZERO).await,
        }
    }

    /// Classifies an error: the session may be gone. The command may also have reported that another session is
    /// missing.
    async fn failure(&self, error: Error, request_id: Option<u64>, maybe_applied: bool) -> Error {
        if matches!(error, Error::NoSession(_)) {
            match self.is_alive().await {
                Ok(is_alive) => self.lost.store(!is_alive, SeqCst),
                // It is unknown whether the session exists, and nothing may be sent again.
                Err(unknown) if unknown.is_temporary() => self.lost.store(true, SeqCst),
                Err(other) => return other,
            }
        }
        self.check(request_id, maybe_applied).err().unwrap_or(error)
    }

    fn check(&self, request_id: Option<u64>, maybe_applied: bool) -> Result<(), Error> {
        if self.closed.load(SeqCst) {
            return Err(Error::Closed);
        }
        if self.lost.load(SeqCst) {
            let lost = LostSession { session_id: self.id.clone(), request_id, maybe_applied };
            return Err(Error::SessionLost(Box::new(lost)));
        }
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool, Error> {
        self.store.ask(cmd("SESSION.ALIVE").arg(&self.id)).await
    }
}

/// Renews an idle session, for as long as the program holds it.
async fn keep_alive(session: Weak<Inner>, interval: Duration) {
    loop {
        sleep(interval / 2).await;
        let Some(session) = session.upgrade() else { return };
        if session.check(None, false).is_err() {
            return;
        }
        let idle = session.renewed_at().elapsed();
        if idle < interval / 2 {
            continue;
        }
        match session.is_alive().await {
            Ok(true) => *session.renewed_at() = Instant::now(),
            Ok(false) => session.lost.store(true, SeqCst),
            Err(Error::Closed) => return,
            Err(_) => {} // the next request says it
        }
    }
}
