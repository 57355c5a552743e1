//! What the target does not take, and a source that never ends: the tool stops with the cause, instead of beginning again for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use wire::{Connection, Random};

use crate::compare::assert_equal;
use crate::moves::{end, start, target, url};
use crate::servers::{Product, Source};
use crate::tool::{Tool, wait_until_following};

const MEGABYTE: usize = 1 << 20;

fn fill(client: &mut Connection) {
    for number in 0..30 {
        client.run(&format!("SET small:{number} {number}"));
    }
}

/// Ends with exit code 1, and all of these words on stderr.
#[track_caller]
fn assert_refused(mut tool: Tool, words: &[&str]) {
    assert_eq!(tool.wait_for_end().code(), Some(1), "{}", tool.stderr());
    for word in words {
        assert!(tool.stderr().contains(word), "{word}: {}", tool.stderr());
    }
}

#[test]
fn a_value_that_the_target_does_not_take_ends_the_import_with_its_name() {
    for (setting, of_commands) in
        [("proto-max-bulk-len", "an argument of 2097152 bytes"), ("client-query-buffer-limit", "all of")]
    {
        let Some(source) = Source::start(Product::Redis, &["--repl-backlog-size", "64mb"]) else { return };
        let server = target(&[&format!("--{setting}"), "1mb"]);
        let mut client = source.connect();
        fill(&mut client);
        // What does not get smaller when it is compressed.
        let mut random = Random::from_env();
        let big: Vec<u8> = (0..2 * MEGABYTE / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        client.run_with("SET big", &[&big]);
        // Larger than the limit, too, but not one of its elements.
        let element = vec![b'e'; MEGABYTE / 5];
        for number in 0..10 {
            client.run_with(&format!("HSET many field:{number}"), &[&element]);
        }
        let tool = Tool::follow(&source.url(), &url(&server), &[]);
        assert_refused(tool, &["the string big of database 0", "SET big has", setting, "1048576"]);
        client.run("DEL big");
        if setting == "proto-max-bulk-len" {
            client.run_with("SET squeezed", &[&vec![b'x'; 2 * MEGABYTE]]);
            let tool = Tool::follow(&source.url(), &url(&server), &[]);
            assert_refused(tool, &["the string squeezed of database 0", setting]);
            client.run("DEL squeezed");
        }
        // As a command, once all data is there.
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("all data has come");
        wait_until_following(&mut server.connect());
        client.run_with("SET late", &[&big]);
        assert_refused(tool, &["SET late", of_commands, setting]);
        server.connect().run(&format!("CONFIG SET {setting} 64mb"));
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("going on behind byte");
        end(tool, Product::Redis, &mut client, &server);
    }
}

#[test]
fn data_that_does_not_fit_ends_the_import() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    let server = target(&["--maxmemory", "20mb", "--maxmemory-policy", "noeviction"]);
    let mut client = source.connect();
    let value = vec![b'x'; MEGABYTE];
    for number in 0..24 {
        client.run_with(&format!("SET large:{number}"), &[&value]);
    }
    assert_refused(Tool::follow(&source.url(), &url(&server), &[]), &["OOM", "raise maxmemory of the target"]);
    server.connect().run("CONFIG SET maxmemory 0");
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    end(tool, Product::Redis, &mut client, &server);
}

/// What a hostile source sends at most, so that a tool without a limit lives to fail the test.
const SENT_MAX: usize = 128 * MEGABYTE;

#[test]
fn a_source_that_never_ends_is_refused() {
    if !crate::support::can_start_holdfast() {
        return;
    }
    let server = target(&["--client-query-buffer-limit", "2mb"]);
    // A transaction that is never executed, of large commands and of empty ones; a command that never ends.
    let large = [&b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10000\r\n"[..], &[b'x'; 10_000], b"\r\n"].concat();
    for (begins, then, said) in [
        (&b"*1\r\n$5\r\nMULTI\r\n"[..], &large[..], "a transaction of the source takes more than 2097152 bytes"),
        (b"*1\r\n$5\r\nMULTI\r\n", b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n", "a transaction of the source takes more than"),
        (b"*2000000000\r\n$5\r\nRPUSH\r\n", b"$1\r\na\r\n", "which is not allowed here"),
    ] {
        let address = hostile(begins.to_vec(), then.to_vec());
        let tool = Tool::follow(&format!("redis://{address}"), &url(&server), &["--replace"]);
        let more = if said.contains("transaction") { "client-query-buffer-limit" } else { "a command" };
        assert_refused(tool, &[said, more]);
        server.connect().run("FLUSHALL");
    }
    assert_eq!(server.connect().run("PING").to_string(), "+PONG");
}

/// A source that sends no data, then `begins`, then `then` again and again.
fn hostile(begins: Vec<u8>, then: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (begins, then) = (begins.clone(), then.clone());
            thread::spawn(move || answer(client, &begins, &then));
        }
    });
    address
}

/// `None` when the client has gone.
fn answer(mut client: TcpStream, begins: &[u8], then: &[u8]) -> Option<()> {
    let mut requests = BufReader::new(client.try_clone().ok()?);
    loop {
        let mut line = String::new();
        requests.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let count: usize = line.trim().strip_prefix('*')?.parse().ok()?;
        let mut words = Vec::new();
        for _ in 0..count {
            line.clear();
            requests.read_line(&mut line).ok()?;
            let mut word = vec![0; line.trim().strip_prefix('$')?.parse::<usize>().ok()? + 2];
            requests.read_exact(&mut word).ok()?;
            words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
        }
        match words[0].as_str() {
            "PING" => client.write_all(b"+PONG\r\n").ok()?,
            "INFO" => client.write_all(b"$23\r\nmaster_repl_offset:99\r\n\r\n").ok()?,
            "PSYNC" => break,
            _ => client.write_all(b"+OK\r\n").ok()?,
        }
    }
    let id = "a1".repeat(20);
    client.write_all(format!("+FULLRESYNC {id} 0\r\n$18\r\nREDIS0011").as_bytes()).ok()?;
    client.write_all(b"\xff\0\0\0\0\0\0\0\0").ok()?;
    client.write_all(begins).ok()?;
    let some = then.repeat(1 + 100_000 / then.len());
    for _ in 0..SENT_MAX / some.len() {
        client.write_all(&some).ok()?;
    }
    // The other side goes first.
    requests.read_to_end(&mut Vec::new()).ok()?;
    Some(())
}

/// The names under which the target keeps how far it is.
#[test]
fn no_command_of_the_source_changes_the_position() {
    let Some((source, server)) = start(Product::Redis, &[]) else { return };
    let mut client = source.connect();
    fill(&mut client);
    client.run("SELECT 3");
    fill(&mut client);
    let mut here = server.connect();
    for lines in [
        &["SELECT 3", "COPY small:1 holdfast:import DB 0"][..],
        &["SELECT 3", "SET holdfast:import mine", "SWAPDB 0 3", "SELECT 3"],
        &["SELECT 3", "SET holdfast:import:promote 0", "MOVE holdfast:import:promote 0"],
        &["SELECT 0", "RENAME small:2 holdfast:import"],
        &["SELECT 0", "RPUSH list 3 1 2", "SORT list STORE holdfast:import"],
        &["SELECT 0", "EVAL \"redis.call('HSET', 'holdfast:import', 'offset', '7')\" 0"],
    ] {
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        wait_until_following(&mut here);
        tool.wait_to_say("all data has come");
        for line in lines {
            let reply = client.run(line);
            assert!(!reply.is_error(), "{line}: {reply}");
        }
        assert_refused(tool, &["the source has or writes a key holdfast:import", "rename or delete that key"]);
        // Nothing of it is in the position, and nobody has asked for a promotion.
        assert_eq!(here.run("HMGET holdfast:import state source").items()[0].to_string(), "\"loading\"", "{lines:?}");
        assert_eq!(here.run("EXISTS holdfast:import:promote").to_string(), ":0", "{lines:?}");
        // Also while all data comes.
        assert_refused(
            Tool::follow(&source.url(), &url(&server), &[]),
            &["the source has or writes a key holdfast:import"],
        );
        for line in [
            "SELECT 3",
            "DEL holdfast:import holdfast:import:promote",
            "SELECT 0",
            "DEL holdfast:import holdfast:import:promote",
        ] {
            client.run(line);
        }
        client.run("SELECT 0");
        fill(&mut client);
    }
    let tool = Tool::follow(&source.url(), &url(&server), &[]);
    end(tool, Product::Redis, &mut client, &server);
}

/// What moves or removes whole databases leaves the position where it is, and what asks for the promotion too.
#[test]
fn the_position_stays_when_databases_are_swapped_or_emptied() {
    let Some((source, server)) = start(Product::Redis, &["--databases", "20"]) else { return };
    let (mut client, mut here) = (source.connect(), server.connect());
    fill(&mut client);
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    for line in [
        "SWAPDB 0 3",
        "SET a 1",
        "FLUSHALL",
        "SET b 1",
        "SELECT 3",
        "SET c 1",
        "COPY c d DB 0",
        "MOVE c 0",
        "SET e 1",
        "SWAPDB 3 0",
        "EVAL \"redis.call('SWAPDB', 0, 5)\" 0",
        "SWAPDB 0 5",
        "SELECT 0",
        "FLUSHDB",
    ] {
        let reply = client.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    fill(&mut client);
    client.run("SET last 1");
    crate::support::eventually("it has come", || here.run("GET last").to_string() == "\"1\"");
    for db in [3, 5] {
        here.run(&format!("SELECT {db}"));
        assert_eq!(here.run("EXISTS holdfast:import holdfast:import:promote").to_string(), ":0", "{db}");
    }
    here.run("SELECT 0");
    assert_eq!(here.run("HLEN holdfast:import").to_string(), ":5");
    tool.kill();
    for line in ["SWAPDB 0 7", "FLUSHALL", "SWAPDB 7 0"] {
        client.run(line);
    }
    fill(&mut client);
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("going on behind byte");
    // The request for the promotion outlives what empties the target.
    let to = url(&server);
    let asker = thread::spawn(move || crate::tool::promote(&to, &[]));
    for _ in 0..20 {
        client.run("FLUSHALL");
        client.run("SWAPDB 0 9");
        fill(&mut client);
    }
    let done = asker.join().expect("the tool is started");
    assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
    assert_eq!(tool.wait_for_end().code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
    assert_equal(&mut client, &mut here);
}
