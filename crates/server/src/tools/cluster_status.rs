//! `holdfast cluster status`: shows a log on NATS and the servers that share it. Knows how it is laid out for people; what
//! is wrong is decided in `jetstream`.

use crate::durability::{self, LogUrl};
use crate::platform::clock::unix_ms;
use anyhow::{Result, bail};
use engine::Settings;
use jetstream::{NatsOptions, NatsUrl, Status};
use std::fmt::Write;

/// The number of replicas that is asked for if nothing else is said.
const REPLICAS_BY_DEFAULT: usize = 3;

/// Something is wrong. It was said already: only the exit code is left.
#[derive(Debug)]
pub(crate) struct SomethingIsWrong;

impl std::error::Error for SomethingIsWrong {}

impl std::fmt::Display for SomethingIsWrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("something is wrong")
    }
}

pub(crate) fn run(settings: &Settings, as_json: bool) -> Result<()> {
    let (options, _) = nats(settings)?;
    // A stream of another number of replicas is only wrong if that number was asked for.
    let replicas = Some(settings.log_replicas()).filter(|replicas| *replicas != REPLICAS_BY_DEFAULT);
    let status = Status::inspect(&options, replicas)?;
    match as_json {
        true => println!("{}", status.to_json()),
        false => print!("{}", show(&status, unix_ms())),
    }
    if status.is_wrong() { Err(SomethingIsWrong.into()) } else { Ok(()) }
}

/// The log that the settings name, which has to be one on NATS.
pub(super) fn nats(settings: &Settings) -> Result<(NatsOptions, NatsUrl)> {
    match settings.log() {
        unnamed if unnamed.is_empty() => {
            bail!(
                "no log is named: give it as --log nats://HOST:PORT,HOST:PORT,HOST:PORT/NAME, or by the server's --config"
            )
        }
        url => match LogUrl::parse(&url)? {
            LogUrl::Nats(url) => Ok((durability::nats_options(&url, settings), url)),
            LogUrl::Directory(dir) => bail!("{} is on one machine: there is no cluster", dir.display()),
        },
    }
}

/// The status as text.
fn show(status: &Status, now_ms: u64) -> String {
    let mut text = String::new();
    let mut line = |head: &str, rest: String| {
        let _ = writeln!(text, "{head:<10}{rest}");
    };
    let id = status.id.map_or_else(String::new, |id| format!(" ({id})"));
    line("log", format!("{}{id}", status.url));
    line("NATS", format!("{}, version {}", status.server, status.version));
    if let Some(stream) = &status.stream {
        line(
            "stream",
            format!("{}: messages {} to {}, {}", stream.name, stream.first, stream.last, bytes(stream.bytes)),
        );
        for (number, replica) in stream.replicas.iter().enumerate() {
            let behind = if replica.lag > 0 { format!(", {} messages behind", replica.lag) } else { String::new() };
            let head = if number == 0 { "replicas" } else { "" };
            line(head, format!("{}: {}{behind}", replica.server, replica.state.name()));
        }
    }
    match status.writer() {
        Some(writer) => line("writer", format!("{}:{}, epoch {}", writer.host, writer.port, writer.epoch)),
        None => line("writer", "none".to_owned()),
    }
    text.push('\n');
    let mut members = vec![["member", "role", "epoch", "batch", "lag", "version"].map(str::to_owned)];
    members.extend(status.members.iter().map(|member| {
        let said = &member.said;
        let role = if said.is_writer { "writer" } else { "follower" };
        let address = format!("{}:{}", said.host, said.port);
        let numbers = [u64::from(said.epoch), said.sequence, member.lag].map(|number| number.to_string());
        let [epoch, batch, lag] = numbers;
        [address, role.to_owned(), epoch, batch, lag, said.version.clone()]
    }));
    table(&mut text, &members);
    text.push('\n');
    let mut snapshots = vec![["snapshot at", "epoch", "keys", "size", "age"].map(str::to_owned)];
    snapshots.extend(status.snapshots.iter().map(|snapshot| {
        let age_s = now_ms.saturating_sub(snapshot.created_ms) / 1000;
        let numbers = [snapshot.position, u64::from(snapshot.epoch), snapshot.keys].map(|number| number.to_string());
        let [position, epoch, keys] = numbers;
        [position, epoch, keys, bytes(snapshot.bytes), age(age_s)]
    }));
    table(&mut text, &snapshots);
    text.push('\n');
    for finding in &status.findings {
        let _ = writeln!(text, "{}: {finding}", if finding.is_fatal { "WRONG" } else { "note" });
    }
    if !status.is_wrong() {
        text.push_str("nothing is wrong\n");
    }
    text
}

/// Rows in columns; the first is the heading.
fn table<const COLUMNS: usize>(text: &mut String, rows: &[[String; COLUMNS]]) {
    let mut widths = [0; COLUMNS];
    for row in rows {
        row.iter().zip(&mut widths).for_each(|(cell, width)| *width = (*width).max(cell.chars().count()));
    }
    for row in rows {
        let mut line = String::new();
        row.iter().zip(widths).for_each(|(cell, width)| {
            let _ = write!(line, "{cell:<width$}  ");
        });
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if rows.len() == 1 {
        text.push_str("none\n");
    }
}

fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut shown = count as f64;
    let mut unit = 0;
    while shown >= 1024.0 && unit + 1 < UNITS.len() {
        (shown, unit) = (shown / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{shown:.1} {}", UNITS[unit]) }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jetstream::{Announcement, Finding, MemberStatus, ReplicaState, ReplicaStatus, SnapshotStatus, StreamStatus};

    #[test]
    fn a_status_reads_well() {
        let said = Announcement {
            host: "10.0.0.1".into(),
            port: 6379,
            is_writer: true,
            epoch: 4,
            sequence: 1200,
            version: "0.1.0".into(),
            ..Announcement::default()
        };
        let replica = |server: &str, state, lag| ReplicaStatus { server: server.into(), state, lag };
        let stream = StreamStatus {
            name: "HOLDFAST_orders".into(),
            replicas: vec![replica("n1", ReplicaState::Leader, 0), replica("n2", ReplicaState::Behind, 7)],
            first: 11,
            last: 1234,
            bytes: 5 << 20,
            epoch: Some(4),
            grows: true,
        };
        let status = Status {
            url: "nats://n1,n2/orders".into(),
            server: "n1".into(),
            version: "2.15.1".into(),
            stream: Some(stream),
            members: vec![MemberStatus { said, lag: 0, is_behind: false }],
            snapshots: vec![SnapshotStatus { position: 10, epoch: 3, created_ms: 0, keys: 100, bytes: 2048 }],
            findings: vec![Finding { text: "n2 is behind".into(), is_fatal: true }],
            ..Status::default()
        };
        let expected = "\
log       nats://n1,n2/orders
NATS      n1, version 2.15.1
stream    HOLDFAST_orders: messages 11 to 1234, 5.0 MiB
replicas  n1: leader
          n2: behind, 7 messages behind
writer    10.0.0.1:6379, epoch 4

member         role    epoch  batch  lag  version
10.0.0.1:6379  writer  4      1200   0    0.1.0

snapshot at  epoch  keys  size     age
10           3      100   2.0 KiB  2 min

WRONG: n2 is behind
";
        assert_eq!(show(&status, 150_000), expected);
        assert!(show(&Status::default(), 0).ends_with("nothing is wrong\n"));
    }

    #[test]
    fn sizes_and_ages() {
        assert_eq!(
            [0, 1023, 1024, 3 << 30, 5 << 40].map(bytes),
            ["0 bytes", "1023 bytes", "1.0 KiB", "3.0 GiB", "5120.0 GiB"]
        );
        assert_eq!([0, 59, 60, 3599, 3600, 172_800].map(age), ["0 s", "59 s", "1 min", "59 min", "1 h", "2 days"]);
    }
}
