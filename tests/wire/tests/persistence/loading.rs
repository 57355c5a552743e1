//! The start of a server: while it reads its data it says so, and answers little else; the requests of the first moments wait.

use std::net::SocketAddr;

use wire::{Connection, Reply, Server, free_address};

use crate::support::{Home, eventually, ok};

const KEYS: usize = 2_000;
/// Microseconds a key: the server takes more than a second to start, whatever the machine.
const DELAY: &str = "600";

/// A home with so many batches that reading them takes a while.
fn long_journal() -> Option<Home> {
    let home = Home::fresh()?;
    let server = home.start(&["--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"]);
    let mut connection = server.connect();
    for chunk in (0..KEYS).collect::<Vec<_>>().chunks(5000) {
        for number in chunk {
            connection.queue_line(&format!("SET key:{number} value:{number}"));
        }
        for _ in chunk {
            assert_eq!(connection.read().to_string(), "+OK");
        }
    }
    server.kill();
    Some(home)
}

#[track_caller]
fn assert_complete(connection: &mut Connection) {
    assert_eq!(connection.run("DBSIZE").integer(), KEYS as i64);
    for number in (0..KEYS).step_by(997).chain([KEYS - 1]) {
        assert_eq!(connection.run(&format!("GET key:{number}")).text(), format!("value:{number}"));
    }
}

/// Connects as soon as the server listens.
fn connect(address: SocketAddr) -> Connection {
    let mut connection = None;
    eventually("it listens", || {
        connection = Connection::open(address).ok();
        connection.is_some()
    });
    connection.expect("it is connected")
}

fn launch(home: &Home) -> (Server, Connection) {
    launch_with(home, &["--key-load-delay", DELAY])
}

fn launch_with(home: &Home, args: &[&str]) -> (Server, Connection) {
    let address = free_address();
    let server = home.launch(address, args);
    (server, connect(address))
}

const LOADING: &str = "-LOADING Redis is loading the dataset in memory";

#[test]
fn until_it_is_ready_it_says_loading() {
    let Some(home) = long_journal() else { return };
    let (_server, mut connection) = launch(&home);
    let mut told = 0;
    loop {
        let replies = connection.pipeline(&["INFO persistence", "GET key:7", "SET key:7 value:7", "PING"]);
        let info = replies[0].text();
        if info.contains("loading:1\r\n") {
            for name in ["start_time", "total_bytes", "loaded_bytes", "loaded_perc", "eta_seconds"] {
                assert!(info.contains(&format!("\r\nloading_{name}:")), "loading_{name} is not in {info}");
            }
            told += 1;
        } else {
            assert!(!info.contains("loading_total_bytes"), "{info}");
        }
        let said: Vec<String> = replies[1..].iter().map(ToString::to_string).collect();
        let ready = ["\"value:7\"", "+OK", "+PONG"];
        // It may become ready between any two of them, and never goes back.
        let answers = said.iter().zip(ready).skip_while(|(said, _)| *said == LOADING);
        answers.for_each(|(said, ready)| assert_eq!(said, ready));
        if said == ready {
            break;
        }
    }
    assert!(told > 0, "INFO never told that it was loading");
    assert_complete(&mut connection);
    assert!(connection.run("INFO persistence").text().contains("loading:0\r\n"));
}

/// Whoever connects as soon as the port is open finds a server that is ready, or gets its answer when it is.
#[test]
fn a_short_load_is_waited_for() {
    for keys in [0, 100] {
        for round in 0..3 {
            let Some(home) = Home::fresh() else { return };
            if keys > 0 {
                let server = home.start(&[]);
                let mut connection = server.connect();
                (0..keys).for_each(|number| ok(&mut connection, &format!("SET key:{number} value:{number}")));
                server.kill();
            }
            let (_server, mut connection) = launch_with(&home, &[]);
            let replies = connection.pipeline(&["PING", "GET key:7", "SET a 1", "EVAL 'return 2' 0"]);
            let said: Vec<String> = replies.iter().map(ToString::to_string).collect();
            let value = if keys > 0 { "\"value:7\"" } else { "(nil)" };
            assert_eq!(said, ["+PONG", value, "+OK", ":2"], "{keys} keys, round {round}");
        }
    }
}

/// A request that waits for the data keeps no other waiting.
#[test]
fn what_needs_no_data_is_answered_while_others_wait_for_it() {
    let Some(home) = long_journal() else { return };
    let (server, mut connection) = launch(&home);
    let mut waiting = connect(server.address());
    waiting.queue_line("PING");
    waiting.flush();
    assert!(connection.run("INFO persistence").text().contains("loading:1\r\n"));
    assert_eq!(waiting.read().to_string(), LOADING, "a long load is not waited for");
    server.kill();
    // A client that goes away while it waits is forgotten.
    let (_server, mut connection) = launch_with(&home, &["--key-load-delay", "100"]);
    connection.queue_line("GET key:7");
    connection.flush();
    drop(connection);
}

/// What may be asked meanwhile is what Redis allows.
#[test]
fn while_it_loads_some_commands_work() {
    let Some(home) = long_journal() else { return };
    let (_server, mut connection) = launch(&home);
    loop {
        // The first and the last tell whether it was loading all the time.
        let lines =
            ["PING", "HELLO", "CLIENT ID", "CONFIG GET port", "COMMAND COUNT", "SELECT 0", "BGSAVE", "DBSIZE", "PING"];
        let replies = connection.pipeline(&lines);
        let said: Vec<String> = replies.iter().map(ToString::to_string).collect();
        if said[0] == "+PONG" {
            break;
        }
        assert_eq!(said[0], LOADING);
        if said[8] == LOADING {
            for (line, said) in lines[1..6].iter().zip(&said[1..6]) {
                assert!(!said.starts_with('-'), "{line}: {said}");
            }
            assert_eq!(said[6..8], [LOADING, LOADING]);
        }
    }
    assert_complete(&mut connection);
}

#[test]
fn killed_while_it_loads_it_starts_again() {
    let Some(home) = long_journal() else { return };
    for rounds in [0, 1, 20] {
        let (server, mut connection) = launch(&home);
        for _ in 0..rounds {
            connection.run("PING");
        }
        server.kill();
    }
    let server = home.start(&[]);
    assert_complete(&mut server.connect());
}

#[test]
fn told_to_stop_while_it_loads_it_stops() {
    let Some(home) = long_journal() else { return };
    for signal in ["TERM", "INT"] {
        let (mut server, mut connection) = launch(&home);
        // An answer, whichever: the signal finds a server that knows what to do with it.
        eventually("it answers", || connection.run("INFO persistence") != Reply::Closed);
        server.signal(signal);
        assert_eq!(server.wait_for_end().code(), Some(0), "{signal}: {}", home.stderr());
    }
    for line in ["SHUTDOWN NOSAVE", "SHUTDOWN"] {
        let (mut server, mut connection) = launch(&home);
        assert_eq!(connection.run(line), Reply::Closed, "{line}");
        assert_eq!(server.wait_for_end().code(), Some(0), "{line}: {}", home.stderr());
    }
    let server = home.start(&[]);
    assert_complete(&mut server.connect());
    ok(&mut server.connect(), "SET key:0 value:0");
}
