//! Servers of a log that are of an older version: they know nothing of members, and are not disturbed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use crate::group::{Group, Member};
use crate::support::eventually;

#[test]
fn an_older_follower_is_told_what_it_knows() {
    let Some((group, writer)) = Group::with_writer(&[]) else { return };
    let socket = UnixStream::connect(group.home.data().join("holdfast.sock")).expect("the writer listens");
    let mut lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
    let mut socket = socket;
    socket.write_all(b"FOLLOW 4711\nAT 0\n").expect("it is said");
    let mut heard = Vec::new();
    while !heard.iter().any(|line: &String| line.starts_with("TAIL ")) {
        heard.push(lines.next().expect("more").expect("a line"));
    }
    assert!(heard.contains(&format!("WRITER {}", writer.port())), "{heard:?}");
    assert!(heard.iter().all(|line| line.len() < 200), "{heard:?}");
    let mut asks = writer.ask();
    eventually("it is known by its port", || {
        asks.run("SENTINEL REPLICAS holdfast").to_string().contains("\"name\", \"127.0.0.1:4711\"")
    });
    assert_eq!(asks.run("SENTINEL SENTINELS holdfast").to_string(), "[]");
}

#[test]
fn an_older_writer_is_asked_for_nothing_new() {
    let Some((group, writer)) = Group::with_writer(&[]) else { return };
    // In the place of the writer's own socket.
    let path = group.home.data().join("holdfast.sock");
    std::fs::remove_file(&path).expect("the writer listens");
    let listener = UnixListener::bind(&path).expect("a socket");
    let older = std::thread::spawn(move || {
        let (socket, _) = listener.accept().expect("the follower connects");
        let mut answers = socket.try_clone().expect("a socket");
        let mut words = Vec::new();
        for line in BufReader::new(socket).lines().map_while(Result::ok) {
            let word = line.split(' ').next().unwrap_or_default().to_owned();
            let answer = match word.as_str() {
                "FOLLOW" => "WRITER 4712\n",
                "AT" => "TAIL 0\n",
                _ => "",
            };
            let _ = answers.write_all(answer.as_bytes());
            words.push(word);
        }
        words
    });
    let follower: Member = group.follower(&[]);
    let mut asks = follower.ask();
    eventually("the writer is known by its port", || {
        asks.run("SENTINEL GET-MASTER-ADDR-BY-NAME holdfast").to_string() == "[\"127.0.0.1\", \"4712\"]"
    });
    assert!(asks.run("SENTINEL FAILOVER holdfast").is_error());
    assert_eq!(asks.run("SENTINEL SENTINELS holdfast").to_string(), "[]");
    follower.server.kill();
    let words = older.join().expect("it has heard all");
    assert!(words.iter().all(|word| ["FOLLOW", "AT"].contains(&word.as_str())), "{words:?}");
    drop(writer);
}
