//! A reply that tells of a change waits for the batch of that change, also where it shows no value: a transaction that
//! was stopped, an error, a list of definitions. Otherwise the server could be killed after the reply and before the
//! batch is written, and a client would have learned of what has never happened.

mod common;

use common::place::Place;

/// What a client asks first, what another client then changes, and what the first one asks and is told of that.
type Case<'a> = (&'a [&'a str], &'a str, &'a str, &'a str);

fn check(cases: &[Case<'_>]) {
    for (before, change, request, told) in cases {
        let place = Place::new(8, 2, &[]);
        let (mut client, mut other) = (place.asker(0), place.asker(1));
        for line in *before {
            let reply = client.ask(&words(line));
            assert_ne!(reply[0], b'-', "{line}: {}", reply.escape_ascii());
        }
        let known = client.client.depends_on;
        let reply = other.ask(&words(change));
        assert_ne!(reply[0], b'-', "{change}: {}", reply.escape_ascii());
        let batch = other.client.last_batch;
        assert!(batch > known, "{change} has changed nothing");
        let reply = String::from_utf8_lossy(&client.ask(&words(request))).replace("\r\n", " ");
        assert!(reply.starts_with(told), "{request} after {change}: {reply}");
        assert!(client.client.depends_on >= batch, "{request} does not wait for {change}: {reply}");
    }
}

/// The words of a line; `~` is a blank within one.
fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.replace('~', " ").into_bytes()).collect()
}

#[test]
fn a_transaction_that_a_change_has_stopped() {
    const BEGUN: &[&str] = &["WATCH a", "MULTI", "SET b 1"];
    check(&[
        (BEGUN, "SET a 1", "EXEC", "*-1"),
        (BEGUN, "MSET a 1 c 1", "EXEC", "*-1"),
        (&["SET a 1", "WATCH a", "MULTI"], "DEL a", "EXEC", "*-1"),
        (&["SET a 1", "WATCH a", "MULTI"], "FLUSHALL", "EXEC", "*-1"),
        (&["SET a 1", "WATCH a", "MULTI"], "SWAPDB 0 1", "EXEC", "*-1"),
        (&["SET a 1", "WATCH a", "MULTI"], "PEXPIRE a -1", "EXEC", "*-1"),
        (&["WATCH a", "MULTI", "EVAL return{} 0"], "SET a 1", "EXEC", "*-1"),
    ]);
}

#[test]
fn an_interactive_transaction_that_a_change_has_stopped() {
    const BEGUN: &[&str] = &["TXN.BEGIN", "GET a"];
    const WRITTEN: &[&str] = &["TXN.BEGIN", "SET a 2"];
    for begun in [BEGUN, WRITTEN] {
        for request in ["GET a", "GET b", "SET b 1", "PING", "TXN.COMMIT"] {
            check(&[(begun, "SET a 1", request, "-CONFLICT")]);
        }
    }
}

const LOAD: &str = "FUNCTION LOAD #!lua~name=l\nredis.register_function('f',function()return~1~end)";

#[test]
fn libraries_of_functions() {
    const IS_FLUSHED: &str = "FUNCTION FLUSH";
    check(&[
        (&[], LOAD, "FUNCTION LIST", "*1"),
        (&[], LOAD, "FUNCTION DUMP", "$"),
        (&[], LOAD, LOAD, "-ERR Library"),
        (&[], LOAD, "FCALL f 0", ":1"),
        (&[], LOAD, "FCALL f 1 a", ":1"),
        (&[], LOAD, "FCALL_RO f 0", "-ERR Can not execute a script with write flag"),
        (&["MULTI", "FUNCTION LIST"], LOAD, "EXEC", "*1 *1"),
        (&[LOAD], IS_FLUSHED, "FUNCTION LIST", "*0"),
        (&[LOAD], IS_FLUSHED, "FUNCTION DELETE l", "-ERR Library not found"),
        (&[LOAD], IS_FLUSHED, IS_FLUSHED, "+OK"),
        (&[LOAD], IS_FLUSHED, "FCALL f 0", "-ERR Function not found"),
        (&[LOAD], IS_FLUSHED, "SESSION.HOOK CREATED f", "-ERR there is no function"),
        (&[LOAD, "MULTI", "FCALL f 0"], IS_FLUSHED, "EXEC", "*1 -ERR Function not found"),
        (&[LOAD, "MULTI", "FUNCTION DELETE l"], IS_FLUSHED, "EXEC", "*1 -ERR Library not found"),
    ]);
}

#[test]
fn indexes() {
    const CREATE: &str = "IDX.CREATE i PREFIX 1 p: FIELD f";
    const DROP: &str = "IDX.DROP i";
    const DROP_OTHER: &str = "IDX.DROP index:some";
    check(&[
        (&[], CREATE, "IDX.LIST", "*4"),
        (&[], CREATE, "IDX.INFO i", "*14"),
        (&[], CREATE, "IDX.LIMIT i", "*0"),
        (&[], CREATE, "IDX.GROUPS i", "*2"),
        (&[], DROP_OTHER, "IDX.LIMIT index:some", "-ERR there is no index"),
        (&[], "IDX.LIMIT index:groups ALL PAUSE yes", "IDX.LIMIT index:groups", "*1"),
        (&[], CREATE, CREATE, "-ERR the name"),
        (&[], CREATE, "SET i 1", "-ERR 'i' is an index"),
        (&[], CREATE, "GET i", "-WRONGTYPE"),
        (&[], CREATE, "SESSION.OPEN ID i", "-ERR 'i' is an index"),
        (&["HELLO 3"], CREATE, "SESSION.ATTACH i", "-ERR 'i' is an index"),
        (&[], CREATE, "REG.SNAPSHOT STORE i", "-ERR 'i' is an index"),
        (&[], CREATE, "EVAL return~redis.call('IDX.LIST') 0", "*4"),
        (&["MULTI", "IDX.LIST"], CREATE, "EXEC", "*1 *4"),
        (&["MULTI", CREATE], CREATE, "EXEC", "*1 -ERR the name"),
        (&["MULTI", "SET i 1"], CREATE, "EXEC", "*1 -ERR 'i' is an index"),
        (&["TXN.BEGIN"], CREATE, "GET i", "-ERR GET cannot be part"),
        (&["TXN.BEGIN"], CREATE, "SET i 1", "-ERR SET cannot be part"),
        (&[CREATE], DROP, "IDX.LIST", "*3"),
        (&[CREATE], DROP, DROP, ":0"),
        (&[CREATE], DROP, "IDX.RANGE i -inf +inf", "-ERR there is no index"),
        (&[CREATE], DROP, "SWEEP i BEFORE 10 SET 1 g 1", "-ERR there is no index"),
        (&[CREATE], DROP, "CLAIM 1 i MAX NOW SET 1 g 1", "-ERR there is no index"),
        (&[CREATE, "MULTI", DROP], DROP, "EXEC", "*1 :0"),
    ]);
}

#[test]
fn sessions() {
    const OPEN: &str = "SESSION.OPEN ID s";
    const CLOSE: &str = "SESSION.CLOSE s";
    check(&[
        (&[], OPEN, OPEN, "$1"),
        (&["MULTI", OPEN], OPEN, "EXEC", "*1 $1"),
        (&[OPEN], CLOSE, CLOSE, ":0"),
        (&[OPEN, "MULTI", CLOSE], CLOSE, "EXEC", "*1 :0"),
        (&[OPEN], CLOSE, "SESSION.CALL s 1 LOW 1 SET a 1", "-NOSESSION"),
        (&[OPEN], CLOSE, "SESSION.RETRY 1000", "*0"),
        (&[LOAD], "SESSION.HOOK CREATED f", "SESSION.HOOK", "*4"),
        (&[LOAD, "MULTI", "SESSION.HOOK"], "SESSION.HOOK CREATED f", "EXEC", "*1"),
    ]);
}
