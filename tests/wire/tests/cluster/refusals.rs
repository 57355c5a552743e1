//! What is wrong with NATS or the log is found, named and refused. Nothing starts empty.

use std::fs;

use wire::Connection;

use crate::nats::{Nats, STREAM, SUBJECT, role};
use crate::process::{Holdfast, eventually, fail_to_start, ok};

#[track_caller]
fn says(text: &str, words: &[&str]) {
    words.iter().for_each(|words| assert!(text.contains(words), "no '{words}' in: {text}"));
}

/// Another program publishes to the subject of the log.
#[test]
fn a_foreign_message_stops_all_servers() {
    let Some(nats) = Nats::start() else { return };
    let mut writer = nats.writer(&[]);
    let mut follower = nats.follower(&writer, &[]);
    ok(&mut writer.connect(), "SET a 1");
    let answer = nats.ask(SUBJECT, "hello");
    says(&answer, &["\"seq\":"]);
    for server in [&mut writer, &mut follower] {
        assert_eq!(server.wait_for_end().code(), Some(1), "{}", server.stderr());
        says(&server.stderr(), &["is not of this log", "it begins with \"hello\"", "this server stops"]);
    }
    says(&nats.refuse(&[]).stderr, &["is not of this log", "Another program writes to this stream"]);
}

#[test]
fn a_stream_that_was_deleted_is_not_made_anew() {
    let Some(nats) = Nats::start() else { return };
    let mut writer = nats.writer(&[]);
    let mut follower = nats.follower(&writer, &[]);
    ok(&mut writer.connect(), "SET a 1");
    says(&nats.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), ""), &["\"success\":true"]);
    says(
        &nats.refuse(&[]).stderr,
        &["NATS does not know the stream HOLDFAST_orders", "it was deleted", "delete the bucket HOLDFAST_orders too"],
    );
    // Those that run wait for a while: NATS may not know the stream because it has just started.
    for server in [&mut writer, &mut follower] {
        assert_eq!(server.wait_for_end().code(), Some(1), "{}", server.stderr());
        says(&server.stderr(), &["it was deleted, and with it the log", "this server stops"]);
    }
}

/// A stream of the same name, which somebody has made by hand since.
#[test]
fn another_stream_in_the_place_of_the_log_is_refused() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.writer(&[]);
    ok(&mut writer.connect(), "SET a 1");
    drop(writer);
    nats.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), "");
    let made =
        format!("{{\"name\":\"{STREAM}\",\"subjects\":[\"{SUBJECT}\"],\"storage\":\"file\",\"num_replicas\":1}}");
    says(&nats.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &made), &["\"did_create\":true"]);
    says(&nats.refuse(&[]).stderr, &["was not made by Holdfast"]);
}

#[test]
fn a_log_that_was_purged_by_hand_is_refused() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.writer(&[]);
    ok(&mut writer.connect(), "SET a 1");
    drop(writer);
    says(&nats.ask(&format!("$JS.API.STREAM.PURGE.{STREAM}"), ""), &["\"success\":true"]);
    says(&nats.refuse(&[]).stderr, &["the newest snapshot needs message 1", "part of the log is lost"]);
}

#[test]
fn what_nats_has_to_be_like_is_checked() {
    let Some(nats) = Nats::start() else { return };
    drop(nats.writer(&[]));
    let replicas = nats.refuse(&["--log-replicas", "3"]).stderr;
    says(&replicas, &["must not be used", "the stream HOLDFAST_orders has 1 replicas, and log-replicas is 3"]);
    let unknown = nats.refuse(&["--log-monitoring", ""]).stderr;
    says(
        &unknown,
        &["it is not known whether the NATS servers sync each message", "log-monitoring", "log-unsafe-sync"],
    );
    let silent = nats.refuse(&["--log-monitoring", "http://127.0.0.1:1"]).stderr;
    says(
        &silent,
        &[
            "the monitoring port http://127.0.0.1:1 does not answer",
            "it is not known whether the NATS server lonely, which keeps the log, syncs each message",
        ],
    );
    // One port more than there are servers is not needed.
    let more = format!("{},http://127.0.0.1:1", nats.monitoring());
    says(&nats.writer(&["--log-monitoring", &more]).stderr(), &["http://127.0.0.1:1 does not answer"]);
    // With the risk accepted it starts, and says so.
    let accepted = nats.writer(&["--log-monitoring", "", "--log-unsafe-sync", "yes"]);
    says(&accepted.stderr(), &["it is not known whether the NATS servers sync each message"]);
}

/// The port of a server that syncs says nothing of the one that keeps the log.
#[test]
fn the_monitoring_port_of_another_server_does_not_count() {
    let (Some(nats), Some(other)) = (Nats::start(), Nats::start_named("other")) else { return };
    says(
        &nats.refuse(&["--log-monitoring", &other.monitoring()]).stderr,
        &["it is not known whether the NATS server lonely, which keeps the log, syncs each message"],
    );
}

#[test]
fn a_start_waits_for_nats() {
    let Some(mut nats) = Nats::start() else { return };
    nats.stop();
    let (waiting, dir) = nats.begin(&[]);
    eventually("it says so", || dir.read("stderr").contains("NATS cannot be reached"));
    nats.restart();
    eventually("it has begun", || {
        Connection::open(waiting.address()).is_ok_and(|mut fresh| role(&mut fresh) == "master")
    });
}

/// Regression: without its directory, a server remembered nothing, and said so once.
#[test]
fn a_server_makes_its_directory_and_remembers_the_log_there() {
    let Some(nats) = Nats::start() else { return };
    let (server, dir) = nats.begin(&[]);
    eventually("it writes", || Connection::open(server.address()).is_ok_and(|mut fresh| role(&mut fresh) == "master"));
    let mark = dir.path().join("data/log.mark");
    eventually("it remembers", || fs::read_to_string(&mark).is_ok_and(|line| line.starts_with("holdfast-log-mark 1 ")));
}

#[test]
fn a_server_that_does_not_sync_is_refused() {
    let Some(nats) = Nats::start_with("sync_interval: 2m") else { return };
    says(
        &nats.refuse(&[]).stderr,
        &["the NATS server lonely answers before a message is on its disk", "sync_interval: always"],
    );
    drop(nats.writer(&["--log-unsafe-sync", "yes"]));
}

/// A stream whose settings would lose messages. Holdfast makes none such, but somebody may change one.
#[test]
fn a_stream_that_was_changed_is_refused() {
    let Some(nats) = Nats::start() else { return };
    drop(nats.writer(&[]));
    let info = nats.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "");
    let (_, id) = info.split_once("\"holdfast-log\":\"").expect("its id");
    let changed = format!(
        "{{\"name\":\"{STREAM}\",\"subjects\":[\"{SUBJECT}\"],\"storage\":\"file\",\"num_replicas\":1,\"discard\":\"old\",\
         \"max_msgs\":1000,\"deny_delete\":true,\"metadata\":{{\"holdfast-log\":\"{}\"}}}}",
        &id[..16]
    );
    says(&nats.ask(&format!("$JS.API.STREAM.UPDATE.{STREAM}"), &changed), &["\"config\""]);
    says(&nats.refuse(&[]).stderr, &["it discards old messages when it is full", "max_msgs"]);
}

#[test]
fn a_log_on_nats_is_not_used_like_a_directory() {
    let Some(nats) = Nats::start() else { return };
    let url = nats.url();
    says(&nats.refuse(&["--appendonly", "no"]).stderr, &["appendonly cannot be no"]);
    let followed = fail_to_start(&["--follow", &url], &[]).stderr;
    says(&followed, &["is shared by all its servers: give it as log"]);
    for (wrong, words) in [("nats://127.0.0.1:1", "it names no log"), ("nats://127.0.0.1:1/a b", "letters, digits")] {
        says(&fail_to_start(&["--log", wrong], &[]).stderr, &[words]);
    }
    // The variable that names the NATS of these tests is no setting.
    let named = Holdfast::start_with(&[], |command| {
        command.env("HOLDFAST_NATS_SERVER", "x");
    });
    assert!(named.is_some());
}
