//! What Redis 7.0.15 answered to some hundreds of scripts, and that we answer the same.
//!
//! A record is a script (`> ` before each line), then the reply to a RESP2 client (`2 `) and, where it differs, to a
//! RESP3 client (`3 `), with `\r \n \\ \xHH` for what cannot be shown. They were recorded by sending each script with
//! EVAL to a Redis without data.

mod host;

use host::Fake;
use lua::{Limits, Protocol, ScriptArguments, State, sha1hex};

#[test]
fn language_and_sandbox() {
    check(include_str!("recorded/language.txt"));
}

#[test]
fn cjson() {
    check(include_str!("recorded/cjson.txt"));
}

#[test]
fn cmsgpack() {
    check(include_str!("recorded/cmsgpack.txt"));
}

#[test]
fn structs() {
    check(include_str!("recorded/struct.txt"));
}

#[test]
fn bits() {
    check(include_str!("recorded/bit.txt"));
}

fn check(records: &str) {
    let mut state = State::new(Limits { redis_version: "7.0.15".into(), ..Limits::default() });
    let mut wrong = 0;
    let mut count = 0;
    for (script, resp2, resp3) in parse(records) {
        for (protocol, expected) in [(Protocol::Resp2, &resp2), (Protocol::Resp3, &resp3)] {
            count += 1;
            let reply = shown(&eval(&mut state, &script, protocol));
            if reply != *expected {
                wrong += 1;
                println!("{script}\n  {protocol:?}\n  Redis: {expected}\n  ours:  {reply}\n");
            }
        }
    }
    assert!(count > 10);
    assert_eq!(wrong, 0, "{wrong} of {count} replies differ");
}

fn eval(state: &mut State, script: &str, protocol: Protocol) -> Vec<u8> {
    let sha = sha1hex(script.as_bytes());
    let mut out = Vec::new();
    match state.load(&sha, script.as_bytes()) {
        Ok(()) => {
            state.run(&mut Fake::default(), &sha, ScriptArguments::default(), protocol, &mut out);
        }
        Err(message) => out = format!("-{message}\r\n").into_bytes(),
    }
    out
}

/// The script, and the replies in RESP2 and RESP3.
fn parse(records: &str) -> Vec<(String, String, String)> {
    let mut parsed: Vec<(String, String, String)> = Vec::new();
    let mut script: Vec<&str> = Vec::new();
    for line in records.lines() {
        if let Some(line) = line.strip_prefix("> ") {
            script.push(line);
        } else if let Some(reply) = line.strip_prefix("2 ") {
            parsed.push((std::mem::take(&mut script).join("\n"), reply.into(), reply.into()));
        } else if let Some(reply) = line.strip_prefix("3 ") {
            parsed.last_mut().expect("a RESP2 reply comes first").2 = reply.into();
        } else {
            panic!("not a record: {line}");
        }
    }
    parsed
}

fn shown(reply: &[u8]) -> String {
    reply
        .iter()
        .map(|&byte| match byte {
            b'\\' => "\\\\".into(),
            b'\r' => "\\r".into(),
            b'\n' => "\\n".into(),
            0x20..0x7f => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect()
}
