//! Commands answer at once and read what the transaction has written; others see it with TXN.COMMIT.

use crate::{check, start};

#[test]
fn a_transaction_reads_its_own_writes_and_nobody_else_does() {
    check(
        r#"
        ! SET a 1
        ! TXN.BEGIN
        > GET a
        "1"
        > INCR a
        :2
        ! SET b x
        > MGET a b
        ["2", "x"]
        2> MGET a b
        ["1", (nil)]
        2> DBSIZE
        :1
        ! TXN.COMMIT
        > MGET a b
        ["2", "x"]
        2> MGET a b
        ["2", "x"]
        2> DBSIZE
        :2
        "#,
    );
}

#[test]
fn a_rollback_leaves_nothing_behind() {
    check(
        r#"
        ! SET a 1
        ! TXN.BEGIN
        ! SET a 2 EX 100
        > DEL c
        :0
        ! HSET h f v
        ! TXN.ROLLBACK
        MGET a => ["1"]
        TTL a => :-1
        EXISTS h => :0
        TXN.ROLLBACK => -ERR TXN.ROLLBACK without TXN.BEGIN: no transaction is open
        TXN.COMMIT => -ERR TXN.COMMIT without TXN.BEGIN: no transaction is open
        "#,
    );
}

#[test]
fn the_number_of_a_commit_is_that_of_its_batch() {
    let Some(session) = start() else { return };
    let mut client = session.connect();
    let commit = |client: &mut wire::Connection, write: &str| {
        client.run("TXN.BEGIN");
        client.run(write);
        client.run("TXN.COMMIT").integer()
    };
    assert!(commit(&mut client, "GET nothing") >= 0);
    let first = commit(&mut client, "SET a 1");
    assert_eq!(commit(&mut client, "SET a 2"), first + 1);
    assert_eq!(commit(&mut client, "GET a"), first + 1);
    assert_eq!(commit(&mut client, "MSET a 3 b 4 c 5"), first + 2, "all writes are one batch");
}

#[test]
fn words_out_of_place() {
    check(
        r#"
        > TXN.BEGIN x
        ~-ERR unknown option 'x'. *
        ! TXN.BEGIN
        GET => -ERR wrong number of arguments for 'get' command
        NOSUCH a => ~-ERR unknown command 'NOSUCH', with args beginning with: 'a'*
        TXN.COMMIT x => ~-ERR wrong number of arguments for 'txn.commit' command. Usage: TXN.COMMIT*
        ! SET a 1
        ! TXN.COMMIT
        ! MULTI
        TXN.BEGIN => -ERR Command not allowed inside a transaction
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        EVAL "return redis.call('txn.begin')" 0 => ~-ERR This Redis command is not allowed from script*
        GET a => "1"
        "#,
    );
}

#[test]
fn a_whole_transaction_may_be_one_pipeline() {
    check(
        r#"
        > SET a 1
        > TXN.BEGIN
        > INCR a
        > GET a
        > SET b 2
        > TXN.COMMIT
        > GET b
        +OK
        +OK
        :2
        "2"
        +OK
        :1..
        "2"
        "#,
    );
}

#[test]
fn commands_about_the_connection_go_on_working() {
    check(
        r#"
        ! TXN.BEGIN
        PING => +PONG
        ECHO hi => "hi"
        TIME => [*, *]
        CLIENT SETNAME me => +OK
        CLIENT GETNAME => "me"
        WAIT 0 0 => :0
        ! SET a 1
        > CLIENT REPLY SKIP
        > GET a
        > GET a
        "1"
        ! TXN.COMMIT
        "#,
    );
}

#[test]
fn reset_and_quit_and_a_lost_connection_roll_back() {
    check(
        r#"
        ! TXN.BEGIN
        ! SET a 1
        # until open_transactions:1
        > RESET
        +RESET
        > GET a
        (nil)
        2! TXN.BEGIN
        2! SET a 2
        2> QUIT
        +OK
        2< (closed)
        # until open_transactions:0
        > GET a
        (nil)
        3! TXN.BEGIN
        3! CLIENT SETNAME victim
        3! SET a 3
        # until open_transactions:1
        > CLIENT KILL TYPE normal SKIPME yes
        :1..
        # until open_transactions:0
        # until total_watched_keys:0
        > GET a
        (nil)
        "#,
    );
}

#[test]
fn transactions_of_one_database_stay_there() {
    check(
        r#"
        ! SELECT 3
        ! SET a 1
        ! TXN.BEGIN
        ! INCR a
        2! SET a other
        ! TXN.COMMIT
        > GET a
        "2"
        2> GET a
        "other"
        "#,
    );
}
