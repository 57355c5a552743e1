//! Keyspace notifications of streams.

use wire::check;

#[test]
fn events_of_streams() {
    check(
        r#"
        # config notify-keyspace-events Et
        2> SUBSCRIBE __keyevent@0__:xadd
        ["subscribe", "__keyevent@0__:xadd", :1]
        2> PSUBSCRIBE __keyevent@0__:x*
        ["psubscribe", "__keyevent@0__:x*", :2]
        > XADD s 1-1 a 1
        "1-1"
        2< ["message", "__keyevent@0__:xadd", "s"]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xadd", "s"]
        > XADD s MAXLEN 1 1-2 a 1
        "1-2"
        2< ["message", "__keyevent@0__:xadd", "s"]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xadd", "s"]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xtrim", "s"]
        > XADD s MAXLEN 5 1-3 a 1
        "1-3"
        2< ["message", "__keyevent@0__:xadd", "s"]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xadd", "s"]
        > XTRIM s MAXLEN 1
        :1
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xtrim", "s"]
        > XTRIM s MAXLEN 1
        :0
        > XDEL s 9-9
        :0
        > XDEL s 1-3
        :1
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xdel", "s"]
        > XSETID s 9-9
        +OK
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xsetid", "s"]
        > XGROUP CREATE s g 0
        +OK
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-create", "s"]
        > XGROUP SETID s g 0
        +OK
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-setid", "s"]
        > XADD s 10-1 a 1
        "10-1"
        2< ["message", "__keyevent@0__:xadd", "s"]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xadd", "s"]
        > XREADGROUP GROUP g alice STREAMS s >
        [["s", [["10-1", ["a", "1"]]]]]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-createconsumer", "s"]
        > XACK s g 10-1
        :1
        > XREADGROUP GROUP g alice STREAMS s 0
        [["s", []]]
        > XGROUP SETID s g 0
        +OK
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-setid", "s"]
        > XREADGROUP GROUP g alice STREAMS s >
        [["s", [["10-1", ["a", "1"]]]]]
        > XCLAIM s g bob 0 10-1
        [["10-1", ["a", "1"]]]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-createconsumer", "s"]
        > XAUTOCLAIM s g carol 0 0
        ["0-0", [["10-1", ["a", "1"]]], []]
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-createconsumer", "s"]
        > XGROUP CREATECONSUMER s g dave
        :1
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-createconsumer", "s"]
        > XGROUP CREATECONSUMER s g dave
        :0
        > XGROUP DELCONSUMER s g bob
        :0
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-delconsumer", "s"]
        > XGROUP DELCONSUMER s g bob
        :0
        > XGROUP DESTROY s g
        :1
        2< ["pmessage", "__keyevent@0__:x*", "__keyevent@0__:xgroup-destroy", "s"]
        > XGROUP DESTROY s g
        :0
        "#,
    );
}
