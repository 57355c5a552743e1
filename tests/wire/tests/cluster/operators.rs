//! What operators see of a log on NATS: metrics, health, `holdfast cluster status` and `holdfast handover`.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use wire::{binary, free_address};

use crate::exposition::{Metrics, Style};
use crate::http::{get, with_port};
use crate::nats::{Nats, STREAM, role};
use crate::process::{eventually, info, ok};

fn tool(words: &[&str]) -> Output {
    Command::new(binary()).args(words).output().expect("cannot start the server's binary")
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn metrics(admin: SocketAddr) -> Metrics {
    let response = get(admin, "/metrics");
    assert_eq!(response.status, 200, "{}", response.body);
    Metrics::parse(&response.body, Style::Prometheus)
}

#[test]
fn metrics_and_health_tell_of_the_log() {
    let Some(mut nats) = Nats::start() else { return };
    let admins = [free_address(), free_address()];
    let writer = nats.writer(&with_port(admins[0], &[]));
    let follower = nats.follower(&writer, &with_port(admins[1], &[]));
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    ok(&mut at_writer, "SET a 1");
    for admin in admins {
        let found = metrics(admin);
        assert_eq!((found.plain("holdfast_log_epoch"), found.plain("holdfast_log_members")), (1.0, 2.0));
        assert_eq!((found.plain("holdfast_log_connected"), found.plain("holdfast_log_findings")), (1.0, 1.0));
        assert!(found.plain("holdfast_log_position") > 0.0 && found.plain("holdfast_log_frames_total") > 0.0);
        eventually("it is ready", || get(admin, "/health/ready").status == 200);
    }
    assert!(metrics(admins[0]).knows("holdfast_log_lease_seconds"));
    assert!(metrics(admins[0]).knows("holdfast_journal_sync_seconds_count"), "how long frames take");
    assert!(!metrics(admins[1]).knows("holdfast_log_lease_seconds"), "a follower has no lease");
    assert!(metrics(admins[1]).knows("holdfast_follower_lag_batches"));
    every_metric_of_the_log_is_documented(&metrics(admins[0]));
    ok(&mut at_writer, "FAILOVER");
    eventually("it has taken over", || role(&mut at_follower) == "master");
    eventually("the epoch is a new one", || {
        admins.iter().all(|admin| metrics(*admin).plain("holdfast_log_epoch") == 2.0)
    });
    // Without NATS the lease ends: it must answer nobody, and says so where it may.
    nats.stop();
    eventually("it is not ready", || get(admins[1], "/health/ready").status == 503);
    assert_eq!(get(admins[1], "/health/ready").body, "lease: it has ended, and replies wait until the log answers\n");
    assert_eq!(metrics(admins[1]).plain("holdfast_log_lease_seconds"), 0.0);
    assert_eq!(get(admins[1], "/health/live").status, 200);
    eventually("the follower hears nothing", || {
        get(admins[0], "/health/ready").body == "log: nothing is heard of it\n"
    });
    nats.restart();
    eventually("both are ready", || admins.iter().all(|admin| get(*admin, "/health/ready").status == 200));
}

/// Of the log's metrics; the tests of metrics have the others.
fn every_metric_of_the_log_is_documented(found: &Metrics) {
    let names = |path: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect(path);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        words.filter(|word| word.starts_with("holdfast_log_")).map(str::to_owned).collect()
    };
    for path in ["config/prometheus/alerts.yaml", "config/grafana/holdfast.json", "docs/operations.md"] {
        let used = names(path);
        assert!(used.len() >= 3, "{path} uses only {used:?}");
        assert!(used.iter().all(|name| found.knows(name)), "{path} uses one of {used:?} that no server has");
    }
    let documented = names("docs/operations.md");
    let ours = found.types.keys().filter(|name| name.starts_with("holdfast_log_"));
    let missing: Vec<_> = ours.filter(|name| !documented.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/operations.md has no row for {missing:?}");
}

#[test]
fn the_status_of_a_cluster() {
    let Some(nats) = Nats::start() else { return };
    let (url, monitoring) = (nats.url(), nats.monitoring());
    let status = |more: &[&str]| {
        let asked = ["cluster", "status", "--log", &url, "--log-monitoring", &monitoring];
        tool(&[&asked, more].concat())
    };
    let none = status(&[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(printed(&none).contains("WRONG: there is no log orders"), "{}", printed(&none));
    assert!(nats.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "").contains("stream not found"), "it makes nothing");
    let writer = nats.writer(&[]);
    let follower = nats.follower(&writer, &[]);
    ok(&mut writer.connect(), "SET a 1");
    ok(&mut writer.connect(), "SAVE");
    eventually("nothing is wrong", || status(&[]).status.code() == Some(0));
    let text = printed(&status(&[]));
    for words in [
        format!("writer    {}, epoch 1", writer.address()),
        format!("{}  follower  1 ", follower.address()),
        "replicas  lonely: leader".to_owned(),
        "note: log-replicas is 1".to_owned(),
        "snapshot at  epoch  keys".to_owned(),
        "nothing is wrong".to_owned(),
    ] {
        assert!(text.contains(&words), "no '{words}' in:\n{text}");
    }
    let json = printed(&status(&["--json"]));
    for words in [format!("\"writer\": \"{}\"", writer.address()), "\"ok\": true".into(), "\"wrong\": []".into()] {
        assert!(json.contains(&words), "no '{words}' in:\n{json}");
    }
    // It is told by the same settings that a server has; a number of replicas that was asked for is required.
    let replicas = printed(&status(&["--log-replicas", "5"]));
    assert!(replicas.contains("WRONG: the stream HOLDFAST_orders has 1 replicas, and log-replicas is 5"), "{replicas}");
    drop(writer);
    drop(follower);
    let alone = status(&[]);
    assert_eq!(alone.status.code(), Some(1));
    assert!(printed(&alone).contains("WRONG: no server uses this log"), "{}", printed(&alone));
    nats.ask("$JS.API.STREAM.DELETE.OBJ_HOLDFAST_orders", "");
    let bucket = printed(&status(&[]));
    assert!(bucket.contains("WRONG: the bucket HOLDFAST_orders of the snapshots is gone"), "{bucket}");
    nats.ask(&nats.subject(), "hello");
    let foreign = printed(&status(&[]));
    assert!(foreign.contains("is not of this log: it begins with \"hello\""), "{foreign}");
    for (asked, words) in [
        (&["cluster", "status"][..], "no log is named"),
        (&["cluster", "status", "--log", "file:x"], "there is no cluster"),
        (&["cluster", "status", "--log", "nats://127.0.0.1:1/x"], "NATS cannot be reached"),
    ] {
        let refused = tool(asked);
        assert!(refused.status.code() == Some(1) && printed(&refused).contains(words), "{}", printed(&refused));
    }
}

#[test]
fn a_hand_over_from_the_command_line() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.member_with_password("secret");
    let mut at_writer = writer.connect();
    ok(&mut at_writer, "AUTH secret");
    eventually("it writes", || role(&mut at_writer) == "master");
    let follower = nats.member_with_password("secret");
    let mut at_follower = follower.connect();
    ok(&mut at_follower, "AUTH secret");
    eventually("the writer knows of it", || info::<u32>(&mut at_writer, "connected_slaves") == 1);
    let refused = tool(&["handover", "--log", &nats.url()]);
    assert!(refused.status.code() == Some(1) && printed(&refused).contains("NOAUTH"), "{}", printed(&refused));
    // By the log, which names the writer.
    let by_log = tool(&["handover", "--log", &nats.url(), "-a", "secret"]);
    let said = format!("{} writes now, {} follows it", follower.address(), writer.address());
    assert!(by_log.status.success() && printed(&by_log).contains(&said), "{}", printed(&by_log));
    assert_eq!((role(&mut at_writer), role(&mut at_follower)), ("slave".into(), "master".into()));
    // By any server: a follower tells who writes.
    eventually("the new writer knows of the old one", || info::<u32>(&mut at_follower, "connected_slaves") == 1);
    let port = writer.address().port().to_string();
    let asked = ["handover", "-h", "127.0.0.1", "-p", &port, "--pass", "secret", "--user", "default"];
    let by_port = tool(&[&asked[..], &["--to", &writer.address().to_string()]].concat());
    let said = format!("{} writes now, {} follows it", writer.address(), follower.address());
    assert!(by_port.status.success() && printed(&by_port).contains(&said), "{}", printed(&by_port));
    // To nobody.
    drop(follower);
    eventually("it is forgotten", || info::<u32>(&mut at_writer, "connected_slaves") == 0);
    let alone = tool(&["handover", "-p", &port, "-a", "secret"]);
    assert!(printed(&alone).contains("FAILOVER requires connected replicas"), "{}", printed(&alone));
    assert_eq!(alone.status.code(), Some(1));
}
