//! The blocks of the documents, run: each document on an empty server, top to bottom.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use std::{fs, thread};

use documents::fences::{Fence, documents, fences};
use documents::redis_cli::{Varying, shown};
use documents::{DOCUMENTS, connect_to};
use wire::{Connection, Reply, Server};

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(120);

const PROMPT: &str = "127.0.0.1:6379> ";

/// Runs a test on a new server, unless that is another product.
fn on_an_empty_server(test: impl FnOnce(&Server)) {
    let dir = wire::fresh_dir();
    let server = Server::start(&dir, &[]);
    match server.connect().run("INFO server").text().contains("holdfast_version") {
        true => test(&server),
        false => wire::skip("the documents are about Holdfast"),
    }
    drop(server);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_block_is_run_or_marked() {
    for document in documents() {
        for fence in document.fences() {
            let place = format!("{}:{}", document.name, fence.line);
            match &*fence.language {
                // Run below; Python and TypeScript by the tests of those packages.
                "rust" | "console" | "python" | "ts" => {}
                "sh" => assert!(fence.not_run.is_some(), "{place}: no test runs `sh`: mark it <!-- not run: why -->"),
                "text" | "toml" | "" => {}
                other => panic!("{place}: no test knows the language {other:?}"),
            }
            assert_ne!(fence.not_run.as_deref(), Some(""), "{place}: it is not said why it is not run");
        }
    }
}

#[test]
fn rust_blocks_run() {
    assert!(DOCUMENTS.iter().any(|(name, programs)| *name == "crates/client/README.md" && !programs.is_empty()));
    for (document, programs) in DOCUMENTS {
        on_an_empty_server(|server| {
            connect_to(server.address());
            for (line, program) in *programs {
                println!("{document}:{line}"); // shown only when the test fails
                let (ended, end) = mpsc::channel();
                thread::spawn(move || ended.send(program()));
                match end.recv_timeout(PATIENCE) {
                    Ok(result) => result.unwrap_or_else(|error| panic!("{document}:{line}: {error}")),
                    Err(RecvTimeoutError::Timeout) => panic!("{document}:{line}: the program does not end"),
                    Err(RecvTimeoutError::Disconnected) => panic!("{document}:{line}: the program panicked"),
                }
            }
        });
    }
}

#[test]
fn transcripts_are_what_redis_cli_shows() {
    for document in documents() {
        let blocks = document.fences();
        assert!(document.name != "docs/README.md" || blocks.iter().any(|fence| fence.language == "console"));
        let blocks: Vec<&Fence> =
            blocks.iter().filter(|fence| fence.language == "console" && fence.not_run.is_none()).collect();
        if blocks.is_empty() {
            continue;
        }
        on_an_empty_server(|server| {
            let mut connection = server.connect();
            for fence in blocks {
                check_transcript(&document.name, fence, &mut connection);
            }
        });
    }
}

/// Runs the commands of a transcript, and compares their replies.
fn check_transcript(document: &str, fence: &Fence, connection: &mut Connection) {
    let mut varying = Varying::new(fence.varies.iter().cloned());
    let lines: Vec<&str> = fence.text.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let place = format!("{document}:{}", fence.line + 1 + at);
        at += 1;
        if line.starts_with("$ ") {
            assert_eq!(*line, "$ redis-cli", "{place}: only redis-cli is started in a transcript");
            continue;
        }
        let command = line.strip_prefix(PROMPT).unwrap_or_else(|| panic!("{place}: this is no command: {line}"));
        let replies = lines[at..].iter().take_while(|line| !line.starts_with(PROMPT)).count();
        let expected = &lines[at..at + replies];
        at += replies;
        let reply: Reply = connection.run(&varying.in_command(command));
        let shown = shown(&reply);
        let is_as_shown = varying.matches(expected, &shown);
        assert!(
            is_as_shown,
            "{place}: {command}\nthe document has:\n{}\nthe server says:\n{}\n",
            expected.join("\n"),
            shown.join("\n")
        );
    }
}

#[test]
fn marks_belong_to_the_block_behind_them() {
    let text = "<!-- not run: it waits -->\n\n```rust,no_run\na\n```\n```sh\nb\n\nc\n```\n<!-- not run: x -->\ntext\n```console\n```\n<!-- varies: 1 2 -->\n```\n```\n";
    let found = fences(text);
    let marks: Vec<_> = found.iter().map(|fence| (&*fence.language, fence.line, fence.not_run.as_deref())).collect();
    assert_eq!(marks, [("rust", 3, Some("it waits")), ("sh", 6, None), ("console", 13, None), ("", 16, None)]);
    assert_eq!((&*found[1].text, &found[3].varies[..]), ("b\n\nc\n", &["1".to_owned(), "2".to_owned()][..]));
}

#[test]
fn replies_are_compared_word_by_word() {
    let bulk = |text: &str| Reply::Bulk(text.into());
    let nested = Reply::Array((1..=10).map(|n| Reply::Array(vec![bulk("a\"b"), Reply::Integer(n)])).collect());
    let lines = shown(&nested);
    assert_eq!(lines[..3], [" 1) 1) \"a\\\"b\"", "    2) (integer) 1", " 2) 1) \"a\\\"b\""]);
    assert_eq!(lines[19], "    2) (integer) 10");
    let mut varying = Varying::new(["17".to_owned()]);
    let shown = ["(integer) 42".to_owned(), "\"42\"".to_owned()];
    assert!(varying.matches(&["(integer) 17", "\"17\""], &shown));
    assert_eq!(varying.in_command("GET 17"), "GET 42");
    assert!(!varying.matches(&["(integer) 17"], &["(integer) 43".to_owned()]));
    assert!(varying.matches(&["(integer) 17", "…"], &shown) && varying.matches(&["…"], &shown));
    assert!(!varying.matches(&["(integer) 17"], &shown) && !varying.matches(&["…", "x"], &shown));
}
