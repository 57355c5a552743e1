//! `holdfast ping`, as a health check uses it: what its exit code says of servers that are up, busy, silent or gone. And
//! what the binary tells of its own command line: completions and man pages.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;

use wire::{binary, free_address};

use crate::support::{Dir, Holdfast, can_start_holdfast, ok};

/// How a run of the binary ended.
#[derive(Debug)]
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(args: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(binary());
    command.env_remove("REDISCLI_AUTH").args(args).envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("cannot start the server's binary");
    let text = |bytes| String::from_utf8(bytes).expect("the binary prints UTF-8");
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[track_caller]
fn is_ready(args: &[&str], variables: &[(&str, &str)]) {
    let outcome = run(args, variables);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "PONG\n", ""), "{args:?}");
}

#[track_caller]
fn is_not_ready(args: &[&str], variables: &[(&str, &str)], words: &[&str]) {
    let outcome = run(args, variables);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{args:?}: {outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is not in: {}", outcome.stderr);
    }
}

#[test]
fn a_server_that_is_up_is_found_in_every_way_to_name_it() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let (port, dir) = (server.address().port().to_string(), Dir::fresh());
    let file = dir.write("h.toml", &format!("port = {port}\nbind = \"0.0.0.0\"\n"));
    is_ready(&["ping", "-p", &port], &[]);
    is_ready(&["ping", "-h", "127.0.0.1", "--port", &port], &[]);
    is_ready(&["ping", &format!("redis://127.0.0.1:{port}/0")], &[]);
    is_ready(&["ping"], &[("HOLDFAST_PORT", &port), ("HOLDFAST_BIND", "*")]);
    is_ready(&["ping", "--config", &file], &[]);
    is_ready(&["ping"], &[("HOLDFAST_CONFIG", &file)]);
}

#[test]
fn a_server_that_is_gone_is_not_ready_nor_alive() {
    if !can_start_holdfast() {
        return;
    }
    let address = free_address().to_string();
    let port = address.rsplit_once(':').expect("it has a port").1;
    is_not_ready(&["ping", "-p", port], &[], &[&address, "cannot be reached"]);
    is_not_ready(&["ping", "--alive", &format!("redis://{address}")], &[], &[&address, "cannot be reached"]);
    is_not_ready(&["ping", "-s", "/nowhere/holdfast.sock"], &[], &["/nowhere/holdfast.sock", "cannot be reached"]);
    is_not_ready(&["ping", "http://127.0.0.1"], &[], &["redis://", "unix://"]);
    assert_eq!(run(&["ping", "-h", "h", "redis://h"], &[]).code, Some(2), "both name a server");
}

#[test]
fn the_password_comes_from_the_command_line_a_variable_or_the_settings() {
    let Some(server) = Holdfast::start(&["--user", "probe on >p:b nocommands +ping"]) else { return };
    ok(&mut server.connect(), "CONFIG SET requirepass s3cret");
    let port = server.address().port().to_string();
    is_not_ready(&["ping", "-p", &port], &[], &["NOAUTH"]);
    let alive = run(&["ping", "-p", &port, "--alive"], &[]);
    assert!(alive.code == Some(0) && alive.stdout.starts_with("NOAUTH "), "{alive:?}");
    is_ready(&["ping", "-p", &port, "-a", "s3cret"], &[]);
    is_ready(&["ping", "-p", &port], &[("REDISCLI_AUTH", "s3cret")]);
    is_ready(&["ping", "-p", &port], &[("HOLDFAST_REQUIREPASS", "s3cret")]);
    is_ready(&["ping", &format!("redis://:s3cret@127.0.0.1:{port}")], &[("REDISCLI_AUTH", "another's")]);
    is_ready(&["ping", "-p", &port, "--user", "probe", "--pass", "p:b"], &[]);
    is_ready(&["ping", &format!("redis://probe:p%3Ab@127.0.0.1:{port}")], &[]);
    is_not_ready(&["ping", "-p", &port, "-a", "wrong"], &[], &["WRONGPASS"]);
}

/// Answers the first request of each connection with these bytes, as long as the test runs.
fn answer_with<S: Read + Write + Send + 'static>(
    connections: impl Iterator<Item = io::Result<S>> + Send + 'static,
    reply: &'static str,
) {
    thread::spawn(move || {
        // It keeps them open: a server that says nothing does not close them either.
        let mut kept = Vec::new();
        for connection in connections {
            let mut connection = BufReader::new(connection.expect("cannot accept a connection"));
            // *1, $4, PING
            (0..3).for_each(|_| drop(connection.read_line(&mut String::new())));
            let _ = connection.get_mut().write_all(reply.as_bytes());
            kept.push(connection);
        }
    });
}

/// The URL of a server that answers so.
fn url_that_answers(reply: &'static str) -> String {
    let listener = Box::leak(Box::new(TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port")));
    answer_with(listener.incoming(), reply);
    format!("redis://{}", listener.local_addr().expect("a bound socket has an address"))
}

#[test]
fn a_server_that_refuses_is_alive_and_not_ready() {
    if !can_start_holdfast() {
        return;
    }
    for reply in ["-LOADING the data is read\r\n", "-BUSY a script runs\r\n"] {
        let url = url_that_answers(reply);
        is_not_ready(&["ping", &url], &[], &[reply.trim_end().trim_start_matches('-')]);
        let alive = run(&["ping", "--alive", &url], &[]);
        assert_eq!((alive.code, alive.stdout.trim_end()), (Some(0), &reply.trim_end()[1..]));
    }
    // Something else listens there.
    let other = url_that_answers("HTTP/1.1 400 Bad Request\r\n\r\n");
    is_not_ready(&["ping", "--alive", &other], &[], &["is no reply"]);
    let silent = url_that_answers("");
    is_not_ready(&["ping", "--alive", "--within", "1", &silent], &[], &["does not answer in time"]);
}

#[test]
fn a_unix_socket_is_asked_too() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let path = dir.path().join("s");
    let listener = Box::leak(Box::new(UnixListener::bind(&path).expect("cannot bind to a path")));
    answer_with(listener.incoming(), "+PONG\r\n");
    let path = path.to_str().expect("a plain path");
    is_ready(&["ping", "-s", path], &[]);
    is_ready(&["ping", &format!("unix://{path}")], &[]);
}

#[test]
fn shells_get_completions_that_they_can_read() {
    if !can_start_holdfast() {
        return;
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], &[("HOLDFAST_PORT", "a bad value does not matter here")]);
        assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["ping", "upgrade", "import", "cluster", "handover", "maxmemory", "appendfsync"] {
            assert!(script.stdout.contains(word), "{word} is not completed in {shell}");
        }
    }
    assert_eq!(run(&["completions", "cobol"], &[]).code, Some(2));
    let dir = Dir::fresh();
    let script = dir.write("holdfast", &run(&["completions", "bash"], &[]).stdout);
    let complete =
        r#"COMP_WORDS=(holdfast "$1"); COMP_CWORD=1; _holdfast holdfast "$1" holdfast; echo "${COMPREPLY[@]}""#;
    let completed = Command::new("bash").args(["-c", &format!(". '{script}'\n{complete}"), "bash", "pi"]).output();
    let completed = completed.expect("cannot start bash");
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "ping", "{completed:?}");
}

#[test]
fn each_command_has_a_man_page() {
    if !can_start_holdfast() {
        return;
    }
    let page = run(&["man"], &[]);
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.contains(".TH holdfast 1"), "{}", page.stdout);
    let dir = Dir::fresh();
    let pages = dir.path().join("man1");
    let written = run(&["man", "--output", pages.to_str().expect("a plain path")], &[]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written:?}");
    assert_eq!(dir.read("man1/holdfast.1"), page.stdout);
    for name in "upgrade check export import cluster cluster-status handover ping doctor man".split(' ') {
        let text = dir.read(&format!("man1/holdfast-{name}.1"));
        assert!(text.contains(&format!(".TH holdfast-{name} 1")), "{name}: {text}");
        let called = format!("holdfast {}", name.replace('-', " "));
        assert!(text.contains(&called) || text.contains("\\fB"), "{name}: {text}");
    }
    assert!(dir.read("man1/holdfast-ping.1").contains("REDISCLI_AUTH"));
}

#[test]
fn the_version_is_told() {
    if !can_start_holdfast() {
        return;
    }
    let version = run(&["--version"], &[("HOLDFAST_PORT", "a bad value does not matter here")]);
    let expected = format!("holdfast {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((version.code, version.stdout), (Some(0), expected));
}
