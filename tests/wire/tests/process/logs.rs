//! The log: on stderr, for people or for machines.

use crate::support::{Holdfast, eventually};

#[test]
fn json_is_one_object_a_line() {
    let Some(mut server) = Holdfast::start(&["--log-format", "json", "--loglevel", "debug"]) else { return };
    // A protocol error that quotes the quote it got.
    let mut client = server.connect();
    client.queue_raw(b"*1\r\n\"\r\n");
    assert!(client.read().is_error());
    eventually("it is logged", || server.stderr().contains("expected '$', got '\\\"'"));
    server.signal("TERM");
    assert_eq!(server.wait_for_end().code(), Some(0));
    let log = server.stderr();
    for line in log.lines() {
        assert_eq!(json_value(line), Some(""), "this is no JSON object: {line}");
        assert!(line.starts_with('{') && line.contains("\"level\"") && line.contains("\"timestamp\""), "{line}");
    }
    assert!(log.contains("SIGTERM"), "{log}");
    assert!(log.ends_with('\n'), "{log}");
}

#[test]
fn text_in_a_file_has_no_colours() {
    let Some(mut server) = Holdfast::start(&["--log-format", "text"]) else { return };
    server.signal("TERM");
    assert_eq!(server.wait_for_end().code(), Some(0));
    let log = server.stderr();
    assert!(log.contains("SIGTERM"), "{log}");
    assert!(log.chars().all(|c| c == '\n' || !c.is_control()), "{log:?}");
    assert!(!log.starts_with('{'), "{log}");
}

#[test]
fn the_level_may_be_changed_while_it_runs() {
    let Some(server) = Holdfast::start(&["--loglevel", "nothing"]) else { return };
    let fail = || {
        let mut client = server.connect();
        client.queue_raw(b"*x\r\n");
        assert!(client.read().is_error());
    };
    fail();
    assert_eq!(server.connect().run("CONFIG SET loglevel debug").to_string(), "+OK");
    let before = server.stderr();
    assert!(!before.contains("closed"), "{before}");
    fail();
    eventually("it is logged", || server.stderr().contains("invalid multibulk length"));
}

#[test]
fn what_scripts_log_has_their_level() {
    let Some(server) = Holdfast::start(&["--log-format", "text", "--loglevel", "verbose"]) else { return };
    let script = "for _, level in ipairs({'DEBUG', 'VERBOSE', 'NOTICE', 'WARNING'}) do \
                  redis.log(redis['LOG_' .. level], 'logged as ' .. level) end";
    server.connect().run(&format!("EVAL \"{script}\" 0"));
    // The last of them is written when the reply is there.
    let stderr = server.stderr();
    for (level, line) in [("DEBUG", "VERBOSE"), ("INFO", "NOTICE"), ("WARN", "WARNING")] {
        let logged = stderr.lines().find(|logged| logged.ends_with(&format!(" logged as {line}")));
        assert!(logged.is_some_and(|logged| logged.contains(&format!(" {level} "))), "{level}: {stderr}");
    }
    assert!(!stderr.contains("logged as DEBUG"), "{stderr}");
}

/// What follows the JSON value at the start of `text`; `None` when there is none.
fn json_value(text: &str) -> Option<&str> {
    let text = text.trim_start();
    match text.chars().next()? {
        '{' => json_items(&text[1..], '}', |item| {
            let after_name = json_string(item.trim_start())?;
            json_value(after_name.trim_start().strip_prefix(':')?)
        }),
        '[' => json_items(&text[1..], ']', json_value),
        '"' => json_string(text),
        _ => {
            let end = text.find([',', '}', ']', ' ']).unwrap_or(text.len());
            let word = &text[..end];
            (["true", "false", "null"].contains(&word) || word.parse::<f64>().is_ok()).then_some(&text[end..])
        }
    }
}

fn json_items<'a>(text: &'a str, close: char, item: impl Fn(&'a str) -> Option<&'a str>) -> Option<&'a str> {
    let mut rest = text.trim_start();
    if let Some(rest) = rest.strip_prefix(close) {
        return Some(rest);
    }
    loop {
        rest = item(rest)?.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return rest.strip_prefix(close),
        }
    }
}

fn json_string(text: &str) -> Option<&str> {
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some(&text[at + 2..]),
            '\\' => _ = chars.next()?,
            c if c.is_control() => return None,
            _ => {}
        }
    }
    None
}
