//! What NATS has to be like for the promises of the log, and whether it is. Knows the requirements; changes nothing.

use super::replicas::{ReplicaState, ReplicaStatus};
use super::url::NatsUrl;
use crate::frame::{Damage, Position};
use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType};
use serde_json::Value;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The oldest version of NATS whose faults were looked for.
const VERSION_MIN: (u64, u64, u64) = (2, 15, 1);
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// The answer of a monitoring port is not longer.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A window in which repeated messages are dropped is never used here, and NATS has none that is shorter.
pub(super) const SHORTEST_WINDOW: Duration = Duration::from_millis(100);

/// Frames are not longer than a message may be, and have to hold something.
pub(super) const PAYLOAD_MIN: usize = 64 * 1024;

/// What is asked of NATS.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// How many servers keep each message.
    pub replicas: usize,
    /// The monitoring ports, as `http://host:port`.
    pub monitoring: Vec<String>,
    /// A server that may answer before a message is on its disk is accepted.
    pub allow_unsafe_sync: bool,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub text: String,
    /// The log must not be used like this.
    pub is_fatal: bool,
}

impl Finding {
    pub(super) fn fatal(text: impl Into<String>) -> Finding {
        Finding { text: text.into(), is_fatal: true }
    }

    pub(super) fn warning(text: impl Into<String>) -> Finding {
        Finding { text: text.into(), is_fatal: false }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks the configuration of the stream.
pub(super) fn check_stream(config: &Config, subject: &str, requirements: &Requirements) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut require = |holds: bool, text: &str| {
        if !holds {
            findings.push(Finding::fatal(format!("the stream {}: {text}", config.name)));
        }
    };
    require(config.subjects == [subject], "it has other subjects: other programs could write to the log");
    require(config.storage == StorageType::File, "it is kept in memory, not in files");
    require(config.retention == RetentionPolicy::Limits, "its retention is not by limits: messages vanish when read");
    require(config.discard == DiscardPolicy::New, "it discards old messages when it is full (discard must be new)");
    require(config.max_age.is_zero(), "its messages have a largest age (max_age)");
    require(config.max_messages <= 0, "it has a largest number of messages (max_msgs)");
    require(config.max_messages_per_subject <= 0, "it keeps only some messages of a subject (max_msgs_per_subject)");
    require(config.max_message_size <= 0, "it has a largest message size (max_msg_size)");
    require(
        config.max_bytes <= 0,
        "its size is limited (max_bytes): when it is full nothing is written, not even the snapshot that makes room",
    );
    require(!config.no_ack, "it does not acknowledge messages (no_ack)");
    require(!config.sealed, "it is sealed");
    require(!config.allow_rollup, "messages can replace all others (allow_rollup_hdrs)");
    require(!config.allow_message_ttl, "messages can expire (allow_msg_ttl)");
    require(!config.deny_purge, "it cannot be purged (deny_purge), and would grow for ever");
    require(config.deny_delete, "single messages can be deleted (deny_delete is off)");
    require(config.mirror.is_none() && config.sources.is_none(), "it copies messages of other streams");
    require(config.subject_transform.is_none(), "it changes the subjects of messages");
    let is_async = matches!(config.persist_mode, Some(PersistenceMode::Async));
    require(!is_async, "it answers before a message is stored (persist_mode async)");
    if config.num_replicas != requirements.replicas {
        findings.push(Finding::fatal(format!(
            "the stream {} has {} replicas, and log-replicas is {}",
            config.name, config.num_replicas, requirements.replicas
        )));
    }
    if config.num_replicas == 1 {
        findings.push(Finding::warning(
            "log-replicas is 1: the log is on one server alone. What that server loses is lost, and while it is down nothing is \
             written",
        ));
    }
    findings
}

/// Checks the configuration of the stream in which the snapshots are.
pub(super) fn check_bucket(config: &Config, requirements: &Requirements) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut require = |holds: bool, text: &str| {
        if !holds {
            findings.push(Finding::fatal(format!("the snapshots ({}): {text}", config.name)));
        }
    };
    require(config.storage == StorageType::File, "they are kept in memory, not in files");
    require(config.max_age.is_zero(), "they have a largest age (max_age)");
    require(config.max_bytes <= 0, "their size is limited (max_bytes)");
    require(!config.sealed, "they are sealed");
    let is_async = matches!(config.persist_mode, Some(PersistenceMode::Async));
    require(!is_async, "they are acknowledged before they are stored (persist_mode async)");
    if config.num_replicas != requirements.replicas {
        findings.push(Finding::fatal(format!(
            "the snapshots ({}) have {} replicas, and log-replicas is {}: what the log no longer has is in them alone",
            config.name, config.num_replicas, requirements.replicas
        )));
    }
    findings
}

/// The bucket is gone.
pub(super) fn no_bucket(url: &NatsUrl) -> Finding {
    Finding::fatal(format!(
        "the bucket {} of the snapshots is gone: no snapshot can be written or read, and the log grows. It is made again when a \
         server is started",
        url.bucket()
    ))
}

/// Checks that the log goes on from a snapshot. `newest` is the frame of the newest one; 0 if there is none.
pub(super) fn check_beginning(first: Position, last: Position, newest: Position) -> Option<Finding> {
    (last > 0 && first > newest + 1).then(|| {
        Finding::fatal(format!(
            "{}. While a server writes, BGSAVE there makes a new one",
            Damage::Purged { first, needed: newest + 1 }
        ))
    })
}

/// Checks the longest message that NATS takes.
pub(super) fn check_payload(max_payload: usize) -> Option<Finding> {
    (max_payload < PAYLOAD_MIN).then(|| {
        Finding::fatal(format!(
            "the longest message of NATS (max_payload) is {max_payload} bytes: {PAYLOAD_MIN} are needed"
        ))
    })
}

/// Checks the version of the server that this process is connected to.
pub(super) fn check_version(server: &str, version: &str) -> Option<Finding> {
    let mut numbers = version.split(['.', '-', '+']).map(|number| number.parse::<u64>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let found = (next(), next(), next());
    let (major, minor, patch) = VERSION_MIN;
    (found < VERSION_MIN).then(|| {
        Finding::fatal(format!("the NATS server {server} is of version {version}: {major}.{minor}.{patch} is needed"))
    })
}

/// Asks the monitoring ports whether each server that keeps the log syncs every message before it answers.
pub(super) async fn check_syncs(requirements: &Requirements, replicas: &[ReplicaStatus]) -> Vec<Finding> {
    let unsafe_sync = |text: String| match requirements.allow_unsafe_sync {
        true => Finding::warning(text),
        false => Finding::fatal(text),
    };
    if requirements.monitoring.is_empty() {
        return vec![unsafe_sync(
            "it is not known whether the NATS servers sync each message (sync_interval: always): give their monitoring ports \
             as log-monitoring, or accept a loss at a power failure with log-unsafe-sync"
                .into(),
        )];
    }
    let asked = requirements.monitoring.iter().map(|url| async move { (url, get(url, "/varz").await) });
    let (mut findings, mut known, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for (url, answer) in futures_util::future::join_all(asked).await {
        match answer {
            Err(error) => silent.push(format!("{url} does not answer: {error}")),
            Ok(varz) => {
                let name = varz.get("server_name").and_then(Value::as_str).unwrap_or(url);
                let version = varz.get("version").and_then(Value::as_str).unwrap_or("unknown");
                findings.extend(check_version(name, version));
                if varz.pointer("/jetstream/config/sync_always") != Some(&Value::Bool(true)) {
                    findings.push(unsafe_sync(format!(
                        "the NATS server {name} answers before a message is on its disk: set sync_interval: always"
                    )));
                }
                known.push(name.to_owned());
            }
        }
    }
    let unknown: Vec<_> = replicas.iter().filter(|replica| !known.contains(&replica.server)).collect();
    for ReplicaStatus { server, state, .. } in &unknown {
        findings.push(match state {
            // It has no part in what is acknowledged until it is back.
            ReplicaState::Offline => Finding::warning(format!(
                "the NATS server {server}, which keeps the log, is offline: whether it syncs each message is asked when it is back"
            )),
            _ => unsafe_sync(format!(
                "it is not known whether the NATS server {server}, which keeps the log, syncs each message: no monitoring port of \
                 log-monitoring says that it is this server's"
            )),
        });
    }
    findings.extend(silent.into_iter().map(|text| Finding::warning(format!("the monitoring port {text}"))));
    findings
}

/// What an HTTP server answers at a path.
async fn get(url: &str, path: &str) -> io::Result<Value> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
    let address = url.strip_prefix("http://").ok_or_else(|| wrong("give it as http://host:port"))?;
    let address = address.split('/').next().unwrap_or(address);
    let asked = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        let body = answer.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |end| end + 4);
        serde_json::from_slice(&answer[body..]).map_err(io::Error::other)
    };
    tokio::time::timeout(ANSWERS_WITHIN, asked).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for good in ["2.15.1", "2.15.2-beta", "2.16.0", "3.0.0", "2.100.0"] {
            assert_eq!(check_version("a", good), None, "{good}");
        }
        for old in ["2.15.0", "2.9.25", "1.99.99", "nonsense"] {
            assert!(check_version("a", old).is_some_and(|finding| finding.is_fatal), "{old}");
        }
    }

    #[test]
    fn a_stream_that_could_lose_messages_is_refused() {
        let requirements = Requirements { replicas: 3, monitoring: Vec::new(), allow_unsafe_sync: false };
        let good = super::super::connection::stream_config("S", "s", 3, "0");
        assert_eq!(check_stream(&good, "s", &requirements), []);
        type Change = fn(&mut Config);
        let break_it: [(&str, Change); 10] = [
            ("memory", |config| config.storage = StorageType::Memory),
            ("discards", |config| config.discard = DiscardPolicy::Old),
            ("largest age", |config| config.max_age = Duration::from_secs(1)),
            ("max_msgs", |config| config.max_messages = 5),
            ("max_bytes", |config| config.max_bytes = 1 << 30),
            ("persist_mode", |config| config.persist_mode = Some(PersistenceMode::Async)),
            ("expire", |config| config.allow_message_ttl = true),
            ("subjects", |config| config.subjects.push(">".into())),
            ("replicas", |config| config.num_replicas = 1),
            ("deleted", |config| config.deny_delete = false),
        ];
        for (word, change) in break_it {
            let mut config = good.clone();
            change(&mut config);
            let found = check_stream(&config, "s", &requirements);
            assert!(found.iter().any(|finding| finding.is_fatal && finding.text.contains(word)), "{word}: {found:?}");
        }
    }

    #[test]
    fn a_log_that_does_not_go_on_from_a_snapshot_is_refused() {
        for (first, last, newest) in [(1, 0, 0), (1, 9, 0), (6, 9, 5), (3, 9, 5), (10, 9, 9)] {
            assert_eq!(check_beginning(first, last, newest), None, "{first} {last} {newest}");
        }
        for (first, last, newest) in [(2, 9, 0), (7, 9, 5), (10, 9, 5)] {
            assert!(check_beginning(first, last, newest).is_some_and(|finding| finding.is_fatal));
        }
    }

    #[test]
    fn snapshots_that_could_be_lost_are_refused() {
        let requirements = Requirements { replicas: 3, monitoring: Vec::new(), allow_unsafe_sync: false };
        let good = Config { name: "OBJ_S".into(), storage: StorageType::File, num_replicas: 3, ..Config::default() };
        assert_eq!(check_bucket(&good, &requirements), []);
        type Change = fn(&mut Config);
        let break_it: [(&str, Change); 4] = [
            ("memory", |config| config.storage = StorageType::Memory),
            ("largest age", |config| config.max_age = Duration::from_secs(1)),
            ("replicas", |config| config.num_replicas = 1),
            ("persist_mode", |config| config.persist_mode = Some(PersistenceMode::Async)),
        ];
        for (word, change) in break_it {
            let mut config = good.clone();
            change(&mut config);
            let found = check_bucket(&config, &requirements);
            assert!(found.iter().any(|finding| finding.is_fatal && finding.text.contains(word)), "{word}: {found:?}");
        }
    }
}
