//! The servers that share a log on several machines, as one of them sees the others. Knows what they say of themselves; who
//! writes is decided in the log alone.

use super::keeper::Keeper;
use super::log_mark;
use super::members::{self, Address, HOST};
use super::roles::Order;
use crate::platform::clock::SystemClock;
use anyhow::{Context, Result};
use engine::persistence::{ClusterReport, FollowerReport, WriterReport};
use engine::{Persistence, Settings};
use jetstream::{
    Announcement, Member, Members, Membership, NatsLog, NatsOptions, NatsUrl, Requirements, StreamPlace, Timing,
};
use journal::LogPlace;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the writer may take to say that it hands the log over.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The other servers.
pub(crate) struct Cluster {
    log: NatsLog,
    members: Arc<Members>,
    place: Arc<StreamPlace>,
}

impl Cluster {
    /// Joins the servers of a log; makes it if there is none.
    pub(crate) fn join(url: &NatsUrl, settings: &Settings, clock: &Arc<SystemClock>) -> Result<Arc<Cluster>> {
        let known = log_mark::read(&log_mark::path(&*settings.dir()));
        let options = NatsOptions { known: known.map(|known| known.log), ..options(url, settings) };
        let log = NatsLog::open(options).context("the log cannot be opened")?;
        let membership = Membership {
            name: url.to_string(),
            log: log.id,
            partition: 0,
            member: log.member.clone(),
            address: address(&log, settings).line(),
            timing: Timing::DEFAULT,
            known,
            skip: skipped(&settings.log_skip())?,
        };
        let place = Arc::new(StreamPlace::new(membership, log.stream(), log.objects(), clock.clone()));
        Ok(Arc::new(Cluster { members: log.members(), log, place }))
    }

    pub(crate) fn place(&self) -> Arc<dyn LogPlace> {
        self.place.clone()
    }

    /// Tells the others of this server from now on, listens to them, and hands the log over to one that asks for it.
    pub(crate) fn begin(self: &Arc<Cluster>, keeper: &Arc<Keeper>) {
        let place = self.place.clone();
        log_mark::keep(log_mark::path(&*keeper.settings.dir()), move || place.mark());
        let (said_of, cluster) = (keeper.clone(), self.clone());
        let say = move || {
            let Address { host, port, sentinel_port } = cluster.own_address(&said_of.settings);
            let is_writer = said_of.journal().is_some();
            Announcement {
                id: cluster.log.member.clone(),
                host,
                port,
                sentinel_port,
                is_writer,
                epoch: said_of.journal().map_or_else(|| cluster.place.progress().epoch, |journal| journal.epoch().0),
                sequence: if is_writer { said_of.tail() } else { said_of.roles.applied() },
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }
        };
        let heard = keeper.clone();
        self.log.announce(say, move || heard.notify_workers());
        let (keeper, place, members) = (keeper.clone(), self.place.clone(), self.members.clone());
        self.log.serve_requests(move |member| {
            let is_known = members.list().iter().any(|known| known.said.id == member && !known.said.is_writer);
            let writes = is_known && keeper.journal().is_some() && !keeper.roles.follows();
            if writes {
                tracing::info!(member, "another server asks for the log");
                place.name_successor(member);
                // Whether it is given is seen in the log.
                keeper.roles.give(Order::HandOver { answer: mpsc::channel().0 });
            }
            writes
        });
    }

    /// True when somebody writes: one that is dead need not be asked.
    pub(super) fn hears_writer(&self) -> bool {
        self.place.progress().silent < ANSWERS_WITHIN
    }

    /// The epoch of the last frame that was read.
    pub(super) fn epoch(&self) -> u32 {
        self.place.progress().epoch
    }

    /// Asks the writer for the log. Without an answer it is taken when the writer has been silent for long enough. False: there was
    /// none.
    pub(super) fn ask_for_log(&self) -> bool {
        let answer = self.log.ask_for_log(ANSWERS_WITHIN);
        if let Err(reason) = &answer {
            tracing::warn!(reason, "the writer does not answer: its lease has to end first");
        }
        answer.is_ok()
    }

    /// Names the member that takes the log when it is given up: the one at this address, or the one that is furthest.
    pub(super) fn name_successor(&self, at: Option<&(String, u16)>) -> Result<(), String> {
        let is_meant = |member: &Member| {
            at.is_none_or(|(host, port)| {
                member.said.port == *port && (member.said.host == *host || host == "localhost")
            })
        };
        let followers = self.members.list().into_iter().filter(|member| !member.said.is_writer).filter(is_meant);
        let chosen = followers.max_by_key(|member| member.said.sequence);
        let chosen = chosen.ok_or("FAILOVER requires connected replicas.")?;
        self.place.name_successor(&chosen.said.id);
        Ok(())
    }

    /// The log, for INFO, metrics and health; `lease_left` is that of a writer.
    pub(super) fn report(&self, lease_left: Option<Duration>) -> ClusterReport {
        let progress = self.place.progress();
        ClusterReport {
            log: self.place.name(),
            epoch: progress.epoch,
            lease_left_ms: lease_left.map(|left| left.as_millis() as u64),
            members: self.members.list().len() + 1,
            is_connected: self.log.is_connected(),
            position: progress.position,
            frames: progress.frames,
            silent_ms: progress.silent.as_millis() as u64,
            findings: self.log.findings().iter().map(ToString::to_string).collect(),
        }
    }

    /// What a writer knows of the followers.
    pub(super) fn followers(&self) -> Vec<FollowerReport> {
        let report = |member: Member| FollowerReport {
            host: member.said.host,
            port: member.said.port,
            sequence: member.said.sequence,
            silent_ms: member.heard.elapsed().as_millis() as u64,
        };
        self.members.list().into_iter().filter(|member| !member.said.is_writer).map(report).collect()
    }

    /// Where this server is reached.
    pub(super) fn own_address(&self, settings: &Settings) -> Address {
        address(&self.log, settings)
    }

    /// The other servers. For one that follows, the one of the newest epoch is the writer; one that writes knows none.
    pub(super) fn others(&self, follows: bool) -> Vec<members::Member> {
        let listed = self.members.list();
        let newest =
            listed.iter().filter(|member| follows && member.said.is_writer).map(|member| member.said.epoch).max();
        let report = |Member { said, heard }: Member| members::Member {
            is_writer: said.is_writer && newest == Some(said.epoch),
            address: Address { host: said.host, port: said.port, sentinel_port: said.sentinel_port },
            sequence: said.sequence,
            heard,
        };
        listed.into_iter().map(report).collect()
    }

    /// What a follower knows of the writer, and the newest batch of that.
    pub(super) fn writer(&self) -> (WriterReport, u64) {
        let writers = self.members.list().into_iter().filter(|member| member.said.is_writer);
        match writers.max_by_key(|member| member.said.epoch) {
            Some(Member { said, heard }) => {
                let report = WriterReport {
                    host: said.host,
                    port: said.port,
                    is_connected: true,
                    silent_ms: heard.elapsed().as_millis() as u64,
                    ..WriterReport::default()
                };
                (report, said.sequence)
            }
            None => {
                // The log names it, but it is not heard of.
                let named = self.place.writer().unwrap_or_default();
                let mut words = named.split(' ').skip(1);
                let host = words.next().unwrap_or_default().to_owned();
                let port = words.next().and_then(|port| port.parse().ok()).unwrap_or(0);
                (WriterReport { host, port, ..WriterReport::default() }, 0)
            }
        }
    }
}

/// Where this server is reached: as it is announced, or bound to, or else as NATS sees it.
fn address(log: &NatsLog, settings: &Settings) -> Address {
    let (bound, announced) = (settings.bind(), settings.announced_host());
    let bound: Vec<&str> = bound.split_whitespace().map(|address| address.trim_start_matches('-')).collect();
    let is_any = |address: &&str| matches!(*address, "*" | "0.0.0.0" | "::" | "::*");
    let host = match bound.as_slice() {
        _ if !announced.is_empty() => announced.to_string(),
        // It is reached nowhere else.
        [first, ..] if !bound.iter().any(is_any) => (*first).to_owned(),
        _ => log.local_address().map_or_else(|| HOST.to_owned(), |address| address.to_string()),
    };
    Address { host, port: settings.announced_port(), sentinel_port: settings.sentinel_port() }
}

/// The messages that are passed over, by `log-skip`.
fn skipped(listed: &str) -> Result<BTreeSet<u64>> {
    let numbers = listed.split([',', ' ']).filter(|number| !number.is_empty());
    let numbers = numbers.map(|number| number.parse().ok().filter(|number| *number > 0));
    numbers
        .collect::<Option<_>>()
        .with_context(|| format!("log-skip is a list of numbers of messages, and not '{listed}'"))
}

/// How the settings say that NATS is reached, and what it has to be like.
pub(crate) fn options(url: &NatsUrl, settings: &Settings) -> NatsOptions {
    let file = |path: Arc<str>| (!path.is_empty()).then(|| PathBuf::from(&*path));
    let monitoring = settings.log_monitoring();
    let monitoring = monitoring.split([',', ' ']).filter(|url| !url.is_empty()).map(str::to_owned).collect();
    NatsOptions {
        url: url.clone(),
        credentials: file(settings.log_credentials()),
        nkey: file(settings.log_nkey()),
        tls_ca: file(settings.log_tls_ca_cert_file()),
        tls_certificate: file(settings.log_tls_cert_file()).zip(file(settings.log_tls_key_file())),
        requirements: Requirements {
            replicas: settings.log_replicas(),
            monitoring,
            allow_unsafe_sync: settings.log_unsafe_sync(),
        },
        known: None,
    }
}
