//! The subcommands of SENTINEL: what is known of the servers of this log, and FAILOVER. Refuses to know connections.

use super::command::Cx;
use super::instances::{self, Fields, Quorum};
use super::topology::{Topology, is_down, sentinel_id};
use engine::error::{CommandError, CommandResult};
use engine::persistence::{MemberReport, Role, RoleChange};
use numbers::parse_i64;
use std::cell::Ref;

const NO_SUCH_MASTER: CommandError = CommandError::fixed("ERR No such master with that name");

/// What is known, if this is the writer's name and a writer is known.
fn of_master<'a>(cx: &Cx<'a>, name: &[u8]) -> Result<Ref<'a, Topology>, CommandError> {
    let topology = cx.room.topology();
    match topology.name.as_bytes() == name && topology.master.is_some() {
        true => Ok(topology),
        false => Err(NO_SUCH_MASTER),
    }
}

fn named<'a>(cx: &Cx<'a>) -> Result<Ref<'a, Topology>, CommandError> {
    of_master(cx, cx.request.arg(2))
}

pub(super) fn get_master_addr_by_name(cx: &mut Cx<'_>) -> CommandResult {
    match named(cx) {
        Ok(topology) => {
            let Some(master) = &topology.master else { return Err(NO_SUCH_MASTER) };
            cx.reply.array(2);
            cx.reply.bulk(master.host.as_bytes());
            cx.reply.bulk(master.port.to_string().as_bytes());
        }
        Err(_) => cx.reply.null_array(),
    }
    Ok(())
}

pub(super) fn masters(cx: &mut Cx<'_>) -> CommandResult {
    let topology = cx.room.topology();
    let masters: Vec<Fields> =
        topology.master.iter().map(|master| instances::master(&topology, master, cx.room.now_ms())).collect();
    drop(topology);
    list(cx, &masters);
    Ok(())
}

pub(super) fn master(cx: &mut Cx<'_>) -> CommandResult {
    let topology = named(cx)?;
    let fields = topology.master.iter().map(|master| instances::master(&topology, master, cx.room.now_ms()));
    let fields: Fields = fields.flatten().collect();
    drop(topology);
    instance(cx, &fields);
    Ok(())
}

pub(super) fn replicas(cx: &mut Cx<'_>) -> CommandResult {
    let topology = named(cx)?;
    let of = |master: &MemberReport| -> Vec<Fields> {
        let replica = |replica| instances::replica(&topology, master, replica, cx.room.now_ms());
        topology.replicas.iter().map(replica).collect()
    };
    let replicas = topology.master.as_ref().map(of).unwrap_or_default();
    drop(topology);
    list(cx, &replicas);
    Ok(())
}

pub(super) fn sentinels(cx: &mut Cx<'_>) -> CommandResult {
    let topology = named(cx)?;
    let sentinels: Vec<Fields> = topology.sentinels().map(instances::sentinel).collect();
    drop(topology);
    list(cx, &sentinels);
    Ok(())
}

fn list(cx: &mut Cx<'_>, all: &[Fields]) {
    cx.reply.array(all.len());
    all.iter().for_each(|fields| instance(cx, fields));
}

fn instance(cx: &mut Cx<'_>, fields: &Fields) {
    cx.reply.map(fields.len());
    for (name, value) in fields {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
}

pub(super) fn ckquorum(cx: &mut Cx<'_>) -> CommandResult {
    let text = quorum_text(&Quorum::of(&*named(cx)?))?;
    cx.reply.simple(&text);
    Ok(())
}

/// CKQUORUM's text.
fn quorum_text(quorum: &Quorum) -> Result<String, CommandError> {
    let Quorum { usable, majority } = quorum;
    match usable >= majority {
        true => Ok(format!("OK {usable} usable Sentinels. Quorum and failover authorization can be reached")),
        false => Err(CommandError::said(format!(
            "NOQUORUM {usable} usable Sentinels. Not enough available Sentinels to reach the specified quorum for this \
             master. Not enough available Sentinels to reach the majority and authorize a failover"
        ))),
    }
}

pub(super) fn my_id(cx: &mut Cx<'_>) -> CommandResult {
    let members = cx.room.engine.persistence.replication().members;
    let id = sentinel_id(&members.into_iter().find(|member| member.is_self).unwrap_or_default());
    cx.reply.bulk(id.as_bytes());
    Ok(())
}

/// Whether the writer at this address is down. The vote that Sentinels ask for with it is none: the log decides which
/// server writes.
pub(super) fn is_master_down_by_addr(cx: &mut Cx<'_>) -> CommandResult {
    let port = parse_i64(cx.request.arg(3)).ok_or(CommandError::NotInteger)?;
    parse_i64(cx.request.arg(4)).ok_or(CommandError::NotInteger)?;
    let topology = cx.room.topology();
    let is_meant =
        |master: &&MemberReport| master.host.as_bytes() == cx.request.arg(2) && i64::from(master.port) == port;
    let down = topology.master.as_ref().filter(is_meant).is_some_and(is_down);
    cx.reply.array(3);
    cx.reply.integer(i64::from(down));
    cx.reply.bulk(b"*");
    cx.reply.integer(0);
    Ok(())
}

/// Asks the writer to hand over, as FAILOVER does there.
pub(super) fn failover(cx: &mut Cx<'_>) -> CommandResult {
    drop(named(cx)?);
    let persistence = &cx.room.engine.persistence;
    let replication = persistence.replication();
    if replication.hands_over {
        return Err(CommandError::fixed("INPROG Failover already in progress"));
    }
    if matches!(&replication.role, Role::Writer { followers } if followers.is_empty()) {
        return Err(CommandError::fixed("NOGOODSLAVE No suitable replica to promote"));
    }
    let change = RoleChange::HandOver { to: None, timeout_ms: None, force: false };
    persistence.change_role(change).map_err(|reason| CommandError::said(format!("ERR {reason}")))?;
    cx.reply.ok();
    Ok(())
}

pub(super) fn pending_scripts(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.array(0);
    Ok(())
}

const REFUSED: CommandError = CommandError::fixed(
    "ERR this port tells which servers a log has: they know each other by themselves, and nothing is configured, monitored \
     or reset here",
);

pub(super) fn refused(_: &mut Cx<'_>) -> CommandResult {
    Err(REFUSED)
}

pub(super) fn refused_for_name(cx: &mut Cx<'_>) -> CommandResult {
    drop(named(cx)?);
    Err(REFUSED)
}

pub(super) fn help(cx: &mut Cx<'_>) -> CommandResult {
    const LINES: &[&str] = &[
        "SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "CKQUORUM <master-name>",
        "    Check whether most servers of the log answer.",
        "FAILOVER <master-name>",
        "    Ask the writer to hand over to a follower.",
        "GET-MASTER-ADDR-BY-NAME <master-name>",
        "    Return the ip and port number of the writer.",
        "IS-MASTER-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
        "    Check whether the writer at this address is down.",
        "MASTER <master-name>",
        "    Show the state of the writer.",
        "MASTERS",
        "    Show the state of the writer, in a list.",
        "MYID",
        "    Return the ID of this server as a Sentinel.",
        "PENDING-SCRIPTS",
        "    Return an empty list: there are no scripts.",
        "REPLICAS <master-name>",
        "    Show the followers and their state.",
        "SENTINELS <master-name>",
        "    Show the other servers that answer as Sentinels.",
        "HELP",
        "    Print this help.",
    ];
    cx.reply.array(LINES.len());
    LINES.iter().for_each(|line| cx.reply.simple(line));
    Ok(())
}
