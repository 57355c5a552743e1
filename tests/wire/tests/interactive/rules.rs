//! What cannot be part of a transaction is refused with a sentence, and the transaction goes on.

use wire::check;

#[test]
fn commands_that_are_not_about_data_are_refused() {
    for command in [
        "MULTI",
        "EXEC",
        "DISCARD",
        "WATCH a",
        "UNWATCH",
        "SELECT 1",
        "SUBSCRIBE c",
        "PSUBSCRIBE c",
        "SSUBSCRIBE c",
        "PUBLISH c m",
        "SPUBLISH c m",
        "PUBSUB CHANNELS",
        "CONFIG GET port",
        "CLIENT LIST",
        "CLIENT KILL ID 12345",
        "CLIENT PAUSE 0",
        "DEBUG SLEEP 0",
        "MONITOR",
        "SAVE",
        "BGSAVE",
        "SHUTDOWN",
        "SCRIPT FLUSH",
        "FUNCTION LIST",
        "SLOWLOG GET",
        "LATENCY LATEST",
        "IDX.LIST",
        "MEMORY PURGE",
    ] {
        let name: Vec<&str> = command.split(' ').collect();
        let containers =
            ["CONFIG", "CLIENT", "PUBSUB", "SCRIPT", "FUNCTION", "SLOWLOG", "LATENCY", "MEMORY"].contains(&name[0]);
        let name = if containers { name[..2].join(" ") } else { name[0].to_owned() };
        refuse(
            command,
            &format!(
                "{name} cannot be part of an interactive transaction: it is not about data; send it outside of one"
            ),
        );
    }
}

#[test]
fn commands_whose_keys_are_not_all_arguments_are_refused() {
    for command in [
        "SCAN 0",
        "KEYS *",
        "RANDOMKEY",
        "DBSIZE",
        "FLUSHALL",
        "FLUSHDB",
        "SWAPDB 0 1",
        "INFO",
        "HFIND x",
        "IDX.CREATE i PREFIX 1 p FIELD f",
        "IDX.DROP i",
        "IDX.RANGE i 0 1",
        "SWEEP i BEFORE 1 SET 1 a b",
        "CLAIM i a b c",
        "FUNCTION FLUSH",
    ] {
        let name =
            command.split(' ').take(1 + usize::from(command.starts_with("FUNCTION"))).collect::<Vec<_>>().join(" ");
        refuse(
            command,
            &format!(
                "{name} cannot be part of an interactive transaction: its keys are not all arguments; send it outside of one"
            ),
        );
    }
}

#[test]
fn other_databases_are_refused() {
    for command in ["MOVE a 1", "COPY a b DB 1", "COPY a b DB 0 REPLACE"] {
        let name = command.split(' ').next().expect("a name");
        refuse(
            command,
            &format!(
                "{name} cannot be part of an interactive transaction: it touches another database; send it outside of one"
            ),
        );
    }
}

#[test]
fn indexes_are_refused() {
    for command in ["ZRANGE txn:i 0 -1", "ZCARD txn:i", "EXISTS txn:i", "ZUNIONSTORE a 1 txn:i", "ZADD txn:i 1 a"] {
        let name = command.split(' ').next().expect("a name");
        let transcript = r#"
        # holdfast only
        > IDX.CREATE txn:i PREFIX 1 txn:r: FIELD at
        +OK
        > TXN.BEGIN
        +OK
        > SET before 1
        +OK
        > COMMAND
        -ERR NAME cannot be part of an interactive transaction: one of its keys is an index; send it outside of one
        > TXN.COMMIT
        :1..
        > GET before
        "1"
        > IDX.DROP txn:i
        *
        "#;
        check(&transcript.replace("COMMAND", command).replace("NAME", name));
    }
}

fn refuse(command: &str, error: &str) {
    let transcript = r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET before 1
        +OK
        > COMMAND
        -ERR ERROR
        > SET after 1
        +OK
        > TXN.COMMIT
        :1..
        > MGET before after
        ["1", "1"]
    "#;
    check(&transcript.replace("COMMAND", command).replace("ERROR", error));
}
