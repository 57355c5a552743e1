//! The connection to NATS: opens the log, makes it if there is none, and keeps the thread on which everything of NATS
//! runs. Knows when a log must not be used; refuses to know what is in it.

use super::alarm::Alarm;
use super::checks::{self, Finding, Requirements};
use super::members::{Announcement, Members};
use super::objects::{NatsObjects, is_no_object};
use super::replicas;
use super::shared::{Connection, LOG_ID};
use super::stream::NatsStream;
use super::url::{Login, NatsUrl};
use crate::frame::{LogId, Nonce, Position};
use crate::objects::Objects;
use crate::snapshots;
use crate::stream::{Stream, Tick};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, StorageType};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, jetstream};
use futures_util::StreamExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::AsyncReadExt;

/// How long the first connection may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
/// How long NATS may take for an answer. While it chooses a leader it does not answer at all, and is asked again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// How long the log may take to be opened: the servers may be choosing a leader.
const OPENS_WITHIN: Duration = Duration::from_secs(60);
/// How long one attempt may take.
const TRIES_FOR: Duration = Duration::from_secs(20);
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// A stream that is not known for so long is gone.
const VANISHED_AFTER: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(50);
/// How often the requirements are checked while the log is used.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// How often a member says where it is, while that changes, and otherwise.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(10);
const ANNOUNCE_AT_LEAST_EVERY: Duration = Duration::from_millis(1000);
/// How often NATS is asked whether the connection still is one.
const PING_EVERY: Duration = Duration::from_secs(2);

/// How to connect.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    pub url: NatsUrl,
    /// A file with a JWT and a key.
    pub credentials: Option<PathBuf>,
    /// A file with an NKEY seed.
    pub nkey: Option<PathBuf>,
    pub tls_ca: Option<PathBuf>,
    pub tls_certificate: Option<(PathBuf, PathBuf)>,
    pub requirements: Requirements,
    /// The log that this process has used before, as it remembers it.
    pub known: Option<LogId>,
}

/// Why a log cannot be used.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{url}: {detail}")]
    Unreachable { url: String, detail: String },
    #[error("{url} must not be used: {detail}")]
    Refused { url: String, detail: String },
}

/// A log on NATS.
pub struct NatsLog {
    connection: Arc<Connection>,
    bucket: ObjectStore,
    pub id: LogId,
    /// The name of this process.
    pub member: String,
    members: Arc<Members>,
    findings: Arc<Mutex<Vec<Finding>>>,
}

impl NatsLog {
    /// Opens the log, and makes it if there is none.
    pub fn open(options: NatsOptions) -> Result<NatsLog, OpenError> {
        let (send, opened) = mpsc::channel();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime needs only memory and file descriptors");
            let handle = runtime.handle().clone();
            runtime.block_on(async move {
                let opened = open(options, handle).await;
                let is_open = opened.is_ok();
                if send.send(opened).is_ok() && is_open {
                    // All else runs as tasks, until the process ends.
                    std::future::pending::<()>().await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("log".into()).spawn(serve);
        thread.expect("a thread needs only memory");
        opened.recv().expect("it sends a result")
    }

    pub fn stream(&self) -> Arc<dyn Stream> {
        Arc::new(NatsStream { connection: self.connection.clone() })
    }

    pub fn objects(&self) -> Arc<dyn Objects> {
        Arc::new(NatsObjects { connection: self.connection.clone(), bucket: self.bucket.clone() })
    }

    /// The other processes that use the log.
    pub fn members(&self) -> Arc<Members> {
        self.members.clone()
    }

    /// What was last found to be wrong with NATS.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings.lock().clone()
    }

    /// True while a NATS server is connected.
    pub fn is_connected(&self) -> bool {
        self.connection.is_up()
    }

    /// The address of this machine that NATS is reached from.
    pub fn local_address(&self) -> Option<std::net::IpAddr> {
        let host = self.connection.client.server_info().client_ip;
        host.parse().ok()
    }

    /// Tells the others what `say` returns, again and again, and calls `heard` when one of them has said something.
    pub fn announce(
        &self,
        say: impl Fn() -> Announcement + Send + Sync + 'static,
        heard: impl Fn() + Send + Sync + 'static,
    ) {
        let (connection, members, own) = (self.connection.clone(), self.members.clone(), self.member.clone());
        let listener = connection.clone();
        self.connection.runtime.spawn(async move {
            loop {
                if let Ok(mut lines) = listener.client.subscribe(listener.url.members_subject()).await {
                    while let Some(line) = lines.next().await {
                        if members.hear(&line.payload, &own) {
                            heard();
                        }
                    }
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
        });
        self.connection.runtime.spawn(async move {
            let (mut said, mut said_at) = (Announcement::default(), Instant::now());
            loop {
                let now = say();
                if now != said || said_at.elapsed() >= ANNOUNCE_AT_LEAST_EVERY {
                    let line = now.encode();
                    if connection.client.publish(connection.url.members_subject(), line.into()).await.is_ok() {
                        (said, said_at) = (now, Instant::now());
                    }
                }
                tokio::time::sleep(ANNOUNCE_EVERY).await;
            }
        });
    }
}

impl NatsLog {
    /// Answers members that ask for the log: `give` is called with the name of the one that asks, and returns whether this
    /// process has it.
    pub fn serve_requests(&self, give: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let connection = self.connection.clone();
        self.connection.runtime.spawn(async move {
            loop {
                if let Ok(mut requests) = connection.client.subscribe(connection.url.requests_subject()).await {
                    while let Some(request) = requests.next().await {
                        let member = std::str::from_utf8(&request.payload).unwrap_or_default();
                        if let Some(reply) = request.reply.clone().filter(|_| give(member)) {
                            let _ = connection.client.publish(reply, "OK".into()).await;
                        }
                    }
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
        });
    }

    /// Asks the process that has the log to give it to this one. Waits for the answer.
    pub fn ask_for_log(&self, within: Duration) -> Result<(), String> {
        let (connection, own) = (self.connection.clone(), self.member.clone());
        let (send, answered) = mpsc::channel();
        self.connection.runtime.spawn(async move {
            let request = async_nats::Request::new().payload(own.into()).timeout(Some(within));
            let answer = connection.client.send_request(connection.url.requests_subject(), request).await;
            let _ = send.send(answer.map(drop).map_err(|error| error.to_string()));
        });
        answered.recv().unwrap_or_else(|_| Err("the connection to NATS is closed".into()))
    }
}

async fn open(options: NatsOptions, runtime: tokio::runtime::Handle) -> Result<NatsLog, OpenError> {
    let NatsOptions { url, requirements, .. } = &options;
    let unreachable = |detail: String| OpenError::Unreachable { url: url.to_string(), detail };
    let began = Instant::now();
    let mut told = None;
    let client = loop {
        match connect(&options).await {
            Err(Opening::NotYet(detail)) if began.elapsed() < OPENS_WITHIN => {
                if told.as_ref() != Some(&detail) {
                    tracing::warn!(log = %url, detail, "the log cannot be reached yet: it is tried again for a minute");
                    told = Some(detail);
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
            Err(why) => return Err(unreachable(why.detail())),
            Ok(client) => break client,
        }
    };
    let jetstream = jetstream::new(client.clone());
    let connection = Arc::new(Connection {
        subject: OnceLock::new(),
        url: url.clone(),
        jetstream,
        client,
        runtime,
        ticking: Mutex::default(),
        unknown: Mutex::default(),
        alarm: Alarm::start(),
    });
    let opening = Instant::now();
    let (id, bucket) = loop {
        let opened = tokio::time::timeout(TRIES_FOR, open_or_make(&connection, &options)).await;
        // An object of which a part is lost is never read to its end.
        let opened = opened
            .unwrap_or_else(|_| Err(not_yet("the stream or its snapshots do not answer: part of them may be lost")));
        match opened {
            Err(Opening::NotYet(detail)) if opening.elapsed() < OPENS_WITHIN => {
                tracing::info!(log = %url, detail, "the log cannot be opened yet");
                tokio::time::sleep(TRY_AGAIN).await;
            }
            Err(Opening::Vanished(_)) if opening.elapsed() < VANISHED_AFTER => tokio::time::sleep(TRY_AGAIN).await,
            Err(Opening::NotYet(detail)) => return Err(unreachable(detail)),
            Err(Opening::Vanished(detail) | Opening::Refused(detail)) => {
                return Err(OpenError::Refused { url: url.to_string(), detail });
            }
            Ok(opened) => break opened,
        }
    };
    let _ = connection.subject.set(url.subject(&id.to_string()).into());
    let findings = loop {
        match check(&connection, requirements).await {
            Err(detail) if opening.elapsed() < OPENS_WITHIN => {
                tracing::info!(log = %url, detail, "the log cannot be checked yet");
                tokio::time::sleep(TRY_AGAIN).await;
            }
            checked => break checked.map_err(unreachable)?,
        }
    };
    report(&findings, &[]);
    let fatal: Vec<&str> = findings.iter().filter(|found| found.is_fatal).map(|found| found.text.as_str()).collect();
    if !fatal.is_empty() {
        return Err(OpenError::Refused { url: url.to_string(), detail: fatal.join("; ") });
    }
    let findings = Arc::new(Mutex::new(findings));
    tokio::spawn(tick(connection.clone()));
    tokio::spawn(check_again(connection.clone(), requirements.clone(), findings.clone()));
    let member = format!("{:016x}", Nonce::random().0 as u64);
    Ok(NatsLog { connection, bucket, id, member, members: Arc::default(), findings })
}

pub(super) async fn connect(options: &NatsOptions) -> Result<Client, Opening> {
    let refused = |detail: String| Opening::Refused(detail);
    let mut connect = ConnectOptions::new()
        .name("holdfast")
        .connection_timeout(CONNECTS_WITHIN)
        .request_timeout(Some(ANSWERS_WITHIN))
        .ping_interval(PING_EVERY)
        .retain_servers_order()
        .event_callback(|event| async move { tracing::info!(%event, "the connection to NATS") })
        // A server that is gone is tried again soon: writes wait for it.
        .reconnect_delay_callback(|attempts| Duration::from_millis(if attempts < 3 { 20 } else { 200 }));
    // IMPORTANT: async-nats passes over what the URLs of servers say of a user.
    match &options.url.login {
        Some(Login::User { name, password }) => connect = connect.user_and_password(name.clone(), password.clone()),
        Some(Login::Token(token)) => connect = connect.token(token.clone()),
        None => {}
    }
    if let Some(path) = &options.credentials {
        let failed = |error| format!("the credentials {} cannot be used: {error}", path.display());
        connect = connect.credentials_file(path).await.map_err(failed).map_err(refused)?;
    }
    if let Some(path) = &options.nkey {
        let failed = |error| format!("{}: {error}", path.display());
        let seed = std::fs::read_to_string(path).map_err(failed).map_err(refused)?;
        connect = connect.nkey(seed.trim().to_owned());
    }
    if let Some(path) = &options.tls_ca {
        connect = connect.add_root_certificates(path.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &options.tls_certificate {
        connect = connect.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
    }
    let servers: Result<Vec<async_nats::ServerAddr>, _> = options.url.servers.iter().map(|url| url.parse()).collect();
    let servers = servers.map_err(|error| refused(error.to_string()))?;
    connect.connect(servers).await.map_err(|error| {
        let detail = format!("NATS cannot be reached: {error}");
        match error.kind() {
            // What is wrong here does not pass.
            ConnectErrorKind::Authentication
            | ConnectErrorKind::AuthorizationViolation
            | ConnectErrorKind::ServerParse
            | ConnectErrorKind::Tls => Opening::Refused(detail),
            _ if is_about_a_certificate(&error) => Opening::Refused(detail),
            _ => Opening::NotYet(detail),
        }
    })
}

/// True when a handshake of TLS has failed: that is told as an error of input.
fn is_about_a_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData))
}

/// Why a log is not open.
pub(super) enum Opening {
    /// It may be in a while.
    NotYet(String),
    /// NATS does not know what it has to know. It may not know it yet, because it has just started.
    Vanished(String),
    Refused(String),
}

impl Opening {
    pub(super) fn detail(self) -> String {
        let (Opening::NotYet(detail) | Opening::Vanished(detail) | Opening::Refused(detail)) = self;
        detail
    }
}

fn not_yet(error: impl std::fmt::Display) -> Opening {
    Opening::NotYet(error.to_string())
}

/// The stream of a log.
pub(super) fn stream_config(name: &str, subject: &str, replicas: usize, id: &str) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        num_replicas: replicas,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        duplicate_window: checks::SHORTEST_WINDOW,
        deny_delete: true,
        description: Some("The log of Holdfast servers. Nothing else may write to it.".into()),
        metadata: HashMap::from([(LOG_ID.to_owned(), id.to_owned())]),
        ..Config::default()
    }
}

async fn open_or_make(connection: &Connection, options: &NatsOptions) -> Result<(LogId, ObjectStore), Opening> {
    let NatsOptions { url, requirements, known, .. } = options;
    let known = known.map(|known| known.to_string());
    let stream = find_stream(connection).await?;
    let bucket = find_bucket(connection).await?;
    let kept = match &bucket {
        Some(bucket) => kept_id(bucket).await?,
        None => None,
    };
    let id = match (stream, kept) {
        // IMPORTANT: a log that has vanished must not be taken for one that has never been.
        (None, Some(id)) => {
            return Err(Opening::Vanished(format!(
                "NATS does not know the stream {}, but there are snapshots of it (log {id}): it was deleted, and with it what was \
                 written since the last snapshot. To give this log up, delete the bucket {} too",
                url.stream(),
                url.bucket()
            )));
        }
        (None, None) if let Some(known) = known => {
            return Err(Opening::Vanished(format!(
                "NATS does not know the stream {}, but this server has used it before (log {known}): it was deleted, or this is \
                 another NATS. To begin a new log, remove log.mark from the data directories of all servers",
                url.stream()
            )));
        }
        (None, None) => {
            let id = format!("{:016x}", Nonce::random().0 as u64);
            let config = stream_config(&url.stream(), &url.subject(&id), requirements.replicas, &id);
            // Another process may make it at the same moment: its id is found at the next attempt.
            if let Err(error) = connection.jetstream.create_stream(config).await {
                return Err(Opening::NotYet(format!(
                    "the stream {} with {} replicas cannot be made: {error}",
                    url.stream(),
                    requirements.replicas
                )));
            }
            tracing::info!(log = %url, id, "a new log is made");
            id
        }
        (Some(info), kept) => {
            let id = info.config.metadata.get(LOG_ID).cloned();
            let Some(id) = id else {
                return Err(Opening::Refused(format!(
                    "the stream {} was not made by Holdfast: it has no {LOG_ID} among its properties",
                    url.stream()
                )));
            };
            if let Some(known) = known.filter(|known| *known != id) {
                return Err(Opening::Refused(format!(
                    "the stream {} is the log {id}, but this server has used the log {known} before. If that one was given up, remove \
                     log.mark from the data directory",
                    url.stream()
                )));
            }
            if let Some(kept) = kept.filter(|kept| *kept != id) {
                return Err(Opening::Refused(format!(
                    "the stream {} is the log {id}, but its snapshots are of the log {kept}",
                    url.stream()
                )));
            }
            id
        }
    };
    let bucket = match bucket {
        Some(bucket) => bucket,
        None => make_bucket(connection, requirements).await?,
    };
    if kept_id(&bucket).await?.is_none() {
        bucket.put(LOG_ID, &mut id.as_bytes()).await.map_err(not_yet)?;
    }
    let number = u64::from_str_radix(&id, 16);
    let number = number.map_err(|_| Opening::Refused(format!("the id of the log is damaged: {id}")))?;
    Ok((LogId(number), bucket))
}

async fn find_stream(connection: &Connection) -> Result<Option<Info>, Opening> {
    match connection.jetstream.get_stream(connection.url.stream()).await {
        Ok(stream) => Ok(Some(stream.cached_info().clone())),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(not_yet(error)),
    }
}

async fn find_bucket(connection: &Connection) -> Result<Option<ObjectStore>, Opening> {
    match connection.jetstream.get_stream(connection.url.bucket_stream()).await {
        Ok(_) => connection.jetstream.get_object_store(connection.url.bucket()).await.map(Some).map_err(not_yet),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(not_yet(error)),
    }
}

async fn make_bucket(connection: &Connection, requirements: &Requirements) -> Result<ObjectStore, Opening> {
    let config = object_store::Config {
        bucket: connection.url.bucket(),
        description: Some("The snapshots of Holdfast servers.".into()),
        max_bytes: -1,
        storage: StorageType::File,
        num_replicas: requirements.replicas,
        ..object_store::Config::default()
    };
    connection.jetstream.create_object_store(config).await.map_err(not_yet)
}

/// The id of the log whose snapshots a bucket has.
async fn kept_id(bucket: &ObjectStore) -> Result<Option<String>, Opening> {
    let mut object = match bucket.get(LOG_ID).await {
        Ok(object) => object,
        Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_yet(error)),
    };
    let mut id = String::new();
    object.read_to_string(&mut id).await.map_err(not_yet)?;
    Ok(Some(id))
}

/// Everything that is not as it should be.
async fn check(connection: &Connection, requirements: &Requirements) -> Result<Vec<Finding>, String> {
    let server = connection.client.server_info();
    let mut findings: Vec<Finding> = checks::check_version(&server.server_name, &server.version).into_iter().collect();
    let stream = connection.jetstream.get_stream(connection.url.stream()).await.map_err(|error| error.to_string())?;
    let info = stream.cached_info();
    findings.extend(checks::check_stream(&info.config, connection.subject(), requirements));
    let replicas = replicas::replicas_of(info, &server.server_name);
    findings.extend(checks::check_syncs(requirements, &replicas).await);
    findings.extend(checks::check_payload(server.max_payload));
    match connection.jetstream.get_stream(connection.url.bucket_stream()).await {
        Ok(bucket) => {
            findings.extend(checks::check_bucket(&bucket.cached_info().config, requirements));
            let newest = newest_snapshot(connection).await.map_err(|error| error.to_string())?;
            findings.extend(checks::check_beginning(info.state.first_sequence, info.state.last_sequence, newest));
        }
        Err(error) if is_unknown(&error) => findings.push(checks::no_bucket(&connection.url)),
        Err(error) => return Err(error.to_string()),
    }
    Ok(findings)
}

/// The frame of the newest snapshot; 0 if there is none.
async fn newest_snapshot(connection: &Connection) -> Result<Position, async_nats::Error> {
    let bucket = connection.jetstream.get_object_store(connection.url.bucket()).await?;
    let mut list = bucket.list().await?;
    let mut names = Vec::new();
    while let Some(object) = list.next().await {
        match object {
            Ok(object) => names.push(object.name),
            Err(error) if is_no_object(&error) => {}
            // IMPORTANT: a list that is cut off must not be taken for a log without snapshots.
            Err(error) => return Err(error.into()),
        }
    }
    Ok(snapshots::newest_position(&names))
}

/// True when NATS says that there is no such stream.
fn is_unknown(error: &jetstream::context::GetStreamError) -> bool {
    matches!(error.kind(), jetstream::context::GetStreamErrorKind::JetStream(cause)
        if cause.error_code() == jetstream::ErrorCode::STREAM_NOT_FOUND)
}

/// Says what was not found before.
fn report(findings: &[Finding], before: &[Finding]) {
    for found in findings.iter().filter(|found| !before.contains(found)) {
        match found.is_fatal {
            true => tracing::error!("{found}"),
            false => tracing::warn!("{found}"),
        }
    }
}

async fn check_again(connection: Arc<Connection>, requirements: Requirements, findings: Arc<Mutex<Vec<Finding>>>) {
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        // Without an answer, nothing is known that was not known before.
        if let Ok(found) = check(&connection, &requirements).await {
            let before = std::mem::replace(&mut *findings.lock(), found.clone());
            report(&found, &before);
        }
    }
}

async fn tick(connection: Arc<Connection>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ticking: Vec<Arc<dyn Tick>> = {
            let mut ticking = connection.ticking.lock();
            ticking.retain(|one| one.strong_count() > 0);
            ticking.iter().filter_map(Weak::upgrade).collect()
        };
        ticking.iter().for_each(|one| one.tick());
    }
}
