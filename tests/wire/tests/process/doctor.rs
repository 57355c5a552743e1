//! `holdfast doctor`: what it finds in good and bad configurations, directories and servers, and what its exit code says.
//! What it finds of the machine differs from one to another: unit tests have machines of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use wire::{binary, free_address};

use crate::support::{Dir, Holdfast, can_start_holdfast, eventually, ok};

/// What it said, as JSON.
struct Report {
    code: Option<i32>,
    json: String,
}

impl Report {
    /// The verdict of a check, and what was found.
    fn of(&self, check: &str) -> Option<(&str, &str)> {
        let mut objects = self.json.split('{').filter(|object| object.contains(&format!("\"check\": \"{check}\"")));
        let object = objects.next()?;
        let field =
            |name: &str| object.split(&format!("\"{name}\": \"")).nth(1)?.split("\",\n").next()?.split("\"\n").next();
        Some((field("verdict")?, field("found")?))
    }

    #[track_caller]
    fn expect(&self, check: &str, verdict: &str, words: &str) {
        let Some((given, found)) = self.of(check) else { panic!("nothing about {check}: {}", self.json) };
        assert!(given == verdict && found.contains(words), "{check} is {given}: {found}");
    }

    /// The exit code is that of the worst finding.
    #[track_caller]
    fn assert_consistent(&self) {
        let acts = self.json.contains("\"verdict\": \"act\"");
        assert_eq!(self.code, Some(i32::from(acts)), "{}", self.json);
        assert!(self.json.contains(&format!("\"well\": {}", !acts)), "{}", self.json);
    }
}

fn doctor(args: &[&str]) -> Report {
    let mut command = Command::new(binary());
    command.env_remove("REDISCLI_AUTH").arg("doctor").args(args).arg("--json").stdin(Stdio::null());
    let output = command.output().expect("cannot start the server's binary");
    let json = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    Report { code: output.status.code(), json }
}

/// A directory that only its owner may read.
fn private_dir() -> Dir {
    let dir = Dir::fresh();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    dir
}

#[test]
fn a_good_configuration_and_directory_are_good() {
    if !can_start_holdfast() {
        return;
    }
    let dir = private_dir();
    let report = doctor(&[dir.path().to_str().expect("a plain path"), "--bind", "0.0.0.0", "--requirepass", "s3cret"]);
    report.expect("access", "good", "clients need a password");
    report.expect("persistence", "good", "once a second");
    report.expect("directory-rights", "good", "700");
    report.expect("clock-and-data", "good", "");
    report.expect("configuration-file", "good", "none");
    for check in
        ["file-system", "free-space", "sync-latency", "open-files", "memory", "swap", "overcommit", "clock-jump"]
    {
        assert!(report.of(check).is_some(), "nothing about {check}: {}", report.json);
    }
    report.assert_consistent();
    let named_by_settings = doctor(&["--dir", dir.path().to_str().expect("a plain path")]);
    named_by_settings.expect("directory-rights", "good", dir.path().to_str().expect("a plain path"));
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 0, "nothing is left behind");
}

#[test]
fn contradictions_and_open_doors_are_found() {
    if !can_start_holdfast() {
        return;
    }
    let dir = private_dir();
    let file = dir.write(
        "h.toml",
        "bind = \"0.0.0.0\"\nprotected-mode = false\nappendonly = false\nsave = \"\"\nmaxmemory-policy = \"allkeys-lru\"\n\
         min-replicas-to-write = 1\nmin-replicas-max-lag = 0\nio-threads = 4\n[[user]]\nname = \"default\"\nrules = \"on nopass ~* +@all\"\n",
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let report = doctor(&[dir.path().to_str().expect("a plain path"), "--config", &file]);
    assert_eq!(report.code, Some(1));
    report.expect("access", "act", "0.0.0.0");
    report.expect("persistence", "act", "nothing is stored");
    report.expect("eviction", "act", "maxmemory is 0");
    report.expect("min-replicas", "act", "no effect");
    report.expect("settings-without-effect", "note", "io-threads");
    report.expect("configuration-file", "act", "passwords");
    report.assert_consistent();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    doctor(&[dir.path().to_str().expect("a plain path")]).expect("directory-rights", "act", "777");
}

#[test]
fn what_cannot_be_looked_at_is_told_by_the_exit_code() {
    if !can_start_holdfast() {
        return;
    }
    assert_eq!(doctor(&["/nowhere/data"]).code, Some(2));
    assert_eq!(doctor(&[&format!("redis://{}", free_address())]).code, Some(2));
    assert_eq!(doctor(&["http://127.0.0.1"]).code, Some(2), "it is no server");
    assert_eq!(doctor(&["--config", "/nowhere/h.toml"]).code, Some(2), "the configuration cannot be read");
    let dir = Dir::fresh();
    let file = dir.write("data", "");
    assert_eq!(doctor(&[&file]).code, Some(2), "a file is no directory");
}

#[test]
fn a_running_server_is_asked() {
    // With `always` nothing is left to be synced, however busy the machine is.
    let Some(server) = Holdfast::start(&["--min-replicas-max-lag", "0", "--appendfsync", "always"]) else { return };
    let (url, mut connection) = (format!("redis://{}", server.address()), server.connect());
    ok(&mut connection, "SET a b");
    let report = doctor(&[&url]);
    report.expect("server", "good", "Holdfast ");
    report.expect("journal", "good", "sound");
    report.expect("persistence", "good", "before each reply");
    report.expect("syncs", "good", "on the disk");
    report.expect("followers", "good", "it writes");
    report.expect("clients", "good", "of 10000");
    report.expect("access", "good", "127.0.0.1");
    assert_eq!(report.code, Some(0), "{}", report.json);
    report.assert_consistent();
    ok(&mut connection, "CONFIG SET min-replicas-to-write 1");
    ok(&mut connection, "CONFIG SET appendonly no");
    ok(&mut connection, "CONFIG SET save ''");
    let report = doctor(&[&url]);
    report.expect("persistence", "act", "nothing is stored");
    report.expect("min-replicas", "act", "no effect");
    report.assert_consistent();
}

#[test]
fn a_server_that_other_machines_reach_needs_a_password() {
    let Some(server) = Holdfast::start(&["--protected-mode", "no", "--bind", "127.0.0.1 -192.0.2.1"]) else { return };
    let (url, mut connection) = (format!("redis://{}", server.address()), server.connect());
    ok(&mut connection, "ACL SETUSER doctor on >d +info");
    let report = doctor(&[&url.replace("://", "://doctor:d@")]);
    report.expect("default-user", "unknown", "ACL GETUSER");
    report.expect("configuration", "unknown", "CONFIG GET");
    report.assert_consistent();
    ok(&mut connection, "ACL SETUSER doctor -info");
    assert_eq!(doctor(&[&url.replace("://", "://doctor:d@")]).code, Some(2));
    doctor(&[&url]).expect("access", "act", "everyone");
    ok(&mut connection, "CONFIG SET requirepass s3cret");
    assert_eq!(doctor(&[&url]).code, Some(2), "it asks for a password");
    doctor(&[&url.replace("://", "://:s3cret@")]).expect("access", "good", "need a password");
}

#[test]
fn a_follower_without_its_writer_is_found() {
    let data = Dir::fresh();
    let path = data.path().to_str().expect("a plain path");
    let Some(follower) = can_start_holdfast().then(|| {
        let writer = wire::Server::start(data.path(), &[]);
        let follower = Holdfast::start(&["--follow", path]).expect("the writer could be started");
        doctor(&[&format!("redis://{}", follower.address())]).expect("followers", "good", "closely");
        writer.kill();
        follower
    }) else {
        return;
    };
    let mut connection = follower.connect();
    eventually("it knows", || connection.run("INFO replication").text().contains("master_link_status:down"));
    let report = doctor(&[&format!("redis://{}", follower.address())]);
    report.expect("followers", "act", "does not answer");
    report.assert_consistent();
}
