//! XREAD and XREADGROUP that wait.

use wire::check;

#[test]
fn xadd_serves_all_who_read() {
    check(
        r#"
        > XREAD BLOCK 0 STREAMS s $
        # until blocked_clients:1
        2> XREAD BLOCK 0 STREAMS s 0
        # until blocked_clients:2
        3> XREAD BLOCK 0 STREAMS t s 0 0
        # until blocked_clients:3
        4> XADD s 1-1 a 1 => "1-1"
        1< [["s", [["1-1", ["a", "1"]]]]]
        2< [["s", [["1-1", ["a", "1"]]]]]
        3< [["s", [["1-1", ["a", "1"]]]]]
        4> XADD s 1-2 a 2 => "1-2"
        > XREAD BLOCK 0 STREAMS s $
        # until blocked_clients:1
        4> XADD s 1-3 a 3 => "1-3"
        1< [["s", [["1-3", ["a", "3"]]]]]
        4> XREAD BLOCK 5 STREAMS s 1-3 => (nil array)
        4> XREAD BLOCK 0 STREAMS s 1-2 => [["s", [["1-3", ["a", "3"]]]]]
        "#,
    );
}

#[test]
fn the_last_id_is_that_of_when_the_wait_began() {
    check(
        r#"
        XADD s 5-1 a 1 => "5-1"
        > XREAD BLOCK 0 STREAMS s t $ $
        # until blocked_clients:1
        2> XADD t 1-1 a 1 => "1-1"
        1< [["t", [["1-1", ["a", "1"]]]]]
        > XREAD BLOCK 0 STREAMS s t $ $
        # until blocked_clients:1
        2> DEL s => :1
        2> XADD s 1-1 a 1 => "1-1"
        2> XADD t 1-2 a 1 => "1-2"
        1< [["t", [["1-2", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn an_entry_goes_to_one_consumer_of_a_group() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        XGROUP CREATE s h $ => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> XREADGROUP GROUP g bob BLOCK 0 STREAMS s >
        # until blocked_clients:2
        3> XREADGROUP GROUP h carol BLOCK 0 STREAMS s >
        # until blocked_clients:3
        4> XADD s 1-1 a 1 => "1-1"
        1< [["s", [["1-1", ["a", "1"]]]]]
        3< [["s", [["1-1", ["a", "1"]]]]]
        4> XADD s 1-2 a 2 => "1-2"
        2< [["s", [["1-2", ["a", "2"]]]]]
        4> XPENDING s g => [:2, "1-1", "1-2", [["alice", "1"], ["bob", "1"]]]
        4> XPENDING s h => [:1, "1-1", "1-1", [["carol", "1"]]]
        4> XINFO CONSUMERS s h => [["name", "carol", "pending", :1, "idle", :0..60000, ...]]
        4> XREADGROUP GROUP g alice BLOCK 5 STREAMS s > => (nil array)
        4> XREADGROUP GROUP g alice BLOCK 0 STREAMS s 0 => [["s", [["1-1", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn a_transaction_serves_with_all_its_entries() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> XREAD BLOCK 0 STREAMS s $
        # until blocked_clients:2
        3! MULTI
        3> XADD s 1-1 a 1 => +QUEUED
        3> XADD s 1-2 a 2 => +QUEUED
        3> EXEC => ["1-1", "1-2"]
        1< [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
        2< [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
        > XREAD BLOCK 0 COUNT 1 STREAMS s $
        # until blocked_clients:1
        3> EVAL "redis.call('XADD', 's', '2-1', 'a', '3') return redis.call('XADD', 's', '2-2', 'a', '4')" 1 s => "2-2"
        1< [["s", [["2-1", ["a", "3"]]]]]
        "#,
    );
}

#[test]
fn what_ends_a_wait_of_a_group() {
    check(
        r#"
        # needs redis >= 7.2
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> XGROUP DESTROY s g => :1
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        XGROUP CREATE s g $ => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> DEL s => :1
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2! SET s text
        1< -WRONGTYPE Operation against a key holding the wrong kind of value
        DEL s => :1
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2! RENAME s t
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> XADD u 1-1 a 1 => "1-1"
        2! RENAME u s
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        FLUSHALL => +OK
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2! FLUSHALL
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2! SWAPDB 0 1
        1< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        "#,
    );
}

#[test]
fn what_does_not_end_a_wait() {
    check(
        r#"
        > XREAD BLOCK 0 STREAMS s 5
        # until blocked_clients:1
        2! SET s text
        2> DEL s => :1
        2> SADD s m => :1
        2> DEL s => :1
        2> XADD s 1-1 a 1 => "1-1"
        2> XADD s 4-1 a 1 => "4-1"
        2! XGROUP CREATE s g 0
        2> XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-1", ["a", "1"]], ["4-1", ["a", "1"]]]]]
        2! XSETID s 9-1
        2> XADD s 9-2 a 1 => "9-2"
        1< [["s", [["9-2", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn what_comes_another_way_serves_too() {
    check(
        r#"
        XADD old 7-1 a 1 => "7-1"
        > XREAD BLOCK 0 STREAMS s $
        # until blocked_clients:1
        2! RENAME old s
        1< [["s", [["7-1", ["a", "1"]]]]]
        FLUSHALL => +OK
        > XREAD BLOCK 0 STREAMS s $
        # until blocked_clients:1
        2> COPY s t => :0
        2> XADD u 7-1 a 1 => "7-1"
        2> COPY u s => :1
        1< [["s", [["7-1", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn no_wait_inside_a_transaction_or_script() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        MULTI => +OK
        XREAD BLOCK 0 STREAMS s $ => +QUEUED
        XREADGROUP GROUP g alice BLOCK 0 STREAMS s > => +QUEUED
        EXEC => [(nil array), (nil array)]
        EVAL "return redis.call('XREAD', 'STREAMS', 's', '0')" 1 s => (nil)
        // Redis 7.0 refuses it.
        # needs redis >= 7.2
        EVAL "return redis.call('XREAD', 'BLOCK', '0', 'STREAMS', 's', '0')" 1 s => (nil)
        EVAL "return redis.call('xreadgroup', 'GROUP', 'g', 'a', 'BLOCK', '0', 'STREAMS', 's', '>')" 1 s => (nil)
        XADD s 1-1 a 1 => "1-1"
        EVAL "return redis.call('XREAD', 'BLOCK', '0', 'STREAMS', 's', '0')" 1 s => [["s", [["1-1", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn a_wait_ends_with_its_time() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        XREAD BLOCK 1 STREAMS s $ => (nil array)
        XREADGROUP GROUP g alice BLOCK 1 STREAMS s > => (nil array)
        HELLO 3 => *
        XREAD BLOCK 1 STREAMS s $ => _
        XREADGROUP GROUP g alice BLOCK 1 STREAMS s > => _
        > XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2> XADD s 1-1 a 1 => "1-1"
        1< {"s" => [["1-1", ["a", "1"]]]}
        "#,
    );
}

#[test]
fn no_ack_and_count_are_kept() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XREADGROUP GROUP g alice COUNT 1 NOACK BLOCK 0 STREAMS s >
        # until blocked_clients:1
        2! MULTI
        2> XADD s 1-1 a 1 => +QUEUED
        2> XADD s 1-2 a 1 => +QUEUED
        2> EXEC => ["1-1", "1-2"]
        1< [["s", [["1-1", ["a", "1"]]]]]
        2> XPENDING s g => [:0, (nil), (nil), (nil array)]
        2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s > => [["s", [["1-2", ["a", "1"]]]]]
        "#,
    );
}

#[test]
fn a_client_can_be_unblocked() {
    let session = wire::Session::start();
    let (mut waits, mut other) = (session.connect(), session.connect());
    other.run("XGROUP CREATE s g $ MKSTREAM");
    let id = waits.run("CLIENT ID").integer();
    for command in ["XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g alice BLOCK 0 STREAMS s >"] {
        for (how, expected) in [("TIMEOUT", "(nil array)"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")]
        {
            waits.queue_line(command);
            waits.flush();
            while other.run(&format!("CLIENT UNBLOCK {id} {how}")).integer() == 0 {}
            assert_eq!(waits.read().to_string(), expected, "{command}");
        }
    }
}
