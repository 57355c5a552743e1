//! Where users are kept: a file of their own, or the configuration.

use std::fs;
use std::path::PathBuf;

use crate::process::Dir;
use crate::support::{Own, allowed, can_start_holdfast, ok};
use wire::{Connection, Server};

/// A file with users, and the setting that names it.
struct Kept {
    dir: Dir,
    setting: &'static str,
    file: PathBuf,
}

impl Kept {
    /// Writes the file, and starts a server with it. `None` where there is no holdfast to start.
    fn start(setting: &'static str, text: &str) -> Option<(Kept, Server, Connection)> {
        let dir = can_start_holdfast().then(Dir::fresh)?;
        let file = dir.write("users", text).into();
        let kept = Kept { dir, setting, file };
        let server = kept.server();
        let admin = server.connect();
        Some((kept, server, admin))
    }

    fn server(&self) -> Server {
        Server::start(self.dir.path(), &[self.setting, self.file.to_str().expect("a plain path")])
    }
}

#[test]
fn users_are_loaded_from_a_file_and_saved_to_it() {
    let Some((of_users, server, mut admin)) = Kept::start(
        "--aclfile",
        "# comment\nuser bob on >pw ~a:* +get (~b:* +set)\n\nuser default on nopass ~* &* +@all\n",
    ) else {
        return;
    };
    let file = &of_users.file;
    assert_eq!(admin.run("ACL USERS").to_string(), "[\"bob\", \"default\"]");
    ok(&mut admin, "ACL SETUSER bob +del");
    ok(&mut admin, "ACL SETUSER carol on >x");
    ok(&mut admin, "ACL SAVE");
    let saved = fs::read_to_string(file).unwrap();
    assert!(saved.contains("+get +del (~b:* resetchannels -@all +set)") && saved.contains("user carol on"), "{saved}");
    let mut bob = server.connect();
    ok(&mut bob, "AUTH bob pw");
    // What cannot be read changes nothing.
    fs::write(file, "user bob on +nosuch\nfoo\nuser a on\nuser a off\n").unwrap();
    let before = admin.run("ACL LIST").to_string();
    let reply = admin.run("ACL LOAD").to_string();
    for part in [
        ":1: Error in user declaration '+nosuch'",
        ":2: line should start with user keyword",
        ":4: ",
        "WARNING: ACL errors",
    ] {
        assert!(reply.contains(part), "{part}: {reply}");
    }
    assert_eq!(admin.run("ACL LIST").to_string(), before);
    fs::write(file, "user default on nopass ~* &* +@all\nuser carol on >x ~* +@all\n").unwrap();
    ok(&mut admin, "ACL LOAD");
    assert_eq!(bob.read_until_killed(), wire::Reply::Closed, "its user is gone");
    assert_eq!(admin.run("ACL USERS").to_string(), "[\"carol\", \"default\"]");
    drop(server);
    let again = of_users.server();
    ok(&mut again.connect(), "AUTH carol x");
}

/// ACL SAVE and ACL LOAD change no right, whatever is in names and patterns.
#[test]
fn what_is_saved_is_what_is_loaded() {
    let Some((of_users, _server, mut admin)) = Kept::start("--aclfile", "") else { return };
    let _file = &of_users.file;
    for rules in [
        vec![b"~\xff*".as_slice(), b"&\x80", b"+select|\xfe"],
        vec![b"%R~*", b"%W~*", b"~b"],
        vec![b"%RW~*", b"+get", b"~b"],
        vec![b"%RW", b"(%R", b"+get)", b"~)"],
    ] {
        let request = [vec![b"ACL".as_slice(), b"SETUSER", b"b\xfcb", b"reset", b"on"], rules].concat();
        assert_eq!(admin.run_args(&request).to_string(), "+OK");
        let before = admin.run_args(&[b"ACL".as_slice(), b"GETUSER", b"b\xfcb"]);
        ok(&mut admin, "ACL SAVE");
        ok(&mut admin, "ACL LOAD");
        assert_eq!(admin.run_args(&[b"ACL".as_slice(), b"GETUSER", b"b\xfcb"]), before);
    }
    assert!(admin.run("ACL SETUSER \"\" on").is_error(), "a file has no place for that name");
}

/// TOML has UTF-8 alone.
#[test]
fn config_rewrite_refuses_what_the_file_cannot_hold() {
    let Some((of_users, _server, mut admin)) = Kept::start("--config", "") else { return };
    let file = &of_users.file;
    assert_eq!(admin.run_args(&[b"ACL".as_slice(), b"SETUSER", b"bob", b"~\xff"]).to_string(), "+OK");
    assert!(admin.run("CONFIG REWRITE").to_string().starts_with("-ERR the configuration file holds UTF-8 alone"));
    assert_eq!(fs::read_to_string(file).unwrap(), "");
}

#[test]
fn users_in_the_configuration_are_kept_by_config_rewrite() {
    let Some((of_users, server, mut admin)) =
        Kept::start("--config", "timeout = 7 # stays\n\n[[user]]\nname = \"bob\"\nrules = \"on >pw ~a:* +get\"\n")
    else {
        return;
    };
    let file = &of_users.file;
    ok(&mut server.connect(), "AUTH bob pw");
    ok(&mut admin, "ACL SETUSER carol on >x ~* +@read");
    ok(&mut admin, "CONFIG REWRITE");
    let text = fs::read_to_string(file).unwrap();
    assert!(
        text.contains("timeout = 7 # stays") && text.contains("name = \"carol\"") && !text.contains("\"default\""),
        "{text}"
    );
    drop(server);
    let again = of_users.server();
    ok(&mut again.connect(), "AUTH carol x");
    ok(&mut again.connect(), "AUTH bob pw");
}

#[test]
fn limits_are_kept_wherever_users_are() {
    const SHOWN: &str =
        "limit:clients=2 limit:ops=100 limit:in=10485760 limit:out=2000 limit:reply=1024 limit:memory=1073741824";
    let limits = |connection: &mut Connection| {
        let user = connection.run("ACL GETUSER bob");
        let fields = user.items();
        assert_eq!(fields[fields.len() - 2].text(), "limits");
        fields[fields.len() - 1].text().to_owned()
    };
    let Some((of_users, server, mut admin)) = Kept::start("--aclfile", "user default on nopass ~* &* +@all\n") else {
        return;
    };
    let file = &of_users.file;
    ok(
        &mut admin,
        "ACL SETUSER bob on >pw ~* &* +@all LIMIT:Clients=2 limit:memory=1gb limit:ops=100 limit:in=10mb limit:out=2k limit:reply=1kb",
    );
    assert_eq!(limits(&mut admin), SHOWN);
    ok(&mut admin, "ACL SAVE");
    let saved = fs::read_to_string(file).unwrap();
    assert!(saved.lines().any(|line| line.starts_with("user bob on") && line.ends_with(SHOWN)), "{saved}");
    assert!(saved.lines().any(|line| line.ends_with("~* &* +@all")), "without limits, as in Redis: {saved}");
    let (mut bob, mut second) = (server.connect(), server.connect());
    ok(&mut bob, "AUTH bob pw");
    // A change of limits takes no right away: nobody is closed.
    bob.run("SUBSCRIBE x");
    fs::write(file, saved.replace("limit:clients=2 ", "limit:clients=1 ")).unwrap();
    ok(&mut admin, "ACL LOAD");
    assert_eq!(second.run("AUTH bob pw").to_string(), "-LIMIT max number of clients of this user reached");
    assert_eq!(bob.run("PING").to_string(), "[\"pong\", \"\"]");
    fs::write(file, saved.replace("limit:clients=2", "limit:clients=x")).unwrap();
    let reply = admin.run("ACL LOAD").to_string();
    assert!(reply.contains("Error in user declaration 'limit:clients=x': The limit must be a number"), "{reply}");
    fs::write(file, &saved).unwrap();
    drop((server, bob, second));
    let server = of_users.server();
    let mut admin = server.connect();
    assert_eq!(limits(&mut admin), SHOWN);
    ok(&mut admin, "ACL SETUSER bob limit:in=0 limit:reply=0");
    assert_eq!(limits(&mut admin), "limit:clients=2 limit:ops=100 limit:out=2000 limit:memory=1073741824");
    ok(&mut admin, "ACL SETUSER bob resetlimits");
    assert_eq!(limits(&mut admin), "");
    ok(&mut admin, "ACL SETUSER bob limit:ops=5");
    ok(&mut admin, "ACL SETUSER bob reset");
    assert_eq!(limits(&mut admin), "");
    drop(server);
    // In the configuration.
    let Some((of_users, server, mut admin)) =
        Kept::start("--config", "[[user]]\nname = \"bob\"\nrules = \"on >pw ~* +@all limit:in=1mb\"\n")
    else {
        return;
    };
    let _file = &of_users.file;
    assert_eq!(limits(&mut admin), "limit:in=1048576");
    ok(&mut admin, "ACL SETUSER bob limit:clients=7");
    ok(&mut admin, "ACL SETUSER default limit:clients=77");
    ok(&mut admin, "CONFIG REWRITE");
    drop(server);
    let server = of_users.server();
    let mut admin = server.connect();
    assert_eq!(limits(&mut admin), "limit:clients=7 limit:in=1048576");
    assert!(admin.run("ACL LIST").to_string().contains("+@all limit:clients=77"));
}

#[test]
fn a_limit_that_makes_no_sense_is_refused() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "ACL SETUSER bob limit:ops=7");
    for (rule, why) in [
        ("limit:nosuch=1", "Unknown limit, there are clients, ops, in, out, reply and memory"),
        ("limit:=1", "Unknown limit, there are clients, ops, in, out, reply and memory"),
        ("limit:clients", "Syntax error"),
        ("limit:", "Syntax error"),
        ("limit", "Syntax error"),
        ("limit:clients=", "The limit must be a number, 0 for none"),
        ("limit:clients=1k", "The limit must be a number, 0 for none"),
        ("limit:ops=-1", "The limit must be a number, 0 for none"),
        ("limit:ops=+1", "The limit must be a number, 0 for none"),
        ("limit:ops=18446744073709551616", "The limit must be a number, 0 for none"),
        ("limit:in=", "The limit must be a number of bytes such as 10mb, 0 for none"),
        ("limit:in=mb", "The limit must be a number of bytes such as 10mb, 0 for none"),
        ("limit:memory=1tb", "The limit must be a number of bytes such as 10mb, 0 for none"),
        ("limit:reply=1023", "The limit must be at least 1kb, or 0 for none"),
        ("limit:memory=1", "The limit must be at least 128kb, or 0 for none"),
        ("limit:memory=131071", "The limit must be at least 128kb, or 0 for none"),
        // They are the user's, not a selector's.
        ("(limit:ops=1)", "Syntax error"),
    ] {
        let reply = own.admin.run_args(&["ACL", "SETUSER", "bob", "on", rule]).to_string();
        assert_eq!(reply, format!("-ERR Error in ACL SETUSER modifier '{rule}': {why}"));
    }
    let list = own.admin.run("ACL LIST").to_string();
    assert!(list.contains("user bob off sanitize-payload resetchannels -@all limit:ops=7"), "{list}");
}

#[test]
fn without_a_file_there_is_nothing_to_save() {
    let Some(mut own) = Own::start(&[]) else { return };
    for line in ["ACL SAVE", "ACL LOAD"] {
        let reply = own.admin.run(line).to_string();
        assert!(reply.starts_with("-ERR This Redis instance is not configured to use an ACL file."), "{reply}");
    }
    let password = own.admin.run("ACL GENPASS");
    assert_eq!((password.text().len(), own.admin.run("ACL GENPASS 5").text().len()), (64, 2));
    assert_ne!(own.admin.run("ACL GENPASS"), password);
    for wrong in ["0", "4097", "x"] {
        assert!(own.admin.run(&format!("ACL GENPASS {wrong}")).to_string().starts_with("-ERR ACL GENPASS argument"));
    }
    allowed(&mut own.admin, "ACL HELP");
}
