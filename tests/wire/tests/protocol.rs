//! Framing: what is a request, what is none, and what a server says to peers that do not speak its language.

use std::thread;
use std::time::{Duration, Instant};
use wire::{Connection, Random, Reply, Session, check};

/// Sends bytes, then expects these replies and the end of the connection.
#[track_caller]
fn refuse(bytes: &[u8], replies: &[&str]) {
    let session = Session::start();
    let mut connection = session.connect();
    connection.queue_raw(bytes);
    for reply in replies {
        assert_eq!(connection.read().to_string(), *reply);
    }
    assert_eq!(connection.read().to_string(), "(closed)");
    assert_eq!(session.connect().run("PING").to_string(), "+PONG");
}

/// Asks again and again, until it is so or far too long has passed.
#[track_caller]
fn eventually(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never was so");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let session = Session::start();
    let mut connection = session.connect();
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhe\r\no\r\nGET a\r\n*1\r\n$4\r\nPING\r\n" {
        connection.queue_raw(&[*byte]);
        connection.flush();
    }
    assert_eq!(connection.read().to_string(), "+OK");
    assert_eq!(connection.read().bytes(), b"he\r\no");
    assert_eq!(connection.read().to_string(), "+PONG");
}

#[test]
fn a_pipeline_may_be_cut_anywhere() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut random = Random::from_env();
    let mut pipeline = Vec::new();
    for number in 0..200 {
        let value = "v".repeat(random.below(300));
        pipeline.extend(format!("*3\r\n$3\r\nSET\r\n$4\r\n{number:04}\r\n${}\r\n{value}\r\n", value.len()).bytes());
        pipeline.extend(format!("STRLEN {number:04}\r\n").bytes());
    }
    let mut rest = &pipeline[..];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(1 + random.below(700)));
        connection.queue_raw(piece);
        connection.flush();
        rest = after;
    }
    for number in 0..200 {
        assert_eq!(connection.read().to_string(), "+OK", "SET {number}");
        let len = connection.read().integer();
        assert!((0..300).contains(&len), "STRLEN {number}: {len}");
    }
}

#[test]
fn inline_requests_are_for_people() {
    check(
        r#"
        >> "PING\r\n"
        +PONG
        >> "PING\n"
        +PONG
        >> "  PING \t  hello  \r\n"
        "hello"
        >> "SET a \"x y\\x41\\n\\\"\\\\\"\r\n"
        +OK
        > GET a
        "x yA\n\"\\"
        >> "SET a 'it\\'s \\n'\r\n"
        +OK
        > GET a
        "it's \\n"
        >> "SET a \"\"\r\n"
        +OK
        > STRLEN a
        :0
        >> "get nosuch\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n"
        (nil)
        "hi"
        +PONG
        // Empty requests are passed over.
        >> "\r\n\r\n   \r\n*0\r\n*-1\r\n*-10\r\nPING\r\n"
        +PONG
        // The bytes behind an argument are not looked at.
        >> "*1\r\n$4\r\nPINGxx*2\rX$4\rXECHOxx$2\r\nhi\r\n"
        +PONG
        "hi"
        "#,
    );
}

#[test]
fn what_is_no_request_is_refused() {
    let lines_by_error: &[(&str, &[&str])] = &[
        // Too many arguments are refused before they come.
        ("invalid multibulk length", &["*x", "*", "*+1", "* 1", "*01", "*1.0", "*2147483648", "*99999999999999999999"]),
        (
            "invalid bulk length",
            &["*1\r\n$x", "*1\r\n$", "*1\r\n$-1", "*1\r\n$+1", "*1\r\n$01", "*1\r\n$99999999999999999999"],
        ),
        // The default of proto-max-bulk-len is 512 MB.
        ("invalid bulk length", &["*2\r\n$3\r\nGET\r\n$536870913"]),
        ("expected '$', got ':'", &["*1\r\n:1"]),
        ("expected '$', got '+'", &["*1\r\n+OK"]),
        ("expected '$', got '*'", &["*1\r\n*1"]),
        ("expected '$', got 'P'", &["*1\r\nPING"]),
        ("expected '$', got '\''", &["*1\r\n'"]),
        ("expected '$', got '\"'", &["*1\r\n\""]),
        ("expected '$', got ' '", &["*1\r\n\r"]),
        ("unbalanced quotes in request", &["SET \"a", "SET 'a", "SET \"a\"b", "SET 'a'b", "\"", "SET a \"b\\\""]),
    ];
    for (error, lines) in lines_by_error {
        for line in *lines {
            refuse(format!("{line}\r\n").as_bytes(), &[&format!("-ERR Protocol error: {error}")]);
        }
    }
    check(
        r#"
        # config proto-max-bulk-len 1048576
        >> "*2\r\n$4\r\nECHO\r\n$1048577\r\n"
        -ERR Protocol error: invalid bulk length
        (closed)
        "#,
    );
}

#[test]
fn endless_lines_are_cut_off() {
    let endless = "1".repeat(70_000);
    refuse(endless.as_bytes(), &["-ERR Protocol error: too big inline request"]);
    refuse(format!("*{endless}").as_bytes(), &["-ERR Protocol error: too big mbulk count string"]);
    refuse(format!("*1\r\n${endless}").as_bytes(), &["-ERR Protocol error: too big bulk count string"]);
}

#[test]
fn long_lines_are_not() {
    let session = Session::start();
    let mut connection = session.connect();
    let message = "m".repeat(60_000);
    connection.queue_raw(format!("PING {message}\r\n").as_bytes());
    assert_eq!(connection.read().text(), message);
}

#[test]
fn what_came_before_an_error_is_answered_and_nothing_behind_it_is_done() {
    refuse(
        b"SET a 1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n:5\r\nSET a 3\r\n",
        &["+OK", ":2", "-ERR Protocol error: expected '$', got ':'"],
    );
    let session = Session::start();
    let mut connection = session.connect();
    connection.queue_raw(b"SET \"a\r\nSET a 3\r\n");
    assert!(connection.read().is_error());
    assert_eq!(connection.read().to_string(), "(closed)");
    assert_eq!(session.connect().run("EXISTS a").integer(), 0);
}

#[test]
fn browsers_are_turned_away() {
    for request in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n",
        "post /\r\nSET a 1\r\n",
        "Host: localhost\r\nSET a 1\r\n",
    ] {
        let session = Session::start();
        let mut connection = session.connect();
        connection.queue_raw(request.as_bytes());
        assert_eq!(connection.read().to_string(), "(closed)", "{request}");
        assert_eq!(session.connect().run("EXISTS a").integer(), 0, "{request}");
    }
}

#[test]
fn replies_come_in_the_order_of_the_requests() {
    let session = Session::start();
    let mut connection = session.connect();
    const COUNT: usize = 20_000;
    for number in 0..COUNT {
        connection.queue(&["ECHO", &number.to_string()]);
        if number % 100 == 0 {
            connection.queue(&["NOSUCH"]);
        }
    }
    for number in 0..COUNT {
        assert_eq!(connection.read().text(), number.to_string());
        if number % 100 == 0 {
            assert!(connection.read().is_error());
        }
    }
}

#[test]
fn a_client_that_does_not_read_can_still_send() {
    let session = Session::start();
    let mut connection = session.connect();
    let message = "m".repeat(1000);
    // More than fits into the sockets' buffers, so the server has to keep some of it.
    const COUNT: usize = 2_000;
    for _ in 0..COUNT {
        connection.queue(&["ECHO", &message]);
    }
    connection.queue(&["SET", "a", "done"]);
    connection.flush();
    let mut other = session.connect();
    eventually(|| other.run("EXISTS a").integer() == 1);
    for _ in 0..COUNT {
        assert_eq!(connection.read().text(), message);
    }
    assert_eq!(connection.read().to_string(), "+OK");
}

#[test]
fn a_request_of_many_arguments() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut request = vec!["MSET".to_owned()];
    request.extend((0..100_000).map(|number| number.to_string()));
    assert_eq!(connection.run_args(&request).to_string(), "+OK");
    assert_eq!(connection.run("DBSIZE").integer(), 50_000);
    request[0] = "EXISTS".into();
    assert_eq!(connection.run_args(&request).integer(), 50_000);
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let session = Session::start();
    let mut connection = session.connect();
    let requests: &[&[u8]] = &[
        b"",
        b"*",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhal",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nbegun",
        b"*1048576\r\n$4\r\nMSET\r\n",
        b"SET a 1",
        b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI",
    ];
    for request in requests.iter().cycle().take(100) {
        let mut other = session.connect();
        other.queue_raw(request);
        other.flush();
    }
    assert_eq!(connection.run("EXISTS a").integer(), 0);
    eventually(|| connection.run("CLIENT LIST").text().lines().count() == 1);
    assert_eq!(connection.run("DBSIZE").integer(), 0);
}

#[test]
fn announcements_are_not_believed() {
    let session = Session::start();
    // Together they announce 25 GB. A server that makes room for what is only announced does not survive this.
    let waiting: Vec<Connection> = (0..50)
        .map(|_| {
            let mut connection = session.connect();
            connection.queue_raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nbegun");
            connection.flush();
            connection
        })
        .collect();
    assert_eq!(session.connect().run("SET b 1").to_string(), "+OK");
    drop(waiting);
    assert_eq!(session.connect().run("EXISTS a b").integer(), 1);
}

#[test]
fn a_client_that_stops_sending_still_hears_its_replies() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.queue_raw(b"SET a 1\r\nGET a\r\nSET a \"unfinis");
    connection.close_sending();
    // Redis may close at once when it sees the end; what it says before that is right.
    let replies: Vec<String> = std::iter::from_fn(|| match connection.read() {
        Reply::Closed => None,
        reply => Some(reply.to_string()),
    })
    .collect();
    assert!(["+OK", "\"1\""].starts_with(&replies.iter().map(String::as_str).collect::<Vec<_>>()), "{replies:?}");
    assert_eq!(session.connect().run("GET a").text(), "1");
}

#[test]
fn each_protocol_has_its_types() {
    check(
        r#"
        > HSET h f v
        :1
        > HGETALL h
        << "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        > GET nosuch
        << "$-1\r\n"
        > HMGET h f nosuch
        << "*2\r\n$1\r\nv\r\n$-1\r\n"
        > CLIENT TRACKINGINFO
        << "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n"
        > INCRBYFLOAT x 1.5
        << "$3\r\n1.5\r\n"
        > HELLO 3
        *
        > HGETALL h
        << "%1\r\n$1\r\nf\r\n$1\r\nv\r\n"
        > GET nosuch
        << "_\r\n"
        > HMGET h f nosuch
        << "*2\r\n$1\r\nv\r\n_\r\n"
        > HGETALL nosuch
        << "%0\r\n"
        > CLIENT TRACKINGINFO
        << "%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n"
        > CLIENT LIST ID 999999
        << "=4\r\ntxt:\r\n"
        > INCRBYFLOAT x 1.5
        << "$1\r\n3\r\n"
        > HRANDFIELD h 1 WITHVALUES
        << "*1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        > NOSUCH
        << "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
        > HELLO 2
        *
        > HRANDFIELD h 1 WITHVALUES
        << "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        "#,
    );
}
