//! Which server is the writer and which ones follow, as clients are told, and the messages when that changes. Knows what
//! Sentinels call it; refuses to know clients and clocks.

use engine::persistence::{MemberReport, Replication};

/// A server that was not heard of for so long counts as down.
pub(super) const DOWN_AFTER_MS: u64 = 2_000;

/// What is published on a channel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) channel: &'static str,
    pub(super) payload: String,
}

/// The servers of a log, as clients are told.
#[derive(Default)]
pub(super) struct Topology {
    /// What clients call the writer.
    pub(super) name: String,
    /// The writer, or the last known one while there is none. `None` if that is known to be a follower by now.
    pub(super) master: Option<MemberReport>,
    /// All others.
    pub(super) replicas: Vec<MemberReport>,
    /// How often another server has become the writer.
    pub(super) epoch: u64,
    /// Since when the writer is the writer.
    pub(super) master_since_ms: u64,
    /// The writer that clients were told of last.
    announced: Option<(String, u16)>,
    /// The writer was heard of then.
    heard_ms: u64,
}

impl Topology {
    pub(super) fn new(name: &str) -> Topology {
        Topology { name: name.to_owned(), ..Topology::default() }
    }

    /// The servers other than this one that answer as Sentinels.
    pub(super) fn sentinels(&self) -> impl Iterator<Item = &MemberReport> {
        self.master.iter().chain(&self.replicas).filter(|member| !member.is_self && member.sentinel_port > 0)
    }

    /// Takes over what is known now. Returns what has changed.
    pub(super) fn observe(&mut self, replication: Replication, now_ms: u64) -> Vec<Message> {
        let (writers, replicas): (Vec<_>, Vec<_>) =
            replication.members.into_iter().filter(|member| member.port > 0).partition(|member| member.is_writer);
        // This server knows best of itself, and it comes first.
        let writer = writers.into_iter().next();
        if writer.is_some() {
            self.heard_ms = now_ms;
        }
        let last = self.master.take();
        let master = writer.or_else(|| {
            let last = last.clone().filter(|last| !last.is_self)?;
            let is_replica = replicas.iter().any(|replica| address(replica) == address(&last));
            let silent_ms = last.silent_ms.max(now_ms.saturating_sub(self.heard_ms));
            (!is_replica).then_some(MemberReport { silent_ms, ..last })
        });
        let known = std::mem::replace(&mut self.replicas, replicas);
        self.master = master;
        self.changes(last.as_ref(), &known, now_ms)
    }

    /// The messages about what differs from a writer and its replicas as they were.
    fn changes(&mut self, last: Option<&MemberReport>, known: &[MemberReport], now_ms: u64) -> Vec<Message> {
        let Some(master) = &self.master else { return Vec::new() };
        let mut messages = Vec::new();
        let mut publish = |channel: &'static str, payload: String| messages.push(Message { channel, payload });
        let replica = |replica: &MemberReport| about_other("slave", &name(replica), replica, &self.name, master);
        let before = self.announced.replace((master.host.clone(), master.port));
        let (host, port) = (&master.host, master.port);
        match before.filter(|before| *before != (host.clone(), port)) {
            Some((old_host, old_port)) => {
                publish("+switch-master", format!("{} {old_host} {old_port} {host} {port}", self.name));
                // As a Sentinel does, for the one that has been the writer too: some clients ask again only then.
                let old = MemberReport { host: old_host, port: old_port, ..MemberReport::default() };
                publish("+slave", replica(&old));
                let is_new = |other: &&MemberReport| address(other) != address(&old);
                self.replicas.iter().filter(is_new).for_each(|other| publish("+slave", replica(other)));
                self.epoch += 1;
                self.master_since_ms = now_ms;
            }
            None => {
                if last.is_none() && self.master_since_ms == 0 {
                    self.master_since_ms = now_ms;
                }
                let payload = || format!("master {} {host} {port}", self.name);
                match (last.is_some_and(is_down), is_down(master)) {
                    (false, true) => publish("+sdown", payload()),
                    (true, false) => publish("-sdown", payload()),
                    _ => {}
                }
                for other in &self.replicas {
                    let before = known.iter().find(|before| address(before) == address(other));
                    match (before.map(is_down), is_down(other)) {
                        (None, _) => publish("+slave", replica(other)),
                        (Some(false), true) => publish("+sdown", replica(other)),
                        (Some(true), false) => publish("-sdown", replica(other)),
                        _ => {}
                    }
                }
                let is_gone = |before: &&MemberReport| {
                    address(before) != address(master)
                        && !self.replicas.iter().any(|other| address(before) == address(other))
                };
                known.iter().filter(is_gone).for_each(|gone| publish("+sdown", replica(gone)));
            }
        }
        let was_sentinel = |sentinel: &MemberReport| {
            last.into_iter()
                .chain(known)
                .any(|before| before.sentinel_port == sentinel.sentinel_port && address(before) == address(sentinel))
        };
        for sentinel in self.sentinels().filter(|sentinel| !was_sentinel(sentinel)) {
            let (id, port) = (sentinel_id(sentinel), sentinel.sentinel_port);
            let at = MemberReport { port, ..sentinel.clone() };
            publish("+sentinel", about_other("sentinel", &id, &at, &self.name, master));
        }
        messages
    }
}

/// As a Sentinel names a server that is not the writer.
fn about_other(kind: &str, name: &str, other: &MemberReport, of: &str, master: &MemberReport) -> String {
    format!("{kind} {name} {} {} @ {of} {} {}", other.host, other.port, master.host, master.port)
}

fn address(member: &MemberReport) -> (&str, u16) {
    (&member.host, member.port)
}

/// `host:port`, as a Sentinel names a replica.
pub(super) fn name(member: &MemberReport) -> String {
    match member.host.contains(':') {
        true => format!("[{}]:{}", member.host, member.port),
        false => format!("{}:{}", member.host, member.port),
    }
}

pub(super) fn is_down(member: &MemberReport) -> bool {
    member.silent_ms >= DOWN_AFTER_MS
}

/// 40 digits by which all servers of a log know a server as a Sentinel.
pub(super) fn sentinel_id(member: &MemberReport) -> String {
    id(&format!("sentinel {}:{}", member.host, member.sentinel_port))
}

/// 40 digits by which all servers of a log know a server.
pub(super) fn server_id(member: &MemberReport) -> String {
    id(&name(member))
}

fn id(text: &str) -> String {
    String::from_utf8_lossy(&lua::sha1hex(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(port: u16) -> MemberReport {
        MemberReport { host: "h".into(), port, sentinel_port: port + 20_000, ..MemberReport::default() }
    }

    fn writer(port: u16) -> MemberReport {
        MemberReport { is_writer: true, ..member(port) }
    }

    fn own(member: MemberReport) -> MemberReport {
        MemberReport { is_self: true, ..member }
    }

    fn silent(member: MemberReport, silent_ms: u64) -> MemberReport {
        MemberReport { silent_ms, ..member }
    }

    fn observe(topology: &mut Topology, now_ms: u64, members: &[MemberReport]) -> Vec<String> {
        let replication = Replication { members: members.to_vec(), ..Replication::default() };
        let messages = topology.observe(replication, now_ms);
        messages.into_iter().map(|message| format!("{} {}", message.channel, message.payload)).collect()
    }

    fn master(topology: &Topology) -> Option<u16> {
        topology.master.as_ref().map(|master| master.port)
    }

    #[test]
    fn a_hand_over_is_told_by_the_old_writer_and_by_the_new_one() {
        // The old writer: it must not say that it still is, and has nobody to name.
        let mut old = Topology::new("m");
        observe(&mut old, 1, &[own(writer(1)), member(2)]);
        assert_eq!(master(&old), Some(1));
        assert!(observe(&mut old, 2, &[own(member(1))]).is_empty());
        assert_eq!(master(&old), None);
        let told = observe(&mut old, 3, &[own(member(1)), writer(2)]);
        assert_eq!(told[..2], ["+switch-master m h 1 h 2", "+slave slave h:1 h 1 @ m h 2"]);
        assert_eq!((master(&old), old.epoch, old.master_since_ms), (Some(2), 1, 3));
        assert!(observe(&mut old, 4, &[own(member(1)), writer(2)]).is_empty());
        // The new one.
        let mut new = Topology::new("m");
        observe(&mut new, 1, &[own(member(2)), writer(1)]);
        let told = observe(&mut new, 2, &[own(writer(2))]);
        assert_eq!(told, ["+switch-master m h 1 h 2", "+slave slave h:1 h 1 @ m h 2"]);
        // Another follower, which is told that the writer follows before it knows the next one.
        let mut other = Topology::new("m");
        observe(&mut other, 1, &[own(member(3)), writer(1), member(2)]);
        observe(&mut other, 2, &[own(member(3)), member(1), member(2)]);
        assert_eq!(master(&other), None);
        assert!(
            observe(&mut other, 3, &[own(member(3)), writer(2), member(1)])[0].starts_with("+switch-master m h 1 h 2")
        );
    }

    #[test]
    fn a_dead_writer_is_named_until_another_one_is_known() {
        let mut topology = Topology::new("m");
        observe(&mut topology, 1, &[own(member(2)), writer(1)]);
        assert!(observe(&mut topology, 2, &[own(member(2)), silent(writer(1), 1_999)]).is_empty());
        let told = observe(&mut topology, 3, &[own(member(2)), silent(writer(1), 2_000)]);
        assert_eq!(told, ["+sdown master m h 1"]);
        assert_eq!(master(&topology), Some(1));
        assert_eq!(observe(&mut topology, 4, &[own(member(2)), writer(1)]), ["-sdown master m h 1"]);
        // No member has it any more.
        assert!(observe(&mut topology, 5, &[own(member(2))]).is_empty());
        assert_eq!(observe(&mut topology, 2_004, &[own(member(2))]), ["+sdown master m h 1"]);
        assert_eq!(master(&topology), Some(1));
        let told = observe(&mut topology, 3_000, &[own(writer(2))]);
        assert_eq!(told[0], "+switch-master m h 1 h 2");
    }

    #[test]
    fn replicas_and_sentinels_come_and_go() {
        let mut topology = Topology::new("m");
        assert!(observe(&mut topology, 1, &[own(member(9))]).is_empty(), "nothing is known yet");
        assert_eq!(master(&topology), None);
        observe(&mut topology, 2, &[own(writer(1))]);
        let told = observe(&mut topology, 3, &[own(writer(1)), member(2)]);
        let id = sentinel_id(&member(2));
        assert_eq!(
            told,
            ["+slave slave h:2 h 2 @ m h 1".to_owned(), format!("+sentinel sentinel {id} h 20002 @ m h 1")]
        );
        let told = observe(&mut topology, 4, &[own(writer(1)), silent(member(2), 5_000)]);
        assert_eq!(told, ["+sdown slave h:2 h 2 @ m h 1"]);
        assert_eq!(observe(&mut topology, 5, &[own(writer(1)), member(2)]), ["-sdown slave h:2 h 2 @ m h 1"]);
        assert_eq!(observe(&mut topology, 6, &[own(writer(1))]), ["+sdown slave h:2 h 2 @ m h 1"]);
        assert_eq!((topology.sentinels().count(), topology.replicas.len()), (0, 0));
    }

    #[test]
    fn addresses_of_version_6_have_brackets() {
        let member = MemberReport { host: "fd00::7".into(), port: 1, ..MemberReport::default() };
        assert_eq!(name(&member), "[fd00::7]:1");
        assert_eq!(server_id(&member).len(), 40);
    }
}
