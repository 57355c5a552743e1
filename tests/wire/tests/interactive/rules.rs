//! What cannot be part of a transaction is refused with a sentence, and the transaction goes on.

use crate::{check, start};

/// Reasons, and the commands that are refused for each. A dot is in front of the second word of a name.
const REFUSED: &[(&str, &str)] = &[
    (
        "it is not about data",
        "MULTI; EXEC; DISCARD; WATCH a; UNWATCH; SELECT 1; SUBSCRIBE c; PSUBSCRIBE c; SSUBSCRIBE c; PUBLISH c m; \
         SPUBLISH c m; PUBSUB .CHANNELS; CONFIG .GET port; CLIENT .LIST; CLIENT .KILL ID 12345; CLIENT .PAUSE 0; \
         DEBUG SLEEP 0; MONITOR; SAVE; BGSAVE; SHUTDOWN; SCRIPT .FLUSH; FUNCTION .LIST; SLOWLOG .GET; LATENCY .LATEST; \
         IDX.LIST; MEMORY .PURGE; TXN.BEGIN",
    ),
    (
        "its keys are not all arguments",
        "SCAN 0; KEYS *; RANDOMKEY; DBSIZE; FLUSHALL; FLUSHDB; SWAPDB 0 1; INFO; HFIND x; \
         IDX.CREATE i PREFIX 1 p FIELD f; IDX.DROP i; IDX.RANGE i 0 1; SWEEP i BEFORE 1 SET 1 a b; CLAIM i a b c; \
         FUNCTION .FLUSH",
    ),
    ("it touches another database", "MOVE a 1; COPY a b DB 1; COPY a b DB 0 REPLACE"),
    (
        "one of its keys is an index",
        "ZRANGE txn:i 0 -1; ZCARD txn:i; EXISTS txn:i; ZUNIONSTORE a 1 txn:i; ZADD txn:i 1 a",
    ),
];

#[test]
fn what_cannot_be_part_of_a_transaction_is_refused() {
    let Some(session) = start() else { return };
    let mut client = session.connect();
    client.run("IDX.CREATE txn:i PREFIX 1 txn:r: FIELD at");
    for (reason, commands) in REFUSED {
        for command in commands.split("; ") {
            let words = 1 + usize::from(command.contains(" ."));
            let command = command.replace(" .", " ");
            let name = command.split(' ').take(words).collect::<Vec<_>>().join(" ");
            client.pipeline(&["DEL after", "TXN.BEGIN", "SET before 1"]);
            assert_eq!(
                client.run(&command).to_string(),
                format!("-ERR {name} cannot be part of an interactive transaction: {reason}; send it outside of one")
            );
            let replies = client.pipeline(&["SET after 1", "TXN.COMMIT", "EXISTS before after"]);
            assert!(replies[1].integer() > 0, "{command}");
            assert_eq!(replies[2].integer(), 2, "{command}");
        }
    }
    client.run("IDX.DROP txn:i");
}

/// What a script calls is refused for the same reasons.
#[test]
fn a_script_may_call_what_a_transaction_may_contain() {
    for (call, refusal) in [
        ("redis.call('select', 1)", "SELECT cannot be part of an interactive transaction: it is not about data"),
        (
            "redis.call('publish', 'c', 'm')",
            "PUBLISH cannot be part of an interactive transaction: it is not about data",
        ),
        (
            "redis.call('keys', '*')",
            "KEYS cannot be part of an interactive transaction: its keys are not all arguments",
        ),
        (
            "redis.call('move', KEYS[1], 1)",
            "MOVE cannot be part of an interactive transaction: it touches another database",
        ),
    ] {
        check(&format!(
            r#"
            ! TXN.BEGIN
            > EVAL "return {call}" 1 a
            ~-ERR {refusal}; send it outside of one*
            ! SET a 1
            ! TXN.COMMIT
            "#
        ));
    }
}
