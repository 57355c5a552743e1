//! `appendfsync always`, and CLIENT DURABILITY always: a reply means that it is on the disk.

use std::thread;

use wire::{Connection, Reply};

use crate::support::{End, Home, info, ok};

const ALWAYS: &[&str] = &["--appendfsync", "always", "--threads", "2"];

/// Every INCR is one batch, so a counter tells which batch a reader has seen.
struct Counting {
    base: u64,
}

impl Counting {
    /// From a journal that nobody else writes to.
    fn from_here(connection: &mut Connection) -> Counting {
        Counting { base: info(connection, "journal_sequence") }
    }

    /// Whoever saw this count has seen something durable.
    #[track_caller]
    fn assert_durable(&self, asker: &mut Connection, count: i64) {
        let durable = info::<u64>(asker, "journal_durable_sequence");
        assert!(durable >= self.base + count as u64, "{count} was told, but only {} are durable", durable - self.base);
    }
}

#[test]
fn a_reply_means_durable() {
    for (policy, asked) in [
        ("always", ""),
        // Changed while it runs, and asked for by one connection.
        ("no", "CONFIG SET appendfsync always"),
        ("everysec", "CLIENT DURABILITY always"),
        ("no", "CLIENT DURABILITY always"),
    ] {
        let Some((_home, server, mut writer)) = Home::serve_client(&["--appendfsync", policy]) else { return };
        if !asked.is_empty() {
            ok(&mut writer, asked);
        }
        let mut asker = server.connect();
        let counting = Counting::from_here(&mut asker);
        for count in 1..=50 {
            assert_eq!(writer.run("INCR counter").integer(), count);
            counting.assert_durable(&mut asker, count);
        }
        // And back.
        for back in ["CLIENT DURABILITY default", "CONFIG SET appendfsync everysec"] {
            ok(&mut writer, back);
        }
        assert_eq!(writer.run("INCR counter").integer(), 51, "{policy} {asked}");
    }
}

#[test]
fn waitaof_waits_until_it_is_durable() {
    let Some((_home, server)) = Home::serve(&["--appendfsync", "no"]) else { return };
    let (mut writer, mut asker) = (server.connect(), server.connect());
    let counting = Counting::from_here(&mut asker);
    for count in 1..=50 {
        let replies = writer.pipeline(&["INCR counter", "WAITAOF 1 0 0"]);
        assert_eq!((replies[0].integer(), replies[1].to_string().as_str()), (count, "[:1, :0]"));
        counting.assert_durable(&mut asker, count);
    }
}

/// Nobody sees a count that is not durable, whoever made it.
#[test]
fn readers_see_only_what_is_durable() {
    let Some((_home, server, mut asker)) = Home::serve_client(ALWAYS) else { return };
    let counting = Counting::from_here(&mut asker);
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let mut writer = server.connect();
            thread::spawn(move || (0..100).for_each(|_| assert!(writer.run("INCR counter").integer() > 0)))
        })
        .collect();
    let (mut reader, mut seen) = (server.connect(), 0);
    while seen < 400 {
        if let Reply::Bulk(count) = reader.run("GET counter") {
            seen = String::from_utf8(count).expect("digits").parse().expect("a number");
            counting.assert_durable(&mut asker, seen);
        }
    }
    for writer in writers {
        writer.join().expect("a writer failed");
    }
}

#[test]
fn many_clients_get_their_own_replies_in_order() {
    const CLIENTS: usize = 50;
    const ROUNDS: i64 = 20;
    let Some((home, server, mut asker)) = Home::serve_client(ALWAYS) else { return };
    let base = info::<u64>(&mut asker, "journal_sequence");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = server.connect();
            thread::spawn(move || {
                for round in 1..=ROUNDS {
                    let lines = [
                        format!("INCR own:{number}"),
                        format!("GET own:{number}"),
                        format!("MSET a:{number} {round} b:{number} {round}"),
                        format!("MGET a:{number} b:{number}"),
                        format!("ECHO {number}:{round}"),
                    ];
                    let replies: Vec<String> = client.pipeline(&lines).iter().map(ToString::to_string).collect();
                    let expected = [
                        format!(":{round}"),
                        format!("\"{round}\""),
                        "+OK".to_owned(),
                        format!("[\"{round}\", \"{round}\"]"),
                        format!("\"{number}:{round}\""),
                    ];
                    assert_eq!(replies, expected, "client {number}");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client failed");
    }
    let durable = info::<u64>(&mut asker, "journal_durable_sequence");
    assert_eq!(durable - base, 2 * CLIENTS as u64 * ROUNDS as u64);
    let server = home.serve_again(server, ALWAYS);
    assert_eq!(server.connect().run("DBSIZE").integer(), 3 * CLIENTS as i64);
}

#[test]
fn a_long_pipeline_is_answered_in_order() {
    const REQUESTS: i64 = 30_000;
    let Some((home, server, mut client)) = Home::serve_client(ALWAYS) else { return };
    let mut reader = server.connect();
    for _ in 0..REQUESTS {
        client.queue_line("INCR counter");
    }
    client.flush();
    assert_eq!(reader.run("PING").to_string(), "+PONG");
    for count in 1..=REQUESTS {
        assert_eq!(client.read().integer(), count);
    }
    assert_eq!(client.run("GET counter").text(), REQUESTS.to_string());
    let server = home.serve_again(server, ALWAYS);
    assert_eq!(server.connect().run("GET counter").text(), REQUESTS.to_string());
}

#[test]
fn a_client_that_stops_sending_gets_all_its_replies() {
    let Some((home, server)) = Home::serve(ALWAYS) else { return };
    for round in 0..20 {
        let mut client = server.connect();
        for _ in 0..500 {
            client.queue_line(&format!("INCR counter:{round}"));
        }
        client.close_sending();
        for count in 1..=500 {
            assert_eq!(client.read(), Reply::Integer(count), "round {round}");
        }
        assert_eq!(client.read(), Reply::Closed);
    }
    let (_server, mut asker) = home.serve_client_again(server, ALWAYS);
    assert!((0..20).all(|round| asker.run(&format!("GET counter:{round}")).text() == "500"));
}

#[test]
fn quit_and_reset_come_after_what_was_written() {
    let Some((home, server, mut client)) = Home::serve_client(ALWAYS) else { return };
    let replies = client.pipeline(&["SET a 1", "RESET", "SET b 2", "CLIENT REPLY SKIP", "SET c 3"][..3]);
    assert_eq!(replies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["+OK", "+RESET", "+OK"]);
    client.queue_line("CLIENT REPLY OFF");
    client.queue_line("SET c 3");
    client.queue_line("CLIENT REPLY ON");
    assert_eq!(client.read().to_string(), "+OK");
    let mut asker = server.connect();
    assert_eq!(info::<u64>(&mut asker, "journal_durable_sequence"), info::<u64>(&mut asker, "journal_sequence"));
    let replies = client.pipeline(&["SET d 4", "QUIT"]);
    assert_eq!(replies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["+OK", "+OK"]);
    assert_eq!(client.read(), Reply::Closed);
    let server = home.serve_again(server, ALWAYS);
    assert_eq!(server.connect().run("MGET a b c d").to_string(), "[\"1\", \"2\", \"3\", \"4\"]");
}

#[test]
fn large_values_are_durable_too() {
    let Some((home, server)) = Home::serve(ALWAYS) else { return };
    let (mut client, mut asker) = (server.connect(), server.connect());
    let value = vec![b'v'; 8 << 20];
    for number in 0..3 {
        assert_eq!(client.run_with(&format!("SET large:{number}"), &[&value]).to_string(), "+OK");
        let appended = info::<u64>(&mut asker, "journal_sequence");
        assert!(info::<u64>(&mut asker, "journal_durable_sequence") >= appended);
    }
    assert!(client.run("GET large:1").bytes() == value);
    let server = home.serve_again(server, ALWAYS);
    assert!(server.connect().run("GET large:2").bytes() == value);
}

/// A client that leaves without waiting takes nothing down, and what it sent is done or not, but not half.
#[test]
fn clients_that_leave_early_do_no_harm() {
    let Some((home, server)) = Home::serve(ALWAYS) else { return };
    for round in 0..50 {
        let mut client = server.connect();
        client.queue_line(&format!("MSET left:{round} 1 right:{round} 1"));
        client.flush();
    }
    let mut asker = server.connect();
    ok(&mut asker, "SET still here");
    let (_server, mut asker) = home.serve_client_again(server, ALWAYS);
    assert_eq!(asker.run("GET still").text(), "here");
    for round in 0..50 {
        let pair = asker.run(&format!("MGET left:{round} right:{round}")).to_string();
        assert!(pair == "[\"1\", \"1\"]" || pair == "[(nil), (nil)]", "{pair}");
    }
}

#[test]
fn a_stop_answers_what_is_in_flight() {
    const REQUESTS: i64 = 3000;
    let Some((home, server, mut client)) = Home::serve_client(ALWAYS) else { return };
    for _ in 0..REQUESTS {
        client.queue_line("INCR counter");
    }
    client.flush();
    End::Term.of(server);
    for count in 1..=REQUESTS {
        assert_eq!(client.read(), Reply::Integer(count));
    }
    assert_eq!(client.read(), Reply::Closed);
    let server = home.start(ALWAYS);
    assert_eq!(server.connect().run("GET counter").text(), REQUESTS.to_string());
}

/// A reply waits for the disk while half of the next request has come. The other half is read all the same.
#[test]
fn half_a_request_behind_a_held_reply_is_finished() {
    const BYTES: usize = 1 << 20;
    let Some((_home, _server, mut client)) = Home::serve_client(ALWAYS) else { return };
    let value = vec![b'v'; BYTES];
    for _ in 0..20 {
        let mut requests = b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n".to_vec();
        requests.extend_from_slice(format!("${BYTES}\r\n").as_bytes());
        let (first, rest) = value.split_at(300_000);
        client.queue_raw(&[&requests[..], first].concat());
        client.flush();
        assert_eq!(client.read().to_string(), "+OK");
        client.queue_raw(&[rest, b"\r\n"].concat());
        client.flush();
        assert_eq!(client.read().to_string(), "+OK");
    }
    assert_eq!(client.run("STRLEN big").integer(), BYTES as i64);
}
