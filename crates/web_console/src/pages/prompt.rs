//! The prompt: runs any commands, several in one connection. Refuses what would change the connection itself:
//! that of the console lives for one page.

use super::value::reply_tree;
use crate::html::{Exactly, Html, Short, html};
use crate::layout::problem;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::{Outcome, Visit};
use engine::command::{Flags, registry};

/// The most commands of one form.
const LINES_MAX: usize = 100;

/// Commands that change what the connection is or how it answers, and why they make no sense here.
const REFUSED: &[(&str, &str)] = &[
    ("subscribe", "messages would come after this page is complete: use redis-cli"),
    ("psubscribe", "messages would come after this page is complete: use redis-cli"),
    ("ssubscribe", "messages would come after this page is complete: use redis-cli"),
    ("monitor", "requests would be shown after this page is complete: use redis-cli"),
    ("session.attach", "requests would come after this page is complete: SESSION.PENDING shows them"),
    ("client|reply", "the page waits for a reply to every command"),
    ("client|tracking", "the connection ends with this page, and so would the tracking"),
    ("hello", "the console needs RESP3, and signs in by its own page"),
    ("auth", "sign out, and sign in as another user"),
    ("reset", "the connection ends with this page in any case"),
    ("quit", "the connection ends with this page in any case"),
    ("sync", "this connection is not that of a replica"),
    ("psync", "this connection is not that of a replica"),
];

/// Commands that wait although no word of theirs says so. Others wait only with BLOCK.
const WAIT: &[&str] =
    &["blpop", "brpop", "blmove", "brpoplpush", "blmpop", "bzpopmin", "bzpopmax", "bzmpop", "wait", "waitaof"];

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let given = String::from_utf8_lossy(visit.query.get("commands")).into_owned();
    visit.page("Prompt", form(visit, &given, &Html::new()))
}

fn form(visit: &Visit<'_>, given: &str, below: &Html) -> Html {
    let mut databases = Html::new();
    for db in 0..16usize {
        let chosen = if db == visit.db { html(" selected", &[]) } else { Html::new() };
        databases.put("<option value=\"{}\"{}>{}</option>", &[&db, &chosen, &db]);
    }
    // The browser drops a line break at the beginning of a text area: this one is there to be dropped.
    html(
        "<form method=\"post\" action=\"/console/prompt\" class=\"prompt\"><input type=\"hidden\" name=\"token\" value=\"{}\">\
         <label for=\"commands\">Commands, one a line</label>\
         <textarea id=\"commands\" name=\"commands\" rows=\"4\" spellcheck=\"false\" autocapitalize=\"none\" autocomplete=\"off\" \
         data-help=\"/console/prompt/help\" autofocus>\n{}</textarea>\
         <p class=\"row\"><label>Database <select name=\"db\">{}</select></label><button class=\"main\">Run</button>\
         <span class=\"hint\">Ctrl+Enter runs, Tab completes, Alt+↑ brings back the last ones</span></p></form>\
         <div id=\"help\" class=\"help\" aria-live=\"polite\"></div>{}",
        &[&&*visit.session.token, &Exactly(given), &databases, below],
    )
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let given = visit.form.get("commands").to_vec();
    let shown = String::from_utf8_lossy(&given).replace("\r\n", "\n");
    let lines: Vec<&[u8]> = given.split(|byte| *byte == b'\n').map(|line| line.trim_ascii()).collect();
    let lines: Vec<&[u8]> = lines.into_iter().filter(|line| !line.is_empty() && line[0] != b'#').collect();
    let mut requests = Vec::new();
    let mut wrong = Html::new();
    if lines.len() > LINES_MAX {
        wrong.add(&problem(&format!("There are more than {LINES_MAX} commands: nothing was run.")));
    }
    for line in lines.iter().take(LINES_MAX) {
        match parse(line) {
            Ok(words) => requests.push(words),
            Err(why) => {
                wrong.put("<p class=\"notice bad\"><code>{}</code>: {}. Nothing was run.</p>", &[&Short(line), &why])
            }
        }
    }
    let mut below = Html::new();
    if !wrong.is_empty() {
        below = wrong;
    } else if requests.is_empty() {
        below.add(&problem("There is no command. Type one, such as INFO or SCAN 0, and press Run."));
    } else {
        let encoded: Vec<Vec<u8>> =
            requests.iter().map(|words| request(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())).collect();
        let (replies, trouble) = visit.ask_as_many(&encoded).await;
        below.add(&results(&lines, &replies, trouble.as_ref()));
        if trouble.is_none() && leaves_transaction(&requests, &replies) {
            below.add(&problem(
                "There is a MULTI without EXEC: its commands were discarded, since the connection ends with this page.",
            ));
        }
    }
    visit.page("Prompt", form(visit, &shown, &below))
}

/// What each command has come to. The first one without a reply has the trouble; nothing is known of those after it.
fn results(lines: &[&[u8]], replies: &[Reply], trouble: Option<&Trouble>) -> Html {
    let mut below = Html::new();
    for (at, line) in lines.iter().enumerate() {
        let content = match (replies.get(at), trouble) {
            (Some(reply), _) => reply_tree(reply),
            (None, Some(trouble)) if at == replies.len() => problem(&trouble.to_string()),
            (None, _) => html("<p class=\"hint\">Not known: it may have been run, or not.</p>", &[]),
        };
        below.put("<section class=\"result\"><h2><code>{}</code></h2>{}</section>", &[&Short(line), &content]);
    }
    below
}

/// True if a transaction is still open after the last request.
fn leaves_transaction(requests: &[Vec<Vec<u8>>], replies: &[Reply]) -> bool {
    let mut is_open = false;
    for (words, reply) in requests.iter().zip(replies) {
        match words.first().map(|name| name.to_ascii_lowercase()).as_deref() {
            Some(b"multi") if reply.error().is_none() => is_open = true,
            // One that fails ends it as well.
            Some(b"exec" | b"discard") => is_open = false,
            _ => {}
        }
    }
    is_open
}

/// The words of a line, quoted as for redis-cli; or why it is not run.
fn parse(line: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let words = resp::split_line(line).map_err(|_| "its quotes are not closed".to_owned())?;
    let name = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    let Some(row) = registry().find(&name) else { return Ok(words) };
    let row = words.get(1).and_then(|sub| row.subcommand(sub)).unwrap_or(row);
    if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == row.full_name) {
        return Err((*why).to_owned());
    }
    let waits = WAIT.contains(&row.full_name.as_str())
        || row.command.flags.has(Flags::BLOCKING) && words.iter().any(|word| word.eq_ignore_ascii_case(b"BLOCK"));
    if waits {
        return Err(
            "it may wait, and what it gets would be lost with this page: leave BLOCK out, or use redis-cli".into()
        );
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_redis_cli_does() {
        assert_eq!(parse(b"set a \"b c\"").unwrap(), [&b"set"[..], b"a", b"b c"]);
        assert_eq!(parse(b"get \"\\x00\\xff\"").unwrap()[1], b"\x00\xff");
        assert!(parse(b"get \"a").is_err());
        assert!(parse(b"unknown x").is_ok(), "the server says so");
    }

    #[test]
    fn replies_that_came_are_shown_before_what_went_wrong() {
        let lines = [&b"SET a 1"[..], b"GET long", b"INCR b"];
        let shown = results(&lines, &[Reply::Simple(b"OK".to_vec())], Some(&Trouble::TooLarge));
        let parts: Vec<&str> = shown.as_str().split("<section").skip(1).collect();
        assert!(parts[0].contains("<code>OK</code>") && !parts[0].contains("longer"), "{parts:?}");
        assert!(parts[1].contains("longer than") && !parts[1].contains("Not known"), "{parts:?}");
        assert!(parts[2].contains("Not known") && parts.len() == 3, "{parts:?}");
    }

    #[test]
    fn a_transaction_that_is_left_open_is_noticed() {
        let ok = Reply::Simple(b"OK".to_vec());
        for (names, is_open) in [
            (&["MULTI", "INCR"][..], true),
            (&["multi", "INCR", "EXEC"], false),
            (&["MULTI", "DISCARD", "MULTI"], true),
            (&["INCR", "EXEC"], false),
        ] {
            let requests: Vec<Vec<Vec<u8>>> = names.iter().map(|name| vec![name.as_bytes().to_vec()]).collect();
            assert_eq!(leaves_transaction(&requests, &vec![ok.clone(); names.len()]), is_open, "{names:?}");
        }
        assert!(!leaves_transaction(&[vec![b"MULTI".to_vec()]], &[Reply::Error(b"ERR no".to_vec())]));
    }

    #[test]
    fn what_would_change_the_connection_is_refused() {
        for line in [
            "SUBSCRIBE a",
            "psubscribe a",
            "MONITOR",
            "CLIENT REPLY OFF",
            "client tracking on",
            "HELLO 2",
            "AUTH a b",
            "RESET",
            "QUIT",
            "SESSION.ATTACH s",
            "BLPOP a 0",
            "XREAD BLOCK 0 STREAMS a $",
            "CLAIM 1 a SET 0 BLOCK 0",
            "WAIT 1 0",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        for line in ["XREAD STREAMS a 0", "CLIENT LIST", "CLAIM 1 a SET 1 b c", "PUBLISH a b", "MULTI", "EXEC"] {
            assert!(parse(line.as_bytes()).is_ok(), "{line}");
        }
        // A command that is renamed must not slip through.
        for (name, _) in REFUSED {
            assert!(registry().find_full(name.as_bytes()).is_some(), "{name}");
        }
        for name in WAIT {
            assert!(
                registry().find(name.as_bytes()).is_some_and(|row| row.command.flags.has(Flags::BLOCKING)),
                "{name}"
            );
        }
    }
}
