//! What only ZSCAN does. What all scans have in common is in `collections`.

use crate::check_as_redis_7_0;
use wire::check;

#[test]
fn zscan_has_no_values_to_leave_out() {
    check(
        r#"
        # needs redis >= 7.4
        ! ZADD z 1 a
        > ZSCAN z 0 NOVALUES
        -ERR NOVALUES option can only be used in HSCAN
        > ZSCAN z 0 NOSCORES
        -ERR syntax error
        "#,
    );
}

#[test]
fn scores_of_a_scan() {
    check_as_redis_7_0(
        r#"
        > ZADD z 0.1 a 1e21 b 3.0e-7 c 2.5 d
        :4
        > ZSCAN z 0 MATCH a
        ["0", ["a", "0.10000000000000001"]]
        > ZSCAN z 0 MATCH b
        ["0", ["b", "1e+21"]]
        > ZSCAN z 0 MATCH c
        ["0", ["c", "2.9999999999999999e-07"]]
        > ZSCAN z 0 MATCH d
        ["0", ["d", "2.5"]]
        // A small set keeps what is an integer as one, and tells it so.
        > ZADD whole 1e17 a 123456789012345678 b 1e19 c
        :3
        > ZSCAN whole 0 MATCH a
        ["0", ["a", "100000000000000000"]]
        > ZSCAN whole 0 MATCH b
        ["0", ["b", "123456789012345680"]]
        > ZSCAN whole 0 MATCH c
        ["0", ["c", "1e+19"]]
        > ZMSCORE whole a b c
        ["1e+17", "1.2345678901234568e+17", "1e+19"]
        # config zset-max-listpack-entries 0
        > ZADD large 0.1 a 1e17 b 2.5 c 3 d
        :4
        > ZSCAN large 0 MATCH a COUNT 1000
        ["0", ["a", "0.10000000000000001"]]
        > ZSCAN large 0 MATCH b COUNT 1000
        ["0", ["b", "1e+17"]]
        > ZSCAN large 0 MATCH c COUNT 1000
        ["0", ["c", "2.5"]]
        > ZSCAN large 0 MATCH d COUNT 1000
        ["0", ["d", "3"]]
        "#,
    );
}
