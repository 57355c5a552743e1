//! Where users are kept: a file of their own, or the configuration.

use std::fs;

use crate::support::can_start_holdfast;
use crate::support::{Own, allowed, ok};
use wire::{Server, fresh_dir};

#[test]
fn users_are_loaded_from_a_file_and_saved_to_it() {
    if !can_start_holdfast() {
        return;
    }
    let dir = fresh_dir();
    fs::create_dir_all(&dir).expect("cannot create a directory");
    let file = dir.join("users.acl");
    fs::write(&file, "# comment\nuser bob on >pw ~a:* +get (~b:* +set)\n\nuser default on nopass ~* &* +@all\n")
        .unwrap();
    let path = file.to_str().expect("a plain path");
    let server = Server::start(&dir, &["--aclfile", path]);
    let mut admin = server.connect();
    assert_eq!(admin.run("ACL USERS").to_string(), "[\"bob\", \"default\"]");
    ok(&mut admin, "ACL SETUSER bob +del");
    ok(&mut admin, "ACL SETUSER carol on >x");
    ok(&mut admin, "ACL SAVE");
    let saved = fs::read_to_string(&file).unwrap();
    assert!(saved.contains("+get +del (~b:* resetchannels -@all +set)") && saved.contains("user carol on"), "{saved}");
    let mut bob = server.connect();
    ok(&mut bob, "AUTH bob pw");
    // What cannot be read changes nothing.
    fs::write(&file, "user bob on +nosuch\nfoo\nuser a on\nuser a off\n").unwrap();
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
    fs::write(&file, "user default on nopass ~* &* +@all\nuser carol on >x ~* +@all\n").unwrap();
    ok(&mut admin, "ACL LOAD");
    assert_eq!(bob.read_until_killed(), wire::Reply::Closed, "its user is gone");
    assert_eq!(admin.run("ACL USERS").to_string(), "[\"carol\", \"default\"]");
    drop(server);
    let again = Server::start(&dir, &["--aclfile", path]);
    ok(&mut again.connect(), "AUTH carol x");
}

/// ACL SAVE and ACL LOAD change no right, whatever is in names and patterns.
#[test]
fn what_is_saved_is_what_is_loaded() {
    if !can_start_holdfast() {
        return;
    }
    let dir = fresh_dir();
    fs::create_dir_all(&dir).expect("cannot create a directory");
    let file = dir.join("users.acl");
    fs::write(&file, "").unwrap();
    let server = Server::start(&dir, &["--aclfile", file.to_str().expect("a plain path")]);
    let mut admin = server.connect();
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
    if !can_start_holdfast() {
        return;
    }
    let dir = fresh_dir();
    fs::create_dir_all(&dir).expect("cannot create a directory");
    let file = dir.join("holdfast.toml");
    fs::write(&file, "").unwrap();
    let server = Server::start(&dir, &["--config", file.to_str().expect("a plain path")]);
    let mut admin = server.connect();
    assert_eq!(admin.run_args(&[b"ACL".as_slice(), b"SETUSER", b"bob", b"~\xff"]).to_string(), "+OK");
    assert!(admin.run("CONFIG REWRITE").to_string().starts_with("-ERR the configuration file holds UTF-8 alone"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
}

#[test]
fn users_in_the_configuration_are_kept_by_config_rewrite() {
    if !can_start_holdfast() {
        return;
    }
    let dir = fresh_dir();
    fs::create_dir_all(&dir).expect("cannot create a directory");
    let file = dir.join("holdfast.toml");
    fs::write(&file, "timeout = 7 # stays\n\n[[user]]\nname = \"bob\"\nrules = \"on >pw ~a:* +get\"\n").unwrap();
    let path = file.to_str().expect("a plain path");
    let server = Server::start(&dir, &["--config", path]);
    let mut admin = server.connect();
    ok(&mut server.connect(), "AUTH bob pw");
    ok(&mut admin, "ACL SETUSER carol on >x ~* +@read");
    ok(&mut admin, "CONFIG REWRITE");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("timeout = 7 # stays") && text.contains("name = \"carol\"") && !text.contains("\"default\""),
        "{text}"
    );
    drop(server);
    let again = Server::start(&dir, &["--config", path]);
    ok(&mut again.connect(), "AUTH carol x");
    ok(&mut again.connect(), "AUTH bob pw");
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
