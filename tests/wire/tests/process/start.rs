//! Starting: what is said when it works, and what is said when it cannot.

use std::net::TcpListener;

use wire::{Server, free_address};

use crate::support::{
    Dir, Failure, Holdfast, can_start_holdfast, eventually, fail_to_start, fail_to_start_at, info, ok,
};

#[test]
fn one_line_says_where_it_listens_and_how_to_talk_to_it() {
    let Some(server) = Holdfast::start(&[]) else { return };
    // Requests are answered before it is printed.
    eventually("there is a line", || server.stdout().ends_with('\n'));
    let (address, stdout) = (server.address(), server.stdout());
    assert_eq!(stdout.lines().count(), 1, "{stdout:?}");
    assert!(stdout.contains(&address.to_string()), "{stdout:?}");
    assert!(stdout.contains(&format!("redis-cli -p {}", address.port())), "{stdout:?}");
    assert_eq!(server.stderr(), "", "a quiet start is a good start");
}

#[test]
fn nobody_needs_to_listen_to_that_line() {
    let started = Holdfast::start_with(&[], |command| {
        // A pipe whose reading end is gone.
        let (reader, writer) = std::io::pipe().expect("cannot make a pipe");
        drop(reader);
        command.stdout(writer);
    });
    let Some(server) = started else { return };
    assert_eq!(server.connect().run("PING").to_string(), "+PONG");
}

#[test]
fn an_address_that_cannot_be_had_is_named_with_a_way_out() {
    if !can_start_holdfast() {
        return;
    }
    let other = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
    let taken = other.local_addr().expect("a bound socket has an address");
    let Failure { code, stderr } = fail_to_start_at(taken, &[], &[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&taken.to_string()) && stderr.contains("Try --port"), "{stderr}");
    // For documentation: no machine has it. It is the fault, and not the port.
    let Failure { code, stderr } = fail_to_start(&["--bind", "192.0.2.1"], &[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("192.0.2.1") && stderr.contains("no network interface of this machine has this address"));
    assert!(!stderr.contains("--port"), "{stderr}");
}

/// What is wrong with addresses and users is found before a data directory is made.
#[test]
fn a_start_that_fails_leaves_no_data_directory_behind() {
    if !can_start_holdfast() {
        return;
    }
    let home = Dir::fresh();
    let data = home.path().join("data");
    let dir = data.to_str().expect("a plain path");
    let other = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
    let taken = other.local_addr().expect("a bound socket has an address");
    for (address, more) in [(taken, ["--user", "x on"]), (free_address(), ["--user", "x on +@foo"])] {
        let Failure { code, stderr } = fail_to_start_at(address, &["--dir", dir, more[0], more[1]], &[]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(!data.exists(), "{stderr}");
    }
}

#[test]
fn a_wrong_rule_of_a_user_names_where_the_user_is_configured() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let file = dir.write(
        "h.toml",
        "[[user]]\nname = \"ann\"\nrules = \"on\"\n\n[[user]]\nname = \"bob\"\nrules = \"on +@foo\"\n",
    );
    refuses(&["--user", "x on +@foo"], &[], &["flag --user x: ", "'+@foo'", "Unknown command or category"]);
    refuses(&["--config", &file], &[], &[&format!("{file}: table [[user]] number 2 (bob): "), "'+@foo'"]);
}

#[track_caller]
fn refuses(args: &[&str], variables: &[(&str, &str)], words: &[&str]) {
    let Failure { code, stderr } = fail_to_start(args, variables);
    assert!(code.is_some_and(|code| code > 0), "{code:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
    }
}

/// Whichever way they come, settings that are wrong are told on stderr. Which words are said of which is for unit tests.
#[test]
fn wrong_settings_are_named_with_what_would_be_good() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let unknown = dir.write("h.toml", "maxmemry = \"1gb\"\n");
    let choice = dir.write("choice.toml", "maxmemory-policy = \"sometimes\"\n");
    let torn = dir.write("torn.toml", "port = \n");
    refuses(&["--maxmemry", "1gb"], &[], &["--maxmemry", "--maxmemory"]);
    refuses(&["--config", &unknown], &[], &[&unknown, "maxmemry", "did you mean 'maxmemory'?"]);
    refuses(&[], &[("HOLDFAST_CLIENT_OUTPUT_BUFER_LIMIT", "")], &["did you mean 'client-output-buffer-limit'?"]);
    refuses(&[], &[("HOLDFAST_THREADS", "many")], &["HOLDFAST_THREADS", "many", "integer"]);
    refuses(&["--maxmemory", "lots"], &[], &["--maxmemory", "lots", "memory"]);
    refuses(&["--config", &choice], &[], &[&choice, "maxmemory-policy", "noeviction", "allkeys-lru"]);
    refuses(&["--config", &torn], &[], &[&torn, "not valid TOML", "line 1"]);
    refuses(&["--config", "/nowhere/h.toml"], &[], &["/nowhere/h.toml", "No such file"]);
    refuses(&["--bind", "not-an-address"], &[], &["bind", "not-an-address"]);
}

#[test]
fn rewriting_the_shipped_file_keeps_every_line_that_is_still_true() {
    if !can_start_holdfast() {
        return;
    }
    let shipped = include_str!("../../../../config/holdfast.toml");
    let dir = Dir::fresh();
    // The harness says by flags where to listen and where the data is: they are the same as in the file.
    let address = free_address();
    let text = shipped.replace("\nport = 6379\n", &format!("\nport = {}\n", address.port()));
    let path = dir.write("holdfast.toml", &text);
    let server = Server::launch(address, dir.path(), |command| {
        dir.keep_output(command.current_dir(dir.path()).args(["--dir", "./data", "--config", &path]));
    });
    eventually("it has started", || dir.read("stdout").contains("listens on"));
    let mut control = server.connect();
    assert_eq!(info::<String>(&mut control, "config_file"), path);
    ok(&mut control, "CONFIG REWRITE");
    assert_eq!(dir.read("holdfast.toml"), text);
    ok(&mut control, "CONFIG SET timeout 77");
    ok(&mut control, "CONFIG REWRITE");
    assert_eq!(dir.read("holdfast.toml"), text.replace("\ntimeout = 0\n", "\ntimeout = 77\n"));
}
