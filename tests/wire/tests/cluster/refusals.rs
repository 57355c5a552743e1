//! What is wrong with NATS or the log is found, named and refused. Nothing starts empty.

use std::fs;
use std::process::Command;

use wire::{Connection, binary};

use crate::nats::{Nats, STREAM, role};
use crate::process::{Dir, Holdfast, eventually, fail_to_start, ok};

#[track_caller]
fn says(text: &str, words: &[&str]) {
    words.iter().for_each(|words| assert!(text.contains(words), "no '{words}' in: {text}"));
}

/// Another program publishes to the subject of the log.
#[test]
fn a_foreign_message_stops_all_servers() {
    let Some((nats, mut writer, mut follower)) = Nats::with_pair() else { return };
    ok(&mut writer.connect(), "SET a 1");
    let answer = nats.ask(&nats.subject(), "hello");
    says(&answer, &["\"seq\":"]);
    for server in [&mut writer, &mut follower] {
        assert_eq!(server.wait_for_end().code(), Some(1), "{}", server.stderr());
        says(&server.stderr(), &["is not of this log", "it begins with \"hello\"", "this server stops"]);
    }
    says(&nats.refuse(&[]).stderr, &["is not of this log", "Another program writes to this stream"]);
    // The way back.
    let number: u64 =
        answer.split("\"seq\":").nth(1).and_then(|rest| rest.split([',', '}']).next()?.trim().parse().ok()).unwrap();
    says(&nats.refuse(&["--log-skip", "12,x"]).stderr, &["log-skip is a list of numbers of messages"]);
    let skip = ["--log-skip", &format!("{number}")];
    let writer = nats.writer(&skip);
    let mut connection = writer.connect();
    assert_eq!(connection.run("GET a").text(), "1");
    ok(&mut connection, "SET a 2");
    let follower = nats.follower(&writer, &skip);
    assert_eq!(follower.connect().run("GET a").text(), "2");
    says(&nats.refuse(&[]).stderr, &["is not of this log"]);
}

#[test]
fn a_stream_that_was_deleted_is_not_made_anew() {
    let Some((nats, mut writer, mut follower)) = Nats::with_pair() else { return };
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
    let subject = nats.subject();
    nats.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), "");
    let made =
        format!("{{\"name\":\"{STREAM}\",\"subjects\":[\"{subject}\"],\"storage\":\"file\",\"num_replicas\":1}}");
    says(&nats.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &made), &["\"did_create\":true"]);
    says(&nats.refuse(&[]).stderr, &["was not made by Holdfast"]);
}

/// Regression: the frames of the writer went into the new log, as soon as that was long enough.
#[test]
fn a_writer_of_a_log_that_was_deleted_does_not_write_into_another() {
    let Some(nats) = Nats::start() else { return };
    let mut writer = nats.writer(&[]);
    ok(&mut writer.connect(), "SET a 1");
    for name in [STREAM, "OBJ_HOLDFAST_orders"] {
        says(&nats.ask(&format!("$JS.API.STREAM.DELETE.{name}"), ""), &["\"success\":true"]);
    }
    // It has never used the log.
    let other = nats.writer(&[]);
    for number in 0..50 {
        ok(&mut other.connect(), &format!("SET b {number}"));
    }
    assert_eq!(writer.wait_for_end().code(), Some(1), "{}", writer.stderr());
    says(&writer.stderr(), &["and with it the log", "this server stops"]);
    assert_eq!(other.connect().run("GET b").text(), "49");
}

/// NATS has lost everything, or is another one: a server that knows better does not begin anew.
#[test]
fn a_server_that_has_used_another_log_is_not_started() {
    let Some(nats) = Nats::start() else { return };
    let (server, dir) = nats.begin(&[]);
    eventually("it writes", || Connection::open(server.address()).is_ok_and(|mut fresh| role(&mut fresh) == "master"));
    let mark = dir.path().join("data/log.mark");
    eventually("it remembers", || mark.exists());
    drop(server);
    let known = nats.log_id();
    for name in [STREAM, "OBJ_HOLDFAST_orders"] {
        nats.ask(&format!("$JS.API.STREAM.DELETE.{name}"), "");
    }
    let begin = || {
        let server = nats.begin_in(&dir, &[]);
        (server, || dir.read("stderr"))
    };
    let (mut gone, said) = begin();
    assert_eq!(gone.wait_for_end().code(), Some(1));
    says(&said(), &["this server has used it before", &known, "remove log.mark"]);
    // Another server makes it anew.
    let other = nats.writer(&[]);
    let (mut gone, said) = begin();
    assert_eq!(gone.wait_for_end().code(), Some(1));
    says(&said(), &["but this server has used the log", &known]);
    fs::remove_file(mark).expect("it is given up");
    let (_server, _) = begin();
    ok(&mut other.connect(), "SET a 1");
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
    // Regression: two that shared it replaced each other's mark, and nobody knew.
    let output = Dir::fresh();
    let other = nats.begin_beside(&dir, &output, &[]);
    eventually("it follows", || Connection::open(other.address()).is_ok_and(|mut fresh| role(&mut fresh) == "slave"));
    ok(&mut Connection::open(server.address()).expect("it answers"), "SET a 1");
    eventually("it is said", || output.read("stderr").contains("give each its own dir"));
    drop((server, other));
    // Regression: without its log, a server began empty, and a check found all of it sound.
    let data = dir.path().join("data");
    for words in [&["check"] as &[&str], &["export"], &["--port", "0"]] {
        let directory =
            if words[0] == "--port" { vec!["--dir".as_ref(), data.as_os_str()] } else { vec![data.as_os_str()] };
        let refused = Command::new(binary()).args(words).args(directory).output().expect("it runs");
        let text = String::from_utf8_lossy(&refused.stderr).into_owned() + &String::from_utf8_lossy(&refused.stdout);
        assert!(!refused.status.success() && text.contains("keeps its data in a log on NATS"), "{words:?}: {text}");
    }
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
    let (subject, id) = (nats.subject(), nats.log_id());
    let changed = format!(
        "{{\"name\":\"{STREAM}\",\"subjects\":[\"{subject}\"],\"storage\":\"file\",\"num_replicas\":1,\"discard\":\"old\",\
         \"max_msgs\":1000,\"deny_delete\":true,\"metadata\":{{\"holdfast-log\":\"{id}\"}}}}"
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
