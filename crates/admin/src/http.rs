//! The port itself: a thread with a runtime of its own, connections and their limits, answers by path. Knows HTTP; refuses
//! to know what a metric means.
//!
//! A connection carries one request and lives for [`CONNECTION_SECONDS_MAX`] at most, however slowly its client sends or
//! reads. There are at most [`CONNECTIONS_MAX`]; beyond that the oldest is closed for the newest, so clients that connect
//! and say nothing keep nobody out. Metrics are collected by one thread at a time, which is not the one that accepts:
//! probes are answered while it waits for a lock.

use crate::access::{self, Refusal};
use crate::exposition::{Exposition, Format};
use crate::figures::Collector;
use crate::health;
use crate::pages::{self, Answer};
use engine::Engine;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, http};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use web_console::Console;

/// The most connections at a time.
pub const CONNECTIONS_MAX: usize = 64;
/// The life of a connection, from accept to the last byte of the answer.
const CONNECTION_SECONDS_MAX: u64 = 10;
/// The time in which a request must have come.
const HEADER_SECONDS_MAX: u64 = 5;
/// The most bytes of a request's head. Prometheus sends a few hundred.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// The most lines of a request's head.
const HEADERS_MAX: usize = 64;
/// Pause before a wrong password is answered.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(300);
/// Pause after a connection could not be accepted.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Serves these sockets, which do not block, until the process ends. Called on a thread of its own.
pub fn serve(engine: Arc<Engine>, console: Option<Console>, listeners: Vec<TcpListener>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .thread_name("metrics")
        .build()?;
    runtime.block_on(async {
        let collector = Arc::new(Mutex::new(Collector::new(engine.clone())));
        let console = console.map(Arc::new);
        if let Some(console) = console.clone() {
            tokio::spawn(async move { console.watch().await });
        }
        let state = Arc::new(State { collector, console, engine });
        let (send, mut accepted) = mpsc::channel(1);
        for listener in listeners {
            tokio::spawn(accept(tokio::net::TcpListener::from_std(listener)?, send.clone()));
        }
        drop(send);
        let mut connections = Connections::default();
        while let Some((socket, peer)) = accepted.recv().await {
            connections.add(tokio::spawn(converse(state.clone(), socket, peer)));
        }
        Ok(())
    })
}

struct State {
    engine: Arc<Engine>,
    console: Option<Arc<Console>>,
    /// Held while metrics are collected.
    collector: Arc<Mutex<Collector>>,
}

/// Connections that are open, oldest first.
#[derive(Default)]
struct Connections(VecDeque<AbortHandle>);

impl Connections {
    fn add(&mut self, connection: JoinHandle<()>) {
        self.0.retain(|open| !open.is_finished());
        if self.0.len() >= CONNECTIONS_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection.abort_handle());
    }
}

async fn accept(listener: tokio::net::TcpListener, send: mpsc::Sender<(TcpStream, SocketAddr)>) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                if send.send(accepted).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "no connection to the admin port could be accepted");
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }
}

/// One connection: a request and its answer.
async fn converse(state: Arc<State>, socket: TcpStream, peer: SocketAddr) {
    let answer = service_fn(|request| {
        let state = state.clone();
        async move { Ok::<Answer, Infallible>(answer(&state, request, peer).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEADER_SECONDS_MAX))
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), answer);
    // What a client does wrong is its own affair.
    let _ = tokio::time::timeout(Duration::from_secs(CONNECTION_SECONDS_MAX), connection).await;
}

async fn answer(state: &State, request: Request<Incoming>, peer: SocketAddr) -> Answer {
    if let Some(console) = &state.console
        && web_console::is_of_console(request.uri().path())
    {
        return pages::answer(console, request, peer).await;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match request.uri().path() {
        "/health/live" => text(StatusCode::OK, "alive\n"),
        "/health/ready" => match health::not_ready(&state.engine) {
            None => text(StatusCode::OK, "ready\n"),
            Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{reason}\n")),
        },
        "/metrics" => metrics(state, request.headers(), peer).await,
        _ => text(StatusCode::NOT_FOUND, "there are /metrics, /health/live and /health/ready\n"),
    }
}

async fn metrics(state: &State, headers: &http::HeaderMap, peer: SocketAddr) -> Answer {
    let authorization = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    match access::pass(&state.engine, authorization, peer) {
        Ok(()) => {}
        Err(Refusal::Unauthorized) => {
            if authorization.is_some() {
                tokio::time::sleep(WRONG_PASSWORD_DELAY).await;
            }
            let mut answer = text(StatusCode::UNAUTHORIZED, "the name and the password of a user are needed\n");
            let scheme = HeaderValue::from_static("Basic realm=\"holdfast\", charset=\"UTF-8\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return answer;
        }
        Err(Refusal::Forbidden) => return text(StatusCode::FORBIDDEN, "this user may not run INFO\n"),
    }
    let format = Format::accepted(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default());
    let mut collector = state.collector.clone().lock_owned().await;
    let collected = tokio::task::spawn_blocking(move || {
        let mut text = Exposition::new(format);
        collector.collect(&mut text);
        text.finish()
    });
    match collected.await {
        Ok(body) => respond(StatusCode::OK, format.content_type(), body),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be collected\n"),
    }
}

fn text(status: StatusCode, body: &str) -> Answer {
    respond(status, "text/plain; charset=utf-8", body.to_owned())
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
