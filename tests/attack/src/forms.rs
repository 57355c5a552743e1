//! The ways in which a request reaches the server: plain, in a transaction of either kind, from a script, from a function, in a session. Knows of the
//! commands only those that carry others.

use crate::author::{Author, Request};
use crate::table::Row;

/// Requests that belong together.
pub(crate) struct Piece {
    pub(crate) requests: Vec<Vec<Vec<u8>>>,
    /// The row of the command that it is about, if it is about just one: then an error in the last reply means that
    /// nothing has changed.
    pub(crate) single: Option<usize>,
}

/// Draws a request and the form in which it is sent.
pub(crate) fn draw(author: &mut Author<'_>, wanted: impl Fn(&Row) -> bool + Copy) -> Piece {
    loop {
        let request = author.request(wanted);
        let piece = match author.random.below(16) {
            0 => transaction(author, request, wanted),
            1 => whole_transaction(request),
            2 => script(author, &request, true),
            3 => script(author, &request, false),
            4 => passing_script(author, &request),
            5 => function(author, &request),
            6 => interactive(author, request, wanted),
            7 => whole_interactive(request),
            8 | 9 => calls(author, &request),
            _ => Piece { single: Some(request.row), requests: vec![request.args] },
        };
        if !piece.requests.iter().any(|args| author.is_avoided(args)) {
            return piece;
        }
    }
}

/// WATCH, MULTI, several requests, and one of the ways in which a transaction ends.
fn transaction(author: &mut Author<'_>, first: Request, wanted: impl Fn(&Row) -> bool + Copy) -> Piece {
    let mut requests = Vec::new();
    if author.random.one_in(2) {
        requests.push(vec![b"WATCH".to_vec(), author.key()]);
    }
    if author.random.one_in(6) {
        requests.push(author.request(wanted).args);
    }
    requests.push(vec![b"MULTI".to_vec()]);
    requests.push(first.args);
    for _ in 0..author.random.below(4) {
        requests.push(author.request(wanted).args);
    }
    match author.random.below(10) {
        0 => requests.push(vec![b"UNWATCH".to_vec()]),
        1 => requests.push(vec![b"WATCH".to_vec(), author.key()]),
        2 => requests.push(vec![b"MULTI".to_vec()]),
        _ => {}
    }
    requests.push(vec![if author.random.one_in(8) { b"DISCARD".to_vec() } else { b"EXEC".to_vec() }]);
    Piece { requests, single: None }
}

fn whole_transaction(request: Request) -> Piece {
    Piece { requests: vec![vec![b"MULTI".to_vec()], request.args, vec![b"EXEC".to_vec()]], single: Some(request.row) }
}

/// TXN.BEGIN, several requests, and one of the ways in which a transaction ends.
fn interactive(author: &mut Author<'_>, first: Request, wanted: impl Fn(&Row) -> bool + Copy) -> Piece {
    let mut requests = vec![vec![b"TXN.BEGIN".to_vec()], first.args];
    for _ in 0..author.random.below(6) {
        requests.push(author.request(wanted).args);
    }
    requests.push(vec![if author.random.one_in(8) { b"TXN.ROLLBACK".to_vec() } else { b"TXN.COMMIT".to_vec() }]);
    Piece { requests, single: None }
}

fn whole_interactive(request: Request) -> Piece {
    let requests = vec![vec![b"TXN.BEGIN".to_vec()], request.args, vec![b"TXN.COMMIT".to_vec()]];
    Piece { requests, single: Some(request.row) }
}

/// A script with the request spelled out in it, its keys declared as KEYS[n] or not.
fn script(author: &mut Author<'_>, request: &Request, declared: bool) -> Piece {
    let call = if author.random.one_in(3) { "pcall" } else { "call" };
    let mut keys = Vec::new();
    let words: Vec<String> = request
        .args
        .iter()
        .enumerate()
        .map(|(at, arg)| {
            if declared && request.keys.contains(&at) {
                keys.push(arg.clone());
                return format!("KEYS[{}]", keys.len());
            }
            lua_string(arg)
        })
        .collect();
    // A Lua function takes few arguments that are written out.
    let source = match words.len() {
        0..200 => format!("return redis.{call}({})", words.join(", ")),
        _ => format!("return redis.{call}(unpack({{{}}}))", words.join(", ")),
    };
    let eval = author.random.pick(&["EVAL", "EVAL", "EVAL_RO"]);
    let mut args = vec![eval.into(), source.into_bytes(), keys.len().to_string().into_bytes()];
    args.extend(keys);
    let mut requests = Vec::new();
    if author.random.one_in(4) {
        requests.push(vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), args[1].clone()]);
    }
    requests.push(args);
    Piece { requests, single: Some(request.row) }
}

/// A script that passes its arguments on, by EVAL or by its digest.
fn passing_script(author: &mut Author<'_>, request: &Request) -> Piece {
    // With its digest.
    const CALL: (&str, &str) = ("return redis.call(unpack(ARGV))", "3c44b7a40779a5c68a6e3920550ff76660a813aa");
    let mut requests = Vec::new();
    let mut args: Vec<Vec<u8>> = match author.random.below(3) {
        0 => vec![b"EVALSHA".to_vec(), CALL.1.into()],
        _ => vec![b"EVAL".to_vec(), CALL.0.into()],
    };
    if author.random.one_in(2) {
        requests.push(vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), CALL.0.into()]);
    }
    let keys: Vec<_> = match author.random.one_in(2) {
        true => request.keys.iter().filter_map(|at| request.args.get(*at).cloned()).collect(),
        false => Vec::new(),
    };
    args.push(keys.len().to_string().into_bytes());
    args.extend(keys);
    args.extend(request.args.iter().cloned());
    requests.push(args);
    Piece { requests, single: Some(request.row) }
}

fn function(author: &mut Author<'_>, request: &Request) -> Piece {
    let (command, name) = author.random.pick(&[
        ("FCALL", "attack_call"),
        ("FCALL", "attack_pcall"),
        ("FCALL_RO", "attack_ro"),
        ("FCALL", "attack_ro"),
    ]);
    let keys: Vec<_> = match author.random.one_in(2) {
        true => request.keys.iter().filter_map(|at| request.args.get(*at).cloned()).collect(),
        false => Vec::new(),
    };
    let mut args: Vec<Vec<u8>> = vec![command.into(), name.into(), keys.len().to_string().into_bytes()];
    args.extend(keys);
    args.extend(request.args.iter().cloned());
    Piece { requests: vec![args], single: Some(request.row) }
}

/// Calls of a session, some of them again.
fn calls(author: &mut Author<'_>, request: &Request) -> Piece {
    let (sid, id) = (author.random.pick(&["sess:1", "sess:1", "sess:2", "sess:3"]), 1 + author.random.below(60));
    let low = if author.random.one_in(4) { id.saturating_sub(author.random.below(9)) } else { 0 };
    let mut args: Vec<Vec<u8>> = ["SESSION.CALL", sid, &id.to_string(), "LOW", &low.to_string()].map(Vec::from).into();
    args.extend(request.args.iter().cloned());
    let repeats = 1 + author.random.below(3);
    Piece { requests: vec![args; repeats], single: None }
}

/// Any bytes as a Lua literal.
fn lua_string(bytes: &[u8]) -> String {
    let mut text = String::from("'");
    for &byte in bytes {
        match byte {
            b'\\' | b'\'' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:03}")),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_one_lua_literal() {
        assert_eq!(lua_string(b"it's a \\ \0\n\xff9"), r"'it\'s a \\ \000\010\2559'");
    }
}
