//! Keyspace notifications of streams.

use wire::check_events;

#[test]
fn events_of_streams() {
    check_events(
        r#"
        XADD s 1-1 a 1 => new s, xadd s
        XADD s MAXLEN 1 1-2 a 1 => xadd s, xtrim s
        XADD s MAXLEN 5 1-3 a 1 => xadd s
        XTRIM s MAXLEN 1 => xtrim s
        XTRIM s MAXLEN 1 =>
        XDEL s 9-9 =>
        XDEL s 1-3 => xdel s
        XSETID s 9-9 => xsetid s
        XGROUP CREATE s g 0 => xgroup-create s
        XGROUP SETID s g 0 => xgroup-setid s
        XADD s 10-1 a 1 => xadd s
        XREADGROUP GROUP g alice STREAMS s > => xgroup-createconsumer s
        XACK s g 10-1 =>
        XREADGROUP GROUP g alice STREAMS s 0 =>
        XGROUP SETID s g 0 => xgroup-setid s
        XREADGROUP GROUP g alice STREAMS s > =>
        XCLAIM s g bob 0 10-1 => xgroup-createconsumer s
        XAUTOCLAIM s g carol 0 0 => xgroup-createconsumer s
        XGROUP CREATECONSUMER s g dave => xgroup-createconsumer s
        XGROUP CREATECONSUMER s g dave =>
        XGROUP DELCONSUMER s g bob => xgroup-delconsumer s
        XGROUP DELCONSUMER s g bob =>
        XGROUP DESTROY s g => xgroup-destroy s
        XGROUP DESTROY s g =>
        "#,
    );
}
