//! Looks at a log from outside: the stream, its replicas, the servers that use it, its snapshots, and what is wrong. Joins
//! nothing, makes nothing and writes nothing.

use super::checks::{self, Finding, Requirements};
use super::connection::{self, NatsOptions, OpenError};
use super::members::Announcement;
use super::objects;
use super::replicas::{self, ReplicaState, ReplicaStatus};
use super::shared::LOG_ID;
use super::url::NatsUrl;
use crate::frame::{self, Damage, LogId, Position};
use crate::snapshots;
use async_nats::Client;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::Info;
use async_nats::jetstream::{self, ErrorCode};
use futures_util::StreamExt;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// How long the members are listened to. Each says where it is at least every second.
const LISTENS_FOR: Duration = Duration::from_millis(1200);
/// How long NATS may take for all that is asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A log, as it is found.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Without the password.
    pub url: String,
    /// The NATS server that has answered, and its version.
    pub server: String,
    pub version: String,
    pub id: Option<LogId>,
    /// `None` if there is no such stream, or NATS says nothing of it.
    pub stream: Option<StreamStatus>,
    /// The servers that use it, the writer first.
    pub members: Vec<MemberStatus>,
    /// The newest first.
    pub snapshots: Vec<SnapshotStatus>,
    /// What is wrong (fatal), and what is worth knowing.
    pub findings: Vec<Finding>,
}

/// The stream of a log.
#[derive(Clone, Debug, Default)]
pub struct StreamStatus {
    pub name: String,
    pub replicas: Vec<ReplicaStatus>,
    pub first: Position,
    pub last: Position,
    pub bytes: u64,
    /// The epoch of the last frame.
    pub epoch: Option<u32>,
    /// It has grown while it was looked at.
    pub grows: bool,
}

/// A server that uses the log.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    pub said: Announcement,
    /// Batches that it has not applied yet.
    pub lag: u64,
    /// What the writer had at first, it had not at the end.
    pub is_behind: bool,
}

/// A snapshot of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The frame behind which a reader goes on.
    pub position: Position,
    pub epoch: u32,
    pub created_ms: u64,
    pub keys: u64,
    pub bytes: u64,
}

impl Status {
    /// Looks at a log. Without a number of replicas, any is right.
    pub fn inspect(options: &NatsOptions, replicas: Option<usize>) -> Result<Status, OpenError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs only memory and file descriptors");
        runtime.block_on(inspect(options, replicas))
    }

    /// True when something is wrong.
    pub fn is_wrong(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_fatal)
    }

    /// The server that writes, if one says so. If two do, the one that has taken over.
    pub fn writer(&self) -> Option<&Announcement> {
        let writers = self.members.iter().map(|member| &member.said).filter(|said| said.is_writer);
        writers.max_by_key(|said| said.epoch)
    }

    pub fn to_json(&self) -> String {
        let stream = self.stream.as_ref().map(|stream| {
            let replicas: Vec<_> = stream
                .replicas
                .iter()
                .map(|replica| json!({ "server": replica.server, "state": replica.state.name(), "lag": replica.lag }))
                .collect();
            json!({
                "name": stream.name, "replicas": replicas, "first": stream.first, "last": stream.last,
                "bytes": stream.bytes, "epoch": stream.epoch,
            })
        });
        let address = |said: &Announcement| format!("{}:{}", said.host, said.port);
        let members: Vec<_> = self
            .members
            .iter()
            .map(|MemberStatus { said, lag, .. }| {
                json!({
                    "id": said.id, "address": address(said), "role": if said.is_writer { "writer" } else { "follower" },
                    "epoch": said.epoch, "batch": said.sequence, "lag": lag, "version": said.version,
                })
            })
            .collect();
        let snapshots: Vec<_> = self
            .snapshots
            .iter()
            .map(|SnapshotStatus { position, epoch, created_ms, keys, bytes }| {
                json!({
                    "position": position, "epoch": epoch, "created_ms": created_ms, "keys": keys, "bytes": bytes,
                })
            })
            .collect();
        let said = |is_fatal: bool| {
            let chosen = self.findings.iter().filter(|finding| finding.is_fatal == is_fatal);
            chosen.map(|finding| finding.text.as_str()).collect::<Vec<_>>()
        };
        let status = json!({
            "log": self.url, "id": self.id.map(|id| id.to_string()),
            "nats": { "server": self.server, "version": self.version },
            "stream": stream, "writer": self.writer().map(address), "members": members, "snapshots": snapshots,
            "wrong": said(true), "notes": said(false), "ok": !self.is_wrong(),
        });
        format!("{status:#}")
    }
}

async fn inspect(options: &NatsOptions, replicas: Option<usize>) -> Result<Status, OpenError> {
    let url = &options.url;
    let unreachable = |detail: String| OpenError::Unreachable { url: url.to_string(), detail };
    let client = connection::connect(options).await.map_err(|why| unreachable(why.detail()))?;
    let server = client.server_info();
    let mut status = Status {
        url: url.to_string(),
        server: server.server_name.clone(),
        version: server.version.clone(),
        findings: checks::check_version(&server.server_name, &server.version).into_iter().collect(),
        ..Status::default()
    };
    let jetstream = jetstream::new(client.clone());
    let looked = tokio::time::timeout(ANSWERS_WITHIN, async {
        let before = find_stream(&jetstream, &url.stream()).await?;
        status.members = listen(&client, url).await?;
        let after = find_stream(&jetstream, &url.stream()).await?;
        let bucket = find_bucket(&jetstream, url).await?;
        if let Some(info) = &after {
            let mut requirements = options.requirements.clone();
            requirements.replicas = replicas.unwrap_or(info.config.num_replicas);
            look_at_stream(&jetstream, url, info, before.as_ref(), &mut status).await;
            status.findings.extend(checks::check_stream(
                &info.config,
                &url.subject(info.config.metadata.get(LOG_ID).map_or("", String::as_str)),
                &requirements,
            ));
            let replicas = replicas::replicas_of(info, &status.server);
            status.findings.extend(check_syncs(&requirements, &replicas).await);
            status.findings.extend(checks::check_payload(server.max_payload));
            if let Some(bucket) = find_stream(&jetstream, &url.bucket_stream()).await? {
                status.findings.extend(checks::check_bucket(&bucket.config, &requirements));
            }
        }
        look_at_snapshots(bucket.as_ref(), &mut status).await?;
        check_presence(url, after.is_some(), bucket.is_some(), &mut status.findings);
        Ok::<(), String>(())
    });
    let problem = match looked.await {
        Ok(Ok(())) => None,
        Ok(Err(reason)) => Some(format!("NATS does not say how the log is: {reason}")),
        Err(_) => {
            Some(format!("NATS does not answer within {} seconds: has it lost a majority?", ANSWERS_WITHIN.as_secs()))
        }
    };
    match problem {
        Some(text) => status.findings.push(Finding::fatal(text)),
        None => judge(&mut status),
    }
    Ok(status)
}

/// `None` if NATS does not know it.
async fn find_stream(jetstream: &jetstream::Context, name: &str) -> Result<Option<Info>, String> {
    match jetstream.get_stream(name).await {
        Ok(stream) => Ok(Some(stream.cached_info().clone())),
        Err(error) => match error.kind() {
            jetstream::context::GetStreamErrorKind::JetStream(cause)
                if cause.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                Ok(None)
            }
            _ => Err(error.to_string()),
        },
    }
}

async fn find_bucket(jetstream: &jetstream::Context, url: &NatsUrl) -> Result<Option<ObjectStore>, String> {
    if find_stream(jetstream, &url.bucket_stream()).await?.is_none() {
        return Ok(None);
    }
    jetstream.get_object_store(url.bucket()).await.map(Some).map_err(|error| error.to_string())
}

/// What the members say of themselves for a while.
async fn listen(client: &Client, url: &NatsUrl) -> Result<Vec<MemberStatus>, String> {
    let mut lines = client.subscribe(url.members_subject()).await.map_err(|error| error.to_string())?;
    let mut heard: BTreeMap<String, (Announcement, Announcement)> = BTreeMap::new();
    let listening = async {
        while let Some(line) = lines.next().await {
            if let Some(said) = Announcement::read(&line.payload) {
                let both = heard.entry(said.id.clone()).or_insert_with(|| (said.clone(), said.clone()));
                both.1 = said;
            }
        }
    };
    let _ = tokio::time::timeout(LISTENS_FOR, listening).await;
    Ok(compare(heard.into_values().collect()))
}

/// Compares each member's last words with the writer's first and last.
fn compare(heard: Vec<(Announcement, Announcement)>) -> Vec<MemberStatus> {
    let writer = heard.iter().filter(|(_, last)| last.is_writer).max_by_key(|(_, last)| last.epoch);
    let (first, newest) = writer.map_or((0, 0), |(first, last)| (first.sequence, last.sequence));
    let of = |said: Announcement| MemberStatus {
        lag: newest.saturating_sub(said.sequence),
        is_behind: said.sequence < first,
        said,
    };
    let mut members: Vec<MemberStatus> = heard.into_iter().map(|(_, last)| of(last)).collect();
    members.sort_by_key(|member| (!member.said.is_writer, member.said.host.clone(), member.said.port));
    members
}

async fn look_at_stream(
    jetstream: &jetstream::Context,
    url: &NatsUrl,
    info: &Info,
    before: Option<&Info>,
    status: &mut Status,
) {
    let last = info.state.last_sequence;
    let mut stream = StreamStatus {
        name: url.stream(),
        replicas: replicas::replicas_of(info, &status.server),
        first: info.state.first_sequence,
        last,
        bytes: info.state.bytes,
        epoch: None,
        grows: before.is_some_and(|before| before.state.last_sequence < last),
    };
    match info.config.metadata.get(LOG_ID).and_then(|id| u64::from_str_radix(id, 16).ok()) {
        None => {
            let text =
                format!("the stream {} was not made by Holdfast: it has no {LOG_ID} among its properties", stream.name);
            status.findings.push(Finding::fatal(text));
        }
        Some(id) => {
            status.id = Some(LogId(id));
            match last_frame(jetstream, url, LogId(id), last).await {
                Ok(epoch) => stream.epoch = epoch,
                Err(text) => status.findings.push(Finding::fatal(text)),
            }
        }
    }
    status.stream = Some(stream);
}

/// The epoch of the last frame; `None` if there is none.
async fn last_frame(
    jetstream: &jetstream::Context,
    url: &NatsUrl,
    id: LogId,
    last: Position,
) -> Result<Option<u32>, String> {
    if last == 0 {
        return Ok(None);
    }
    let stream = jetstream.get_stream_no_info(url.stream()).await.map_err(|error| error.to_string())?;
    match stream.get_raw_message(last).await {
        Ok(message) => match frame::glance(id, 0, last, &message.payload) {
            Ok((epoch, _)) => Ok(Some(epoch.0)),
            Err(damage) => Err(damage.to_string()),
        },
        // All that there was is purged.
        Err(error) if error.kind() == jetstream::stream::LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(format!("message {last} of the stream cannot be read: {error}")),
    }
}

/// Whether the servers sync each message, as far as their monitoring ports were given.
async fn check_syncs(requirements: &Requirements, replicas: &[ReplicaStatus]) -> Vec<Finding> {
    if requirements.monitoring.is_empty() {
        return vec![Finding::warning(
            "whether the NATS servers sync each message (sync_interval: always) was not checked: give their monitoring ports \
             as log-monitoring",
        )];
    }
    checks::check_syncs(requirements, replicas).await
}

async fn look_at_snapshots(bucket: Option<&ObjectStore>, status: &mut Status) -> Result<(), String> {
    let Some(bucket) = bucket else { return Ok(()) };
    let mut names = Vec::new();
    let mut list = bucket.list().await.map_err(|error| error.to_string())?;
    while let Some(object) = list.next().await {
        match object {
            Ok(object) => names.push(object.name),
            Err(error) if objects::is_no_object(&error) => {
                let text = format!("the bucket has a message that tells of no object: {error}");
                status.findings.push(Finding::warning(text));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    if names.iter().any(|name| name == LOG_ID) {
        let kept = get(bucket, LOG_ID).await?;
        let kept = String::from_utf8_lossy(&kept).into_owned();
        if let Some(id) = status.id.filter(|id| id.to_string() != kept) {
            let text = format!("the stream is the log {id}, but its snapshots are of the log {kept}");
            status.findings.push(Finding::fatal(text));
        }
    }
    for name in snapshots::manifests(&names) {
        match get(bucket, name).await.map(|bytes| snapshots::Manifest::decode(&bytes)) {
            Ok(Some(manifest)) if !manifest.has_all_blocks(&names) => {
                status.findings.push(Finding::fatal(format!("the snapshot {name} lacks some of its blocks")));
            }
            Ok(Some(manifest)) => status.snapshots.push(SnapshotStatus {
                position: manifest.link.position,
                epoch: manifest.epoch.0,
                created_ms: manifest.created_ms,
                keys: manifest.entries,
                bytes: manifest.bytes,
            }),
            Ok(None) => status.findings.push(Finding::fatal(format!("the snapshot {name} is damaged"))),
            Err(error) => status.findings.push(Finding::fatal(format!("the snapshot {name} cannot be read: {error}"))),
        }
    }
    Ok(())
}

async fn get(bucket: &ObjectStore, name: &str) -> Result<Vec<u8>, String> {
    let mut object = bucket.get(name).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::with_capacity(object.info().size.min(objects::ROOM_MAX));
    object.read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn check_presence(url: &NatsUrl, has_stream: bool, has_bucket: bool, findings: &mut Vec<Finding>) {
    match (has_stream, has_bucket) {
        (true, true) => {}
        (true, false) => findings.push(checks::no_bucket(url)),
        (false, true) => findings.push(Finding::fatal(format!(
            "NATS does not know the stream {}, but there are snapshots of it: it was deleted, and with it what was written since \
             the last snapshot",
            url.stream()
        ))),
        (false, false) => findings.push(Finding::fatal(format!(
            "there is no log {}: the first server that is started with it makes it",
            url.name
        ))),
    }
}

/// Adds what is wrong with what was found.
fn judge(status: &mut Status) {
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    let writers: Vec<&Announcement> =
        status.members.iter().map(|member| &member.said).filter(|said| said.is_writer).collect();
    let address = |said: &Announcement| format!("{}:{}", said.host, said.port);
    if let Some(stream) = &status.stream {
        if !stream.replicas.iter().any(|replica| replica.state == ReplicaState::Leader) {
            wrong.push("the stream has no leader: nothing is written until NATS has chosen one".to_owned());
        }
        for replica in &stream.replicas {
            let (server, lag) = (&replica.server, replica.lag);
            match replica.state {
                ReplicaState::Leader | ReplicaState::Current => {}
                ReplicaState::Behind => wrong.push(format!("the NATS server {server} is behind by {lag} messages")),
                ReplicaState::Offline => {
                    wrong.push(format!("the NATS server {server}, which keeps the log, is offline"))
                }
            }
        }
        if !stream.grows && !writers.is_empty() {
            wrong.push(format!("nothing was written for {} ms, although a server writes", LISTENS_FOR.as_millis()));
        }
        if let Some(newest) = status.snapshots.first() {
            if stream.last < newest.position {
                wrong.push(Damage::Lost { last: stream.last, needed: newest.position }.to_string());
            } else if stream.last > 0 && stream.first > newest.position + 1 {
                wrong.push(Damage::Purged { first: stream.first, needed: newest.position + 1 }.to_string());
            }
        } else if stream.first > 1 {
            wrong.push(Damage::Purged { first: stream.first, needed: 1 }.to_string());
        }
        match (status.members.len(), writers.as_slice()) {
            (0, _) => wrong.push("no server uses this log".to_owned()),
            (_, []) => wrong.push(
                "no server writes: one takes over when the last writer has been silent for long enough".to_owned(),
            ),
            (_, [_]) => {}
            (_, several) => {
                let named: Vec<String> =
                    several.iter().map(|said| format!("{} (epoch {})", address(said), said.epoch)).collect();
                wrong.push(format!(
                    "more than one server says that it writes: {}. Only the one of the newest epoch is answered by the log",
                    named.join(", ")
                ));
            }
        }
        if status.members.len() == 1 {
            notes.push("only one server uses this log: no other can take over".to_owned());
        }
    }
    for member in status.members.iter().filter(|member| member.is_behind && !member.said.is_writer) {
        let shown = address(&member.said);
        wrong.push(format!("{shown} is more than a second behind ({} batches)", member.lag));
    }
    let mut versions: Vec<&str> = status.members.iter().map(|member| member.said.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        notes.push(format!("the servers are of different versions: {}", versions.join(", ")));
    }
    status.findings.extend(wrong.into_iter().map(Finding::fatal));
    status.findings.extend(notes.into_iter().map(Finding::warning));
    // What is wrong comes first.
    status.findings.sort_by_key(|finding| !finding.is_fatal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(port: u16, is_writer: bool, epoch: u32, sequence: u64) -> Announcement {
        let (id, host, version) = (port.to_string(), "h".to_owned(), "1".to_owned());
        Announcement { id, host, port, is_writer, epoch, sequence, version, ..Announcement::default() }
    }

    /// Two servers and three replicas, with nothing wrong.
    fn sound() -> Status {
        let heard =
            vec![(said(2, false, 3, 90), said(2, false, 3, 100)), (said(1, true, 3, 95), said(1, true, 3, 101))];
        let replica = |server: &str, state| ReplicaStatus { server: server.into(), state, lag: 0 };
        let stream = StreamStatus {
            replicas: vec![
                replica("a", ReplicaState::Leader),
                replica("b", ReplicaState::Current),
                replica("c", ReplicaState::Current),
            ],
            first: 11,
            last: 50,
            grows: true,
            ..StreamStatus::default()
        };
        let snapshots = vec![SnapshotStatus { position: 20, epoch: 3, created_ms: 1, keys: 5, bytes: 6 }];
        Status { stream: Some(stream), members: compare(heard), snapshots, ..Status::default() }
    }

    #[test]
    fn a_sound_log_has_no_findings() {
        let mut status = sound();
        judge(&mut status);
        assert_eq!(status.findings, []);
        assert_eq!(status.writer().map(|said| said.port), Some(1));
        let lags: Vec<(u16, u64, bool)> =
            status.members.iter().map(|member| (member.said.port, member.lag, member.is_behind)).collect();
        assert_eq!(lags, [(1, 0, false), (2, 1, false)], "the writer comes first");
        let json: serde_json::Value = serde_json::from_str(&status.to_json()).unwrap();
        assert_eq!((&json["ok"], &json["writer"]), (&json!(true), &json!("h:1")));
    }

    #[test]
    fn whatever_is_wrong_is_said() {
        type Change = fn(&mut Status);
        let break_it: [(&str, Change); 9] = [
            ("no leader", |status| status.stream.as_mut().unwrap().replicas.retain(|one| one.server != "a")),
            ("b, which keeps the log, is offline", |status| {
                status.stream.as_mut().unwrap().replicas[1].state = ReplicaState::Offline;
            }),
            ("b is behind by 7 messages", |status| {
                status.stream.as_mut().unwrap().replicas[1] =
                    ReplicaStatus { server: "b".into(), state: ReplicaState::Behind, lag: 7 };
            }),
            ("nothing was written", |status| status.stream.as_mut().unwrap().grows = false),
            ("the stream ends at message 50", |status| status.snapshots[0].position = 51),
            ("the stream begins at message 11", |status| status.snapshots[0].position = 9),
            ("no server writes", |status| status.members[0].said.is_writer = false),
            ("more than one server says", |status| status.members[1].said.is_writer = true),
            ("h:2 is more than a second behind", |status| status.members[1].is_behind = true),
        ];
        for (words, change) in break_it {
            let mut status = sound();
            change(&mut status);
            judge(&mut status);
            let wrong: Vec<&Finding> = status.findings.iter().filter(|finding| finding.is_fatal).collect();
            assert!(wrong.len() == 1 && wrong[0].text.contains(words), "{words}: {wrong:?}");
        }
        let mut status = sound();
        status.members.clear();
        judge(&mut status);
        assert!(status.is_wrong() && status.findings[0].text.contains("no server uses"), "{:?}", status.findings);
    }
}
