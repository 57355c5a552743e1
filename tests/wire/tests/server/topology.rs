//! What clients ask about clusters, replicas and modules, with all of them off.

use wire::{Product, Session, check, skip};

#[test]
fn there_is_no_cluster() {
    let session = Session::start();
    let refused = "CLUSTER INFO | CLUSTER NODES | CLUSTER SLOTS | CLUSTER SHARDS | CLUSTER MYID | CLUSTER KEYSLOT k | \
        CLUSTER COUNTKEYSINSLOT 1 | CLUSTER GETKEYSINSLOT 1 10 | CLUSTER ADDSLOTS 1 2 | CLUSTER RESET HARD | \
        CLUSTER MEET 127.0.0.1 1 | CLUSTER HELP | READONLY | READWRITE | ASKING";
    for request in refused.split(" | ") {
        session.check(&format!("> {request}\n-ERR This instance has cluster support disabled"));
    }
    session.check(
        r#"
        CLUSTER KEYSLOT => -ERR wrong number of arguments for 'cluster|keyslot' command
        CLUSTER nosuch => -ERR unknown subcommand 'nosuch'. Try CLUSTER HELP.
        CLUSTER => -ERR wrong number of arguments for 'cluster' command
        READONLY x => -ERR wrong number of arguments for 'readonly' command
        "#,
    );
}

#[test]
fn there_are_no_replicas() {
    check(
        r#"
        REPLICAOF NO ONE => +OK
        SLAVEOF no one => +OK
        REPLICAOF NO => -ERR wrong number of arguments for 'replicaof' command
        REPLICAOF a b => -ERR Invalid master port
        REPLICAOF a 65536 => -ERR Invalid master port
        REPLCONF => +OK
        REPLCONF listening-port 6380 capa eof capa psync2 => +OK
        REPLCONF ip-address 127.0.0.1 => +OK
        REPLCONF listening-port x => -ERR value is not an integer or out of range
        REPLCONF nosuch 1 => -ERR Unrecognized REPLCONF option: nosuch
        REPLCONF one => -ERR syntax error
        FAILOVER => -ERR FAILOVER requires connected replicas.
        FAILOVER ABORT => -ERR No failover in progress.
        FAILOVER TO a 1 TIMEOUT 100 => -ERR FAILOVER requires connected replicas.
        FAILOVER TO a 1 FORCE => -ERR FAILOVER requires connected replicas.
        FAILOVER TO a b => -ERR value is not an integer or out of range
        FAILOVER TIMEOUT 0 => -ERR FAILOVER timeout must be greater than 0
        FAILOVER TIMEOUT x => -ERR value is not an integer or out of range
        FAILOVER x => -ERR syntax error
        WAIT 0 0 => :0
        WAIT 1 10 => :0
        MULTI => +OK
        ROLE => +QUEUED
        REPLICAOF NO ONE => +QUEUED
        EXEC => [["master", :0.., []], +OK]
        "#,
    );
}

#[test]
fn there_are_no_modules() {
    check(
        r#"
        MODULE LIST => []
        > MODULE LOAD /nosuch
        -ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
        > MODULE LOADEX /nosuch
        -ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
        > MODULE UNLOAD nosuch
        -ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
        MODULE nosuch => -ERR unknown subcommand 'nosuch'. Try MODULE HELP.
        MODULE => -ERR wrong number of arguments for 'module' command
        "#,
    );
}

/// Redis would begin to replicate.
#[test]
fn nothing_is_replicated() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return skip("a Redis replicates");
    }
    session.check(
        r#"
        > SYNC
        -ERR this server neither follows a Redis nor feeds one: holdfast --follow DIR follows the data directory of another Holdfast
        > PSYNC ? -1
        -ERR this server neither follows a Redis nor feeds one: holdfast --follow DIR follows the data directory of another Holdfast
        > REPLICAOF 127.0.0.1 6379
        -ERR this server neither follows a Redis nor feeds one: holdfast --follow DIR follows the data directory of another Holdfast
        > PING
        +PONG
        > ROLE
        ["master", *, []]
        > REPLCONF GETACK *
        -ERR Unrecognized REPLCONF option: GETACK
        "#,
    );
}

#[test]
fn writes_that_need_replicas_are_refused() {
    check(
        r##"
        > SET k v
        +OK
        > CONFIG SET min-replicas-to-write 1
        +OK
        > SET k w
        -NOREPLICAS Not enough good replicas to write.
        > INFO replication
        ~"*connected_slaves:0\r\nmin_slaves_good_slaves:0\r\n*"
        > DEL k
        -NOREPLICAS Not enough good replicas to write.
        > BLPOP l 0.01
        -NOREPLICAS Not enough good replicas to write.
        > GET k
        "v"
        > PUBLISH c m
        :0
        > EVAL "return redis.call('GET', KEYS[1])" 1 k
        "v"
        > EVAL "return redis.pcall('SET', KEYS[1], 'w').err" 1 k
        "NOREPLICAS Not enough good replicas to write."
        > EVAL "#!lua\nreturn redis.call('GET', KEYS[1])" 1 k
        -NOREPLICAS Not enough good replicas to write.
        > EVAL "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])" 1 k
        "v"
        > MULTI
        +OK
        > SET k w
        -NOREPLICAS Not enough good replicas to write.
        > EXEC
        -EXECABORT Transaction discarded because of previous errors.
        // Where replicas may not lag at all, none is needed.
        > CONFIG SET min-replicas-max-lag 0
        +OK
        > SET k w
        +OK
        > CONFIG SET min-slaves-max-lag 10 min-slaves-to-write 0
        +OK
        // What was queued before is refused as a whole.
        > MULTI
        +OK
        > INCR n
        +QUEUED
        2> CONFIG SET min-replicas-to-write 2
        +OK
        > EXEC
        -EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write.
        > EXISTS n
        :0
        > MULTI
        +OK
        > GET k
        +QUEUED
        > EXEC
        ["w"]
        > CONFIG SET min-replicas-to-write 0
        +OK
        > INCR n
        :1
        "##,
    );
}
