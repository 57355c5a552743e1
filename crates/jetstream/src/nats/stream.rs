//! Requests to the stream, and its messages. Knows what NATS answers; decides nothing.

use super::checks::PAYLOAD_MIN;
use super::shared::{Connection, LOG_ID, Unknown};
use crate::frame::Position;
use crate::stream::{Answer, Appended, Extent, Found, Receive, Stream, Tick, Unanswered};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{DeliverPolicy, push};
use async_nats::{HeaderMap, Request};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long NATS may take for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// A request of several questions ends after this time.
const GIVES_UP_AFTER: Duration = Duration::from_secs(5);
/// How long to wait before the stream is followed again after an error.
const FOLLOW_AGAIN: Duration = Duration::from_millis(100);
/// How long delivery waits while its receiver has no room.
const ROOM_EVERY: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(300);
/// A stream that NATS does not know for this long is gone. At a start, or without a leader, NATS may not know it yet.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// Two answers of that kind count together if no more time is between them. Who waits for the stream asks more often.
const UNKNOWN_AGAIN_WITHIN: Duration = Duration::from_secs(5);

/// Error numbers of JetStream.
const WRONG_LAST_SEQUENCE: [u64; 2] = [10071, 10164];
const STREAM_NOT_FOUND: u64 = 10059;

/// A stream on NATS.
pub(super) struct NatsStream {
    pub(super) connection: Arc<Connection>,
}

impl NatsStream {
    fn spawn<T: Send + 'static>(
        &self,
        answer: Answer<T>,
        ask: impl Future<Output = Result<T, Unanswered>> + Send + 'static,
    ) {
        let connection = self.connection.clone();
        self.connection.runtime.spawn(async move {
            // IMPORTANT: without a connection nothing is asked. What is asked then waits in a queue, and is sent when there is one
            // again, long after its answer is of any use.
            let asked = match connection.is_up() {
                true => tokio::time::timeout(GIVES_UP_AFTER, ask).await,
                false => Ok(Err(Unanswered::new("no NATS server is connected"))),
            };
            answer(asked.unwrap_or_else(|_| Err(Unanswered::new("NATS does not answer"))));
        });
    }
}

impl Stream for NatsStream {
    fn append(&self, last: Position, message: Bytes, answer: Answer<Appended>) {
        let connection = self.connection.clone();
        self.spawn(answer, async move {
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Expected-Last-Sequence", last.to_string());
            headers.insert("Nats-Expected-Stream", connection.url.stream());
            let request = Request::new().headers(headers).payload(message).timeout(Some(ANSWERS_WITHIN));
            let reply = connection.client.send_request(connection.subject().clone(), request).await;
            appended(&parse(&reply.map_err(unanswered)?.payload)?)
        });
    }

    fn read(&self, position: Position, answer: Answer<Found>) {
        let connection = self.connection.clone();
        self.spawn(answer, async move { read(&connection, position).await });
    }

    fn extent(&self, answer: Answer<Extent>) {
        let connection = self.connection.clone();
        self.spawn(answer, async move { extent(&connection).await });
    }

    fn purge(&self, upto: Position, answer: Answer<()>) {
        let connection = self.connection.clone();
        self.spawn(answer, async move {
            let asked = serde_json::json!({ "seq": upto + 1 });
            ask(&connection, "STREAM.PURGE", &asked).await.map(drop)
        });
    }

    fn follow(&self, from: Position, receiver: Weak<dyn Receive>) -> Box<dyn Send> {
        let connection = self.connection.clone();
        let task = self.connection.runtime.spawn(async move {
            let mut next = from;
            while receiver.strong_count() > 0 {
                if let Err(error) = follow(&connection, &mut next, &receiver).await {
                    tracing::debug!(%error, next, "the stream is followed again");
                }
                tokio::time::sleep(FOLLOW_AGAIN).await;
            }
        });
        Box::new(Aborts(task))
    }

    fn message_max(&self) -> usize {
        // Headers count, too.
        self.connection.client.max_payload().clamp(PAYLOAD_MIN, 1024 * 1024) - 1024
    }

    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn tick(&self, ticking: Weak<dyn Tick>) {
        self.connection.ticking.lock().push(ticking);
    }

    fn tick_after(&self, after: Duration, ticking: Weak<dyn Tick>) {
        self.connection.alarm.set(after, ticking);
    }

    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}

/// Ends a task when it is dropped.
struct Aborts(tokio::task::JoinHandle<()>);

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn follow(
    connection: &Connection,
    next: &mut Position,
    receiver: &Weak<dyn Receive>,
) -> Result<(), async_nats::Error> {
    let stream = connection.jetstream.get_stream_no_info(connection.url.stream()).await?;
    let config = push::OrderedConfig {
        deliver_subject: connection.client.new_inbox(),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *next },
        ..push::OrderedConfig::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message: jetstream::Message = message?;
        let position = message.info()?.stream_sequence;
        loop {
            let Some(receiver) = receiver.upgrade() else { return Ok(()) };
            if receiver.has_room() {
                receiver.receive(position, message.message.payload);
                break;
            }
            drop(receiver);
            tokio::time::sleep(ROOM_EVERY).await;
        }
        *next = position + 1;
    }
    Ok(())
}

async fn read(connection: &Connection, position: Position) -> Result<Found, Unanswered> {
    let stream = connection.jetstream.get_stream_no_info(connection.url.stream()).await.map_err(unanswered)?;
    match stream.get_raw_message(position).await {
        Ok(message) => Ok(Found::Message(message.payload)),
        Err(error) if error.kind() == jetstream::stream::LastRawMessageErrorKind::NoMessageFound => {
            let Extent { first, last } = extent(connection).await?;
            Ok(match () {
                () if position < first => Found::Purged,
                () if position <= last => Found::Missing,
                () => Found::Empty { last },
            })
        }
        Err(error) => Err(unanswered(error)),
    }
}

async fn extent(connection: &Connection) -> Result<Extent, Unanswered> {
    let reply = ask(connection, "STREAM.INFO", &Value::Null).await.and_then(|reply| is_ours(connection, reply));
    let reply = match reply {
        Err(mut unanswered) if unanswered.is_gone => {
            let now = std::time::Instant::now();
            let mut unknown = connection.unknown.lock();
            let since = unknown
                .filter(|unknown| now - unknown.last < UNKNOWN_AGAIN_WITHIN)
                .map_or(now, |unknown| unknown.since);
            *unknown = Some(Unknown { since, last: now });
            unanswered.is_gone = now - since > GONE_AFTER;
            return Err(unanswered);
        }
        reply => reply?,
    };
    *connection.unknown.lock() = None;
    // IMPORTANT: without a leader the answer may be old.
    let leader = reply.pointer("/cluster/leader").and_then(Value::as_str);
    if reply.get("cluster").is_some() && leader.is_none_or(str::is_empty) {
        return Err(Unanswered::new("the stream has no leader"));
    }
    let number = |name: &str| reply.pointer(&format!("/state/{name}")).and_then(Value::as_u64);
    match (number("first_seq"), number("last_seq")) {
        (Some(first), Some(last)) => Ok(Extent { first, last }),
        _ => Err(Unanswered::new("NATS says nothing of the state of the stream")),
    }
}

/// The answer, if it is about the stream of this log and not about one that was made since.
fn is_ours(connection: &Connection, reply: Value) -> Result<Value, Unanswered> {
    match reply.pointer("/config/metadata").and_then(|known| known.get(LOG_ID)).and_then(Value::as_str) {
        Some(id) if connection.subject().as_str() == connection.url.subject(id) => Ok(reply),
        _ => Err(Unanswered {
            reason: format!(
                "the stream {} is another one now: the one that was there was deleted, and with it the log",
                connection.url.stream()
            ),
            is_gone: true,
        }),
    }
}

/// Asks JetStream something about the stream.
pub(super) async fn ask(connection: &Connection, what: &str, asked: &Value) -> Result<Value, Unanswered> {
    let payload = match asked {
        Value::Null => Bytes::new(),
        asked => asked.to_string().into(),
    };
    let request = Request::new().payload(payload).timeout(Some(ANSWERS_WITHIN));
    let subject = format!("$JS.API.{what}.{}", connection.url.stream());
    let reply = connection.client.send_request(subject, request).await.map_err(unanswered)?;
    let reply = parse(&reply.payload)?;
    match reply.get("error") {
        None => Ok(reply),
        Some(_) if error_number(&reply) == STREAM_NOT_FOUND => Err(Unanswered {
            reason: format!(
                "NATS does not know the stream {}, which was there: it was deleted, and with it the log",
                connection.url.stream()
            ),
            is_gone: true,
        }),
        Some(_) => Err(refused(&reply)),
    }
}

/// What the answer to an append says. IMPORTANT: one with an error has a position, too: 0.
fn appended(reply: &Value) -> Result<Appended, Unanswered> {
    match (reply.get("error"), reply.get("seq").and_then(Value::as_u64)) {
        (None, Some(position)) => Ok(Appended::At(position)),
        (Some(_), _) if WRONG_LAST_SEQUENCE.contains(&error_number(reply)) => Ok(Appended::Conflict),
        _ => Err(refused(reply)),
    }
}

fn parse(payload: &[u8]) -> Result<Value, Unanswered> {
    serde_json::from_slice(payload).map_err(|_| Unanswered::new("NATS has answered something that is no JSON"))
}

fn error_number(reply: &Value) -> u64 {
    reply.pointer("/error/err_code").and_then(Value::as_u64).unwrap_or(0)
}

fn refused(reply: &Value) -> Unanswered {
    let described = reply.pointer("/error/description").and_then(Value::as_str).unwrap_or("no reason");
    let number = error_number(reply);
    Unanswered { reason: format!("NATS refuses: {described} ({number})"), is_gone: number == STREAM_NOT_FOUND }
}

pub(super) fn unanswered(error: impl std::fmt::Display) -> Unanswered {
    Unanswered::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_beside_a_position_is_an_error() {
        let read = |text: &str| appended(&parse(text.as_bytes()).unwrap());
        assert_eq!(read(r#"{"stream":"S","seq":7}"#), Ok(Appended::At(7)));
        // A single server, and one of a cluster.
        for more in ["", r#","stream":"S","seq":0"#] {
            for number in WRONG_LAST_SEQUENCE {
                let text =
                    format!(r#"{{"error":{{"code":400,"err_code":{number},"description":"wrong last"}}{more}}}"#);
                assert_eq!(read(&text), Ok(Appended::Conflict), "{text}");
            }
            let full = format!(r#"{{"error":{{"code":503,"err_code":10023,"description":"full"}}{more}}}"#);
            assert!(read(&full).is_err_and(|unanswered| !unanswered.is_gone), "{full}");
        }
        assert!(read("{}").is_err());
    }
}
