//! What a Sentinel says of a server: names and values, in its order. Knows Redis's field names; refuses to know the protocol.

use super::topology::{DOWN_AFTER_MS, Topology, is_down, name, sentinel_id, server_id};
use engine::persistence::MemberReport;

/// How long a hand-over may take, in milliseconds.
const FAILOVER_TIMEOUT_MS: u64 = 60_000;

pub(super) type Fields = Vec<(&'static str, String)>;

/// How many servers of a log answer as Sentinels: all, and without those that are down. And how many are most of them.
pub(super) struct Quorum {
    pub(super) usable: usize,
    pub(super) majority: usize,
}

impl Quorum {
    pub(super) fn of(topology: &Topology) -> Quorum {
        let voters = 1 + topology.sentinels().count();
        let usable = 1 + topology.sentinels().filter(|sentinel| !is_down(sentinel)).count();
        Quorum { usable, majority: voters / 2 + 1 }
    }
}

pub(super) fn master(topology: &Topology, master: &MemberReport, now_ms: u64) -> Fields {
    let mut fields = common(&topology.name, &server_id(master), "master", master, master.port);
    fields.extend([
        ("info-refresh", master.silent_ms.to_string()),
        ("role-reported", "master".to_owned()),
        ("role-reported-time", now_ms.saturating_sub(topology.master_since_ms).to_string()),
        ("config-epoch", topology.epoch.to_string()),
        ("num-slaves", topology.replicas.len().to_string()),
        ("num-other-sentinels", topology.sentinels().count().to_string()),
        ("quorum", Quorum::of(topology).majority.to_string()),
        ("failover-timeout", FAILOVER_TIMEOUT_MS.to_string()),
        ("parallel-syncs", "1".to_owned()),
    ]);
    fields
}

pub(super) fn replica(topology: &Topology, master: &MemberReport, replica: &MemberReport, now_ms: u64) -> Fields {
    let mut fields = common(&name(replica), &server_id(replica), "slave", replica, replica.port);
    let (link, down_ms) = if is_down(master) { ("err", master.silent_ms) } else { ("ok", 0) };
    fields.extend([
        ("info-refresh", replica.silent_ms.to_string()),
        ("role-reported", "slave".to_owned()),
        ("role-reported-time", now_ms.saturating_sub(topology.master_since_ms).to_string()),
        ("master-link-down-time", down_ms.to_string()),
        ("master-link-status", link.to_owned()),
        ("master-host", master.host.clone()),
        ("master-port", master.port.to_string()),
        ("slave-priority", "100".to_owned()),
        ("slave-repl-offset", replica.sequence.to_string()),
        ("replica-announced", "1".to_owned()),
    ]);
    fields
}

pub(super) fn sentinel(sentinel: &MemberReport) -> Fields {
    let id = sentinel_id(sentinel);
    let mut fields = common(&id, &id, "sentinel", sentinel, sentinel.sentinel_port);
    fields.extend([
        ("last-hello-message", sentinel.silent_ms.to_string()),
        // It votes for none: the log decides which server writes.
        ("voted-leader", "?".to_owned()),
        ("voted-leader-epoch", "0".to_owned()),
    ]);
    fields
}

/// What is said of every server.
fn common(name: &str, id: &str, kind: &str, member: &MemberReport, port: u16) -> Fields {
    let is_down = is_down(member);
    let flags = if is_down { format!("s_down,{kind},disconnected") } else { kind.to_owned() };
    let silent_ms = member.silent_ms.to_string();
    let mut fields = vec![
        ("name", name.to_owned()),
        ("ip", member.host.clone()),
        ("port", port.to_string()),
        ("runid", id.to_owned()),
        ("flags", flags),
        ("link-pending-commands", "0".to_owned()),
        ("link-refcount", "1".to_owned()),
        ("last-ping-sent", if is_down { silent_ms.clone() } else { "0".to_owned() }),
        ("last-ok-ping-reply", silent_ms.clone()),
        ("last-ping-reply", silent_ms),
    ];
    if is_down {
        fields.push(("s-down-time", (member.silent_ms - DOWN_AFTER_MS).to_string()));
    }
    fields.push(("down-after-milliseconds", DOWN_AFTER_MS.to_string()));
    fields
}
