//! REG.PUT, REG.INCRBY, REG.SEAL, REG.GET and REG.MGET as a conversation, their limits, and what they refuse. `model` searches what
//! versions do in any order.

use wire::own::check;

#[test]
fn a_version_is_applied_once_and_never_goes_back() {
    check(
        r#"
        REG.GET r                                   => (nil)
        REG.PUT r 3 three                           => +APPLIED
        REG.PUT r 3 three                           => +DUPLICATE
        REG.PUT r 3 other                           => +MISMATCH
        REG.PUT r 2 two                             => +STALE
        REG.GET r                                   => ["three", "3"]
        REG.PUT r 18446744073709551615 last         => +APPLIED
        REG.GET r                                   => ["last", "18446744073709551615"]
        REG.PUT r 0.18446744073709551615 last       => +DUPLICATE
        REG.PUT r 1.0 ""                            => +APPLIED
        REG.GET r                                   => ["", "1.0"]
        REG.PUT r 1.10 ten                          => +APPLIED
        REG.PUT r 1.9 nine                          => +STALE
        REG.PUT r 18446744073709551615 last         => +STALE
        REG.PUT z 0 zero                            => +APPLIED
        REG.PUT z 0.0 zero                          => +DUPLICATE
        REG.GET z                                   => ["zero", "0"]
        REG.MGET r nosuch z                         => [["ten", "1.10"], (nil), ["zero", "0"]]
        "#,
    );
}

#[test]
fn ordered_versions_are_applied_one_by_one() {
    check(
        r#"
        REG.PUT r 3 c ORDERED       => +BUFFERED
        REG.PUT r 3 c ORDERED       => +BUFFERED
        REG.PUT r 3 d ORDERED       => +MISMATCH
        REG.GET r                   => (nil)
        EXISTS r                    => :1
        REG.PUT r 5 e ordered       => +BUFFERED
        REG.PUT r 1 a ORDERED       => +APPLIED
        REG.GET r                   => ["a", "1"]
        REG.PUT r 2 b ORDERED       => +APPLIED
        REG.GET r                   => ["c", "3"]
        REG.PUT r 2 b ORDERED       => +STALE
        REG.PUT r 3 c ORDERED       => +DUPLICATE
        // Without ORDERED a version overtakes those that are missing, and what is buffered behind it follows.
        REG.PUT r 7 g ORDERED       => +BUFFERED
        REG.PUT r 5 other           => +MISMATCH
        REG.PUT r 4 d               => +APPLIED
        REG.GET r                   => ["e", "5"]
        // A seal closes the versions below it.
        REG.SEAL r 7                => :1
        REG.GET r                   => ["g", "7"]
        REG.PUT r 6 f               => +STALE
        REG.SEAL r 20               => :0
        REG.PUT r 19 s ORDERED      => +STALE
        REG.PUT r 20 t ORDERED      => +APPLIED
        // So does one of a register that is missing.
        REG.SEAL new 1              => :0
        EXISTS new                  => :0
        REG.SEAL new 5              => :0
        EXISTS new                  => :1
        REG.MGET new                => [(nil)]
        REG.PUT new 4 d             => +STALE
        REG.PUT new 5 e ORDERED     => +APPLIED
        "#,
    );
}

#[test]
fn versions_with_a_dot_wait_for_a_seal() {
    check(
        r#"
        REG.INCRBY r 2.7 10 ORDERED     => +BUFFERED
        REG.INCRBY r 0.0 1 ORDERED      => +BUFFERED
        REG.PUT r 1.3 100 ORDERED       => +BUFFERED
        REG.PUT r 1.3 101 ORDERED       => +MISMATCH
        REG.GET r                       => (nil)
        REG.SEAL r 0.5                  => :1
        REG.GET r                       => ["1", "0"]
        REG.PUT r 0.4 x ORDERED         => +STALE
        REG.SEAL r 2.8                  => :2
        REG.GET r                       => ["110", "2.7"]
        "#,
    );
}

#[test]
fn an_addition_counts_once_for_each_version() {
    check(
        r#"
        REG.INCRBY n 1 5                        => +APPLIED
        REG.INCRBY n 1 5                        => +DUPLICATE
        REG.INCRBY n 1 6                        => +MISMATCH
        REG.PUT n 1 5                           => +MISMATCH
        REG.INCRBY n 4 -7                       => +APPLIED
        REG.INCRBY n 3 100                      => +STALE
        REG.GET n                               => ["-2", "4"]
        REG.PUT n 5 9223372036854775807         => +APPLIED
        REG.INCRBY n 5 9223372036854775807      => +MISMATCH
        // A sum that is none is refused.
        > REG.INCRBY n 6 1
        -ERR the sum does not fit in 64 bits: add less, or REG.PUT another value
        > REG.INCRBY n 6 1 ORDERED
        -ERR the sum does not fit in 64 bits: add less, or REG.PUT another value
        REG.INCRBY n 6 -1                       => +APPLIED
        REG.PUT n 7 " 1"                        => +APPLIED
        > REG.INCRBY n 8 1
        -ERR the value of the register is not a whole number of 64 bits: REG.PUT a number first
        REG.GET n                               => [" 1", "7"]
        "#,
    );
}

/// It stays where it is, and so does all behind it, until a version overtakes it.
#[test]
fn a_buffered_addition_that_cannot_be_applied_holds_the_others_up() {
    check(
        r#"
        REG.INCRBY n 2 5 ORDERED        => +BUFFERED
        REG.PUT n 3 30 ORDERED          => +BUFFERED
        REG.PUT n 1 text ORDERED        => +APPLIED
        REG.GET n                       => ["text", "1"]
        > REG.INCRBY n 2 5 ORDERED
        -ERR the value of the register is not a whole number of 64 bits: REG.PUT a number first
        REG.PUT n 2 6 ORDERED           => +MISMATCH
        > REG.SEAL n 3
        -ERR the buffered REG.INCRBY of version 2 cannot be applied: the value before it is not a whole number of 64 bits; REG.PUT a higher version without ORDERED to drop it
        REG.GET n                       => ["text", "1"]
        REG.PUT n 3 30                  => +APPLIED
        REG.INCRBY n 5 9223372036854775807 ORDERED => +BUFFERED
        > REG.SEAL n 6
        -ERR the buffered REG.INCRBY of version 5 cannot be applied: the sum does not fit in 64 bits; REG.PUT a higher version without ORDERED to drop it
        REG.PUT n 4 0 ORDERED           => +APPLIED
        REG.GET n                       => ["9223372036854775807", "5"]
        "#,
    );
}

#[test]
fn a_full_buffer_takes_no_more() {
    check(
        r#"
        CONFIG GET reg-buffer-max => ["reg-buffer-max", "1024"]
        # config reg-buffer-max 2
        REG.PUT r 3 c ORDERED           => +BUFFERED
        REG.INCRBY r 5 1 ORDERED        => +BUFFERED
        > REG.PUT r 7 g ORDERED
        -ERR 2 versions of the register wait for their turn (reg-buffer-max): send the missing one, or REG.SEAL what will not come
        REG.PUT r 3 c ORDERED           => +BUFFERED
        REG.PUT r 1 a ORDERED           => +APPLIED
        REG.PUT r 2 b ORDERED           => +APPLIED
        REG.PUT r 7 g ORDERED           => +BUFFERED
        REG.GET r                       => ["c", "3"]
        # config reg-buffer-max 0
        > REG.PUT s 2 b ORDERED
        -ERR 0 versions of the register wait for their turn (reg-buffer-max): send the missing one, or REG.SEAL what will not come
        EXISTS s                        => :0
        REG.PUT s 1 a ORDERED           => +APPLIED
        "#,
    );
}

#[test]
fn what_is_no_version_is_refused() {
    const NO_VERSION: &str = "-ERR the version must be a whole number of 64 bits, or two of them as epoch.round, not";
    const NO_FIRST: &str =
        "-ERR ordered versions are 1, 2, 3 and so on: send 1 as the first one, or write versions as epoch.round";
    const NO_NUMBER: &str = "-ERR the number to add must be a whole number of 64 bits, not";
    check(&format!(
        r#"
        REG.PUT r x v                               => {NO_VERSION} 'x'
        REG.PUT r -1 v                              => {NO_VERSION} '-1'
        REG.PUT r 18446744073709551616 v            => {NO_VERSION} '18446744073709551616'
        REG.PUT r 1.2.3 v                           => {NO_VERSION} '1.2.3'
        REG.INCRBY r "" 1                           => {NO_VERSION} ''
        REG.SEAL r 1.                               => {NO_VERSION} '1.'
        REG.PUT r 0 v ORDERED                       => {NO_FIRST}
        REG.INCRBY r 0 1 ORDERED                    => {NO_FIRST}
        REG.SEAL r 0                                => {NO_FIRST}
        REG.INCRBY r 1 1.5                          => {NO_NUMBER} '1.5'
        REG.INCRBY r 1 9223372036854775808          => {NO_NUMBER} '9223372036854775808'
        REG.PUT r 1 v LATER                         => ~-ERR unknown option 'LATER'. *
        REG.PUT r 1 v ORDERED ORDERED               => -ERR ORDERED is given twice
        REG.INCRBY r 1 1 ORDERED now                => ~-ERR unknown option 'now'. *
        EXISTS r                                    => :0
        "#
    ));
}

#[test]
fn the_first_ordered_put_decides_how_versions_are_written() {
    check(
        r#"
        REG.PUT plain 1 a ORDERED       => +APPLIED
        > REG.PUT plain 0.2 b ORDERED
        -ERR the register takes plain versions one by one (1, 2, 3): send the version without a dot, or use another key
        REG.INCRBY plain 1.1 1 ORDERED  => ~-ERR the register takes plain versions one by one*
        REG.SEAL plain 0.9              => ~-ERR the register takes plain versions one by one*
        REG.PUT dotted 0.1 a ORDERED    => +BUFFERED
        > REG.PUT dotted 2 b ORDERED
        -ERR the register takes versions as epoch.round, which REG.SEAL applies: send the version with a dot (5 is 0.5), or use another key
        REG.SEAL dotted 2               => ~-ERR the register takes versions as epoch.round*
        REG.INCRBY dotted 2 1 ORDERED   => ~-ERR the register takes versions as epoch.round*
        // What is not ordered, or a seal, decides nothing.
        REG.PUT r 5 v                   => +APPLIED
        REG.SEAL r 9                    => :0
        REG.PUT r 0.9 w ORDERED         => +BUFFERED
        // It goes with the register.
        RENAME r s                      => +OK
        COPY s t                        => :1
        REG.PUT t 9 w ORDERED           => ~-ERR the register takes versions as epoch.round*
        DEL t                           => :1
        REG.PUT t 1 w ORDERED           => +APPLIED
        "#,
    );
}
