//! Keyspace notifications of lists.

use wire::check_events;

#[test]
fn changes() {
    check_events(
        r#"
        RPUSH l a b c => new l, rpush l
        LPUSH l a => lpush l
        LPUSHX l a => lpush l
        RPUSHX l b => rpush l
        LPUSHX none a =>
        RPUSHX none a =>
        LSET l 0 x => lset l
        LSET l 0 x => lset l
        LINSERT l BEFORE b y => linsert l
        LINSERT l BEFORE nosuch y =>
        LREM l 1 b => lrem l
        LREM l 1 nosuch =>
        LTRIM l 0 -1 => ltrim l
        LTRIM l 1 -1 => ltrim l
        LPOP l => lpop l
        RPOP l 1 => rpop l
        LPOP l 0 =>
        LPOP none =>
        RPOP l 9 => rpop l, del l
        RPUSH l a a => new l, rpush l
        LREM l 0 a => lrem l, del l
        RPUSH l a => new l, rpush l
        LTRIM l 1 0 => ltrim l, del l
        RPUSH l a => new l, rpush l
        LPOP l => lpop l, del l
        "#,
    );
}

#[test]
fn moves_and_pops_of_several() {
    check_events(
        r#"
        RPUSH {l} a b c d => new {l}, rpush {l}
        LMOVE {l} {l}m LEFT RIGHT => new {l}m, rpush {l}m, lpop {l}
        RPOPLPUSH {l} {l}m => lpush {l}m, rpop {l}
        LMOVE {l} {l} LEFT LEFT => lpush {l}, lpop {l}
        LMOVE {l} {l} RIGHT LEFT => lpush {l}, rpop {l}
        BLMOVE {l} {l}m RIGHT RIGHT 0 => rpush {l}m, rpop {l}
        BRPOPLPUSH {l} {l}m 0 => lpush {l}m, rpop {l}, del {l}
        LMOVE {l} {l}m LEFT LEFT =>
        BLPOP {l} {l}m 0 => lpop {l}m
        BRPOP {l}m 0 => rpop {l}m
        LMPOP 2 {l} {l}m LEFT => lpop {l}m
        BLMPOP 0 1 {l}m RIGHT COUNT 9 => rpop {l}m, del {l}m
        "#,
    );
}

#[test]
fn reading() {
    check_events(
        r#"
        RPUSH l a => new l, rpush l
        LLEN l =>
        LINDEX l 5 =>
        LPOS l nosuch =>
        LLEN none => keymiss none
        LINDEX none 0 => keymiss none
        LRANGE none 0 -1 => keymiss none
        LPOS none a => keymiss none
        "#,
    );
}
