//! A command that exists only for tests: it panics before or after it has changed its key. Knows what that costs an
//! interactive transaction; `panics` has the rule for all other commands.

use crate::common::place::Asker;
use crate::place;
use execution::args::is_word;
use execution::command::{Command, Table, exactly, key, write};
use execution::context::WriteCx;
use execution::docs::argument as arg;
use execution::error::{CommandError, CommandResult};
use execution::panics;
use keyspace::{Cause, Effect};

pub(super) const TABLES: &[Table] = &[Table { group: "generic", category: "", commands: COMMANDS }];

const COMMANDS: &[Command] = &[write("test.panic", exactly(3), key(1), panic_on_purpose)
    .doc("1.0.0", "Panics before or after it has deleted a key.")
    .arguments(&[arg::key("key", 0), arg::string("when")])];

fn panic_on_purpose(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match cx.args.bytes()? {
        word if is_word(word, "BEFORE") => {}
        word if is_word(word, "AFTER") => {
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        }
        _ => return Err(CommandError::Syntax),
    }
    panic!("TEST.PANIC");
}

fn said(asker: &mut Asker<'_>, words: &[&str]) -> String {
    let reply = asker.ask(&words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
    String::from_utf8(reply).expect("replies are text here")
}

/// What it has changed is the transaction's own, so that the server goes on where it would end otherwise.
#[test]
fn a_panic_on_private_keys_fails_only_its_transaction() {
    let script = "redis.call('SET', KEYS[1], 3) return redis.pcall('TEST.PANIC', KEYS[1], ARGV[1])";
    let plain = |when: &'static str| vec!["TEST.PANIC", "a", when];
    let scripted = |when: &'static str| vec!["EVAL", script, "1", "a", when];
    let internal = format!("-{}\r\n", CommandError::Internal);
    for request in [plain("BEFORE"), plain("AFTER"), scripted("BEFORE"), scripted("AFTER")] {
        let place = place(4, 2, &[]);
        let (mut asker, mut other) = (place.asker(0), place.asker(1));
        other.say("SET a 1");
        let (tail, caught) = (place.kept.batches().len(), panics::caught());
        for words in ["TXN.BEGIN", "SET a 2", "SET b 2"] {
            assert_eq!(asker.say(words), b"+OK\r\n", "{words}");
        }
        assert_eq!(said(&mut asker, &request), internal, "{request:?}");
        assert!(panics::caught() > caught, "{request:?}");
        // It has failed, and no command runs outside it.
        for words in ["GET a", "SET c 2", "TXN.COMMIT"] {
            assert_eq!(said(&mut asker, &words.split(' ').collect::<Vec<_>>()), internal, "{request:?}: {words}");
        }
        assert_eq!(place.kept.batches().len(), tail, "{request:?}: nothing is recorded");
        assert_eq!(other.say("MGET a b c"), b"*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n", "{request:?}");
        // The client, its worker and the keys are as they were.
        assert_eq!(other.say("SET a 4"), b"+OK\r\n");
        for (words, reply) in [
            ("TXN.BEGIN", "+OK\r\n"),
            ("GET a", "$1\r\n4\r\n"),
            ("SET a 5", "+OK\r\n"),
            ("TXN.COMMIT", ":3\r\n"),
            ("EVAL return{1} 0", "*1\r\n:1\r\n"),
        ] {
            assert_eq!(said(&mut asker, &words.split(' ').collect::<Vec<_>>()), reply, "{request:?}: {words}");
        }
        assert_eq!(other.say("GET a"), b"$1\r\n5\r\n");
    }
}
