//! Commands about this port as a server: INFO, ROLE, COMMAND, PUBLISH. Refuses to know connections.

use super::command::{Cx, Row, named};
use super::topology::{Topology, is_down, name};
use engine::error::{CommandError, CommandResult};
use engine::{Engine, HOLDFAST_VERSION, REDIS_VERSION};
use std::fmt::Write;

pub(super) fn role(cx: &mut Cx<'_>) -> CommandResult {
    let topology = cx.room.topology();
    cx.reply.array(2);
    cx.reply.bulk(b"sentinel");
    cx.reply.array(usize::from(topology.master.is_some()));
    if topology.master.is_some() {
        cx.reply.bulk(topology.name.as_bytes());
    }
    Ok(())
}

/// Sentinels greet each other so; the servers of a log know each other without.
pub(super) fn publish(_: &mut Cx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR Only HELLO messages are accepted by Sentinel instances."))
}

pub(super) fn info(cx: &mut Cx<'_>) -> CommandResult {
    let wanted: Vec<String> = cx.args(1).map(|section| String::from_utf8_lossy(section).to_lowercase()).collect();
    let has = |section: &str| {
        wanted.is_empty()
            || wanted.iter().any(|name| [section, "default", "all", "everything"].contains(&name.as_str()))
    };
    let mut sections = Vec::new();
    if has("server") {
        sections.push(server_section(&cx.room.engine));
    }
    if has("clients") {
        sections.push(format!("# Clients\r\nconnected_clients:{}\r\n", cx.room.connections()));
    }
    if has("sentinel") {
        sections.push(sentinel_section(&cx.room.topology()));
    }
    cx.reply.verbatim(&sections.join("\r\n"));
    Ok(())
}

fn server_section(engine: &Engine) -> String {
    let mut text = String::from("# Server\r\n");
    let uptime_s = engine.clock.monotonic_ns().saturating_sub(engine.identity.started_ns) / 1_000_000_000;
    let mut add = |name: &str, value: &str| {
        let _ = write!(text, "{name}:{value}\r\n");
    };
    add("redis_version", REDIS_VERSION);
    add("holdfast_version", HOLDFAST_VERSION);
    add("redis_mode", "sentinel");
    add("os", &engine.host.os());
    add("arch_bits", &usize::BITS.to_string());
    add("process_id", &engine.host.process_id().to_string());
    add("run_id", &engine.identity.run_id);
    add("tcp_port", &engine.settings.sentinel_port().to_string());
    add("uptime_in_seconds", &uptime_s.to_string());
    add("uptime_in_days", &(uptime_s / 86_400).to_string());
    text
}

fn sentinel_section(topology: &Topology) -> String {
    let mut text = format!(
        "# Sentinel\r\nsentinel_masters:{}\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n\
         sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:0\r\n",
        u8::from(topology.master.is_some())
    );
    if let Some(master) = &topology.master {
        let status = if is_down(master) { "sdown" } else { "ok" };
        let sentinels = 1 + topology.sentinels().count();
        let _ = write!(
            text,
            "master0:name={},status={status},address={},slaves={},sentinels={sentinels}\r\n",
            topology.name,
            name(master),
            topology.replicas.len(),
        );
    }
    text
}

// COMMAND: names and arities.

pub(super) fn command(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.array(cx.commands.len());
    cx.commands.iter().for_each(|row| describe(cx, row, row.name));
    Ok(())
}

pub(super) fn command_count(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.integer(cx.commands.len() as i64);
    Ok(())
}

pub(super) fn command_list(cx: &mut Cx<'_>) -> CommandResult {
    let sub = |row: &'static Row| row.subcommands.iter().map(move |sub| format!("{}|{}", row.name, sub.name));
    let names = cx.commands.iter().flat_map(|row| std::iter::once(row.name.to_owned()).chain(sub(row)));
    let names: Vec<String> = names.collect();
    cx.reply.array(names.len());
    names.iter().for_each(|name| cx.reply.bulk(name.as_bytes()));
    Ok(())
}

pub(super) fn command_info(cx: &mut Cx<'_>) -> CommandResult {
    let names: Vec<&[u8]> = cx.args(2).collect();
    if names.is_empty() {
        return command(cx);
    }
    cx.reply.array(names.len());
    for name in names {
        match named(cx.commands, name) {
            Some(row) => describe(cx, row, row.name),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

fn describe(cx: &mut Cx<'_>, row: &'static Row, full_name: &str) {
    cx.reply.array(10);
    cx.reply.bulk(full_name.as_bytes());
    cx.reply.integer(row.arity);
    cx.reply.set(0);
    // No command has keys.
    (0..3).for_each(|_| cx.reply.integer(0));
    cx.reply.set(0);
    (0..2).for_each(|_| cx.reply.array(0));
    cx.reply.array(row.subcommands.len());
    row.subcommands.iter().for_each(|sub| describe(cx, sub, &format!("{full_name}|{}", sub.name)));
}

/// No documentation: redis-cli asks for it, and goes on without.
pub(super) fn command_docs(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.map(0);
    Ok(())
}

pub(super) fn command_help(cx: &mut Cx<'_>) -> CommandResult {
    cx.reply.array(1);
    cx.reply.simple("COMMAND, COMMAND COUNT, COMMAND DOCS, COMMAND INFO, COMMAND LIST");
    Ok(())
}
