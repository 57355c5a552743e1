//! `holdfast import`: a program that calls it can tell whether everything was taken.

use std::process::{Command, Output};

use wire::{Server, binary};

use crate::support::{Dir, can_start_holdfast};

fn import(file: &str, into: &Dir, more: &[&str]) -> Output {
    let dir = into.path().to_str().expect("the temporary directory has a plain name");
    let mut command = Command::new(binary());
    command.args(["import", file, "--dir", dir]).args(more).output().expect("cannot start the server's binary")
}

fn aof(requests: &[&[&str]]) -> String {
    let mut text = String::new();
    for request in requests {
        text += &format!("*{}\r\n", request.len());
        request.iter().for_each(|word| text += &format!("${}\r\n{word}\r\n", word.len()));
    }
    text
}

#[test]
fn an_import_that_leaves_something_out_says_so_by_its_exit_code() {
    if !can_start_holdfast() {
        return;
    }
    let files = Dir::fresh();
    let whole = aof(&[&["SET", "a", "1"], &["HSET", "h", "f", "v"]]);
    let good = files.write("good.aof", &whole);
    let unsupported = files.write("unsupported.aof", &(whole.clone() + &aof(&[&["ACL", "SETUSER", "someone", "on"]])));
    let elsewhere =
        files.write("elsewhere.aof", &(aof(&[&["SELECT", "99"], &["SET", "b", "1"], &["SELECT", "0"]]) + &whole));
    let cut = files.write("cut.aof", &(whole.clone() + "*3\r\n$3\r\nSET\r\n$1\r\nb"));

    let done = import(&good, &Dir::fresh(), &[]);
    assert_eq!(done.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&done.stderr).contains("--skip-unsupported"));
    for file in [unsupported, elsewhere, cut] {
        let data = Dir::fresh();
        let done = import(&file, &data, &[]);
        let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(3), "{file}: {stdout} {stderr}");
        assert!(stdout.contains("executed 2 commands"), "{stdout}");
        assert!(stderr.contains(&file) && stderr.contains("--skip-unsupported"), "{stderr}");
        // What could be taken is there.
        let server = Server::start(data.path(), &[]);
        assert_eq!(server.connect().run("GET a").text(), "1");
        drop(server);
        let done = import(&file, &Dir::fresh(), &["--skip-unsupported"]);
        assert_eq!(done.status.code(), Some(0), "{file}");
    }
    assert_eq!(import("/no/such.aof", &Dir::fresh(), &[]).status.code(), Some(1));
}

/// A file of Valkey's, whose form differs from Redis's since its version 9.
#[test]
fn a_file_of_valkey_s_is_read() {
    if !can_start_holdfast() {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/formats/tests/fixtures/rdb/valkey-9.1.rdb");
    let data = Dir::fresh();
    let done = import(file, &data, &[]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let server = Server::start(data.path(), &[]);
    let mut client = server.connect();
    assert_eq!(client.run("DBSIZE").to_string(), ":11");
    assert_eq!(client.run("HMGET timed a b c").to_string(), r#"["1", "2", "3"]"#);
    let deadlines = client.run("HPEXPIRETIME timed FIELDS 3 a b c").to_string();
    assert_eq!(deadlines, "[:-1, :4102444800000, :4102444800123]");
}
