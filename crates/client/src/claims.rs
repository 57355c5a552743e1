//! Claims that take nothing when their future is dropped: the wait is ended, and what had come is given back.
//!
//! Each runs on a thread of the store's own, so that it can be ended also when the program's runtime ends. The reply goes
//! to the program in a [`Delivery`], which gives it back if it is dropped.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value, cmd};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::own_connections::{OwnConnection, OwnConnections};
use crate::send::send;

/// Returns the commands that give back what a claim has taken. Each is sent once.
pub(crate) type GiveBack = Box<dyn FnOnce(Value) -> Vec<Cmd> + Send>;

/// The claims of a store.
pub(crate) struct Claims {
    connections: Arc<OwnConnections>,
    /// Begins with the first claim.
    thread: Mutex<Option<Thread>>,
}

/// The pause between two attempts to end a wait that the server has perhaps not seen yet.
const UNBLOCK_PAUSE: Duration = Duration::from_millis(5);

/// How long a store that is dropped waits for claims that are being given back.
const END_WITHIN: Duration = Duration::from_secs(2);

struct Thread {
    tasks: Tasks,
    /// Is closed when the thread has ended.
    ended: blocking::Receiver<()>,
}

/// Where claims run. The thread ends when no task is left, and nothing that can begin one.
#[derive(Clone)]
struct Tasks {
    runtime: Handle,
    _alive: mpsc::Sender<()>,
}

/// The reply to a claim, on the way to the program.
struct Delivery {
    connections: Arc<OwnConnections>,
    tasks: Tasks,
    contents: Option<(Value, GiveBack)>,
}

impl Claims {
    pub(crate) fn new(connections: OwnConnections) -> Claims {
        Claims { connections: Arc::new(connections), thread: Mutex::default() }
    }

    /// Sends a claim that waits for this long. If the future is dropped, the commands of `give_back` are sent.
    pub(crate) async fn ask(&self, command: Cmd, wait: Duration, give_back: GiveBack) -> Result<Value, Error> {
        let tasks = self.tasks()?;
        let (sender, reply) = oneshot::channel();
        let task = run(Arc::clone(&self.connections), tasks.clone(), command, wait, give_back, sender);
        tasks.runtime.spawn(task);
        match reply.await {
            Ok(delivery) => Ok(delivery?.take()),
            Err(_) => Err(Error::Closed), // the thread has ended
        }
    }

    fn tasks(&self) -> Result<Tasks, Error> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*thread {
            return Ok(thread.tasks.clone());
        }
        let begun = Thread::begin().map_err(|error| Error::Unavailable(error.into()))?;
        Ok(thread.insert(begun).tasks.clone())
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Thread { tasks, ended }) = thread.take() {
            drop(tasks);
            // The program may end next.
            let _ = ended.recv_timeout(END_WITHIN);
        }
    }
}

impl Thread {
    fn begin() -> std::io::Result<Thread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, mut last) = mpsc::channel(1);
        let (end, ended) = blocking::channel::<()>();
        thread::Builder::new().name("holdfast-claims".into()).spawn(move || {
            let _end = end;
            runtime.block_on(last.recv());
        })?;
        Ok(Thread { tasks: Tasks { runtime: handle, _alive: alive }, ended })
    }
}

impl Delivery {
    fn take(mut self) -> Value {
        self.contents.take().map_or(Value::Nil, |(reply, _)| reply)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some((reply, give_back)) = self.contents.take() {
            let (connections, tasks) = (Arc::clone(&self.connections), self.tasks.clone());
            self.tasks.runtime.spawn(async move {
                let _tasks = tasks;
                if let Ok(own) = connections.take().await {
                    send_all(connections, own, give_back(reply)).await;
                }
            });
        }
    }
}

/// Sends a claim until it was executed, and its reply to the program.
async fn run(
    connections: Arc<OwnConnections>,
    tasks: Tasks,
    command: Cmd,
    wait: Duration,
    give_back: GiveBack,
    mut program: oneshot::Sender<Result<Delivery, Error>>,
) {
    let (began, mut tried) = (Instant::now(), 0);
    let reply = loop {
        if program.is_closed() {
            return;
        }
        let not_executed = match connections.take().await {
            Err(error) if error.is_temporary() => error,
            Err(error) => break Err(error),
            Ok(own) => match attempt(&connections, own, &command, wait, &mut program).await {
                Err(error) if error.is_loading() || matches!(error, Error::NotWriter(_)) => error,
                reply => break reply,
            },
        };
        if began.elapsed() >= connections.target().patience(wait) {
            break Err(not_executed);
        }
        sleep(connections.target().pause(tried)).await;
        tried += 1;
    };
    let delivery = reply.map(|reply| Delivery { connections, tasks, contents: Some((reply, give_back)) });
    // One that the program does not want is dropped here, and given back.
    let _ = program.send(delivery);
}

/// Sends a claim once. If the program drops its future, ends the wait, and returns the reply all the same.
async fn attempt(
    connections: &OwnConnections,
    mut own: OwnConnection,
    command: &Cmd,
    wait: Duration,
    program: &mut oneshot::Sender<Result<Delivery, Error>>,
) -> Result<Value, Error> {
    if !wait.is_zero() && own.client_id.is_none() {
        // An error: the user may not ask. Then a wait is ended with its connection.
        own.client_id = send(cmd("CLIENT").arg("ID"), &mut own.connection).await.ok();
    }
    if program.is_closed() {
        connections.give_back(own);
        return Ok(Value::Array(Vec::new()));
    }
    let mut waiting = own.connection.clone();
    waiting.set_response_timeout(connections.response_timeout_after(wait));
    let mut claim = pin!(send::<Value>(command, &mut waiting));
    let answered = poll_fn(|cx| match claim.as_mut().poll(cx) {
        std::task::Poll::Ready(reply) => std::task::Poll::Ready(Some(reply)),
        std::task::Poll::Pending => program.poll_closed(cx).map(|()| None),
    });
    let reply = match answered.await {
        Some(reply) => reply,
        None if wait.is_zero() => claim.await,
        None => {
            // The server may not have seen the claim yet.
            loop {
                let is_ended = end_wait(connections, &own).await?;
                match timeout(UNBLOCK_PAUSE, claim.as_mut()).await {
                    Ok(reply) => break reply,
                    Err(_) if is_ended => break claim.await,
                    Err(_) => {}
                }
            }
        }
    };
    connections.finish(own, reply)
}

/// Asks the server to end the wait of a connection. Returns true if it has waited.
async fn end_wait(connections: &OwnConnections, waiting: &OwnConnection) -> Result<bool, Error> {
    let Some(id) = waiting.client_id else { return Err(Error::Closed) };
    let mut other = connections.take().await?;
    if other.epoch != waiting.epoch {
        connections.give_back(other);
        return Ok(false); // there the number would be that of another client
    }
    let unblocked: bool = send(cmd("CLIENT").arg("UNBLOCK").arg(id), &mut other.connection).await?;
    connections.give_back(other);
    Ok(unblocked)
}

/// Sends commands, each once. What one of them does not give back comes again when its lease ends.
async fn send_all(connections: Arc<OwnConnections>, mut own: OwnConnection, commands: Vec<Cmd>) {
    for command in commands {
        let connection: &mut MultiplexedConnection = &mut own.connection;
        if send::<Value>(&command, connection).await.is_err() {
            return;
        }
    }
    connections.give_back(own);
}
