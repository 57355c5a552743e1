//! LMOVE and RPOPLPUSH. Those that wait are in `blocking`.

use wire::{Random, Session, check};

#[test]
fn lmove() {
    check(
        r#"
        ! RPUSH a 1 2 3 4
        > LMOVE a b LEFT LEFT
        "1"
        > LMOVE a b LEFT RIGHT
        "2"
        > LMOVE a b right left
        "4"
        > LMOVE a b RIGHT RIGHT
        "3"
        > EXISTS a
        :0
        > LRANGE b 0 -1
        ["4", "1", "2", "3"]
        > LMOVE a b LEFT LEFT
        (nil)
        > LMOVE nosuch b LEFT LEFT
        (nil)
        ! RPUSH a "" "\x00x"
        > LMOVE a b RIGHT LEFT
        "\x00x"
        > LMOVE a b RIGHT LEFT
        ""
        > LRANGE b 0 1
        ["", "\x00x"]
        "#,
    );
}

#[test]
fn to_the_same_list() {
    check(
        r#"
        ! RPUSH l a b c
        > LMOVE l l LEFT RIGHT
        "a"
        > LRANGE l 0 -1
        ["b", "c", "a"]
        > LMOVE l l RIGHT LEFT
        "a"
        > LRANGE l 0 -1
        ["a", "b", "c"]
        > LMOVE l l LEFT LEFT
        "a"
        > LMOVE l l RIGHT RIGHT
        "c"
        > LRANGE l 0 -1
        ["a", "b", "c"]
        > RPOPLPUSH l l
        "c"
        > LRANGE l 0 -1
        ["c", "a", "b"]
        > DEL l
        :1
        ! RPUSH l only
        > EXPIRE l 1000
        :1
        > LMOVE l l LEFT RIGHT
        "only"
        > RPOPLPUSH l l
        "only"
        > LRANGE l 0 -1
        ["only"]
        > TTL l
        :900..1000
        "#,
    );
}

#[test]
fn deadlines_stay_with_their_keys() {
    check(
        r#"
        ! RPUSH a 1 2
        ! RPUSH b x
        > EXPIRE a 1000
        :1
        > EXPIRE b 2000
        :1
        > LMOVE a b LEFT LEFT
        "1"
        > TTL a
        :900..1000
        > TTL b
        :1900..2000
        > LMOVE a c LEFT LEFT
        "2"
        > EXISTS a
        :0
        > TTL c
        :-1
        "#,
    );
}

#[test]
fn rpoplpush() {
    check(
        r#"
        ! RPUSH a 1 2 3
        > RPOPLPUSH a b
        "3"
        > RPOPLPUSH a b
        "2"
        > LRANGE a 0 -1
        ["1"]
        > LRANGE b 0 -1
        ["2", "3"]
        > RPOPLPUSH nosuch b
        (nil)
        > RPOPLPUSH a b
        "1"
        > EXISTS a
        :0
        "#,
    );
}

#[test]
fn moves_refuse() {
    check(
        r#"
        ! RPUSH l a b
        ! SET s v
        -WRONGTYPE Operation against a key holding the wrong kind of value
            LMOVE s l LEFT LEFT
            LMOVE l s LEFT LEFT
            LMOVE s s LEFT LEFT
        > LMOVE nosuch s LEFT LEFT
        (nil)
        -WRONGTYPE Operation against a key holding the wrong kind of value
            RPOPLPUSH s l
            RPOPLPUSH l s
        > RPOPLPUSH nosuch s
        (nil)
        -ERR syntax error
            LMOVE l l UP LEFT
            LMOVE l l LEFT UP
            LMOVE nosuch l UP LEFT
        LRANGE l 0 -1 => ["a", "b"]
        GET s => "v"
        "#,
    );
}

/// The locks of a pipeline's next commands are taken together, whichever keys they have in common.
#[test]
fn pipelines_of_many_clients_lose_nothing() {
    const LISTS: usize = 24;
    const ELEMENTS: usize = 200;
    let session = Session::start();
    let mut control = session.connect();
    for number in 0..ELEMENTS {
        control.run(&format!("RPUSH l{} {number}", number % LISTS));
    }
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            let mut client = session.connect();
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..100 {
                    let lines: Vec<String> = (0..30)
                        .map(|_| {
                            let mut list = || format!("l{}", random.below(LISTS));
                            match (list(), list()) {
                                (from, to) if random.one_in(4) => format!("RPOPLPUSH {from} {to}"),
                                (from, _) if random.one_in(6) => format!("LLEN {from}"),
                                (from, to) => format!("LMOVE {from} {to} LEFT RIGHT"),
                            }
                        })
                        .collect();
                    assert_eq!(client.pipeline(&lines).len(), lines.len());
                }
            });
        }
    });
    let mut left: Vec<usize> = Vec::new();
    for list in 0..LISTS {
        let elements = control.run(&format!("LRANGE l{list} 0 -1"));
        left.extend(elements.items().iter().map(|element| element.text().parse::<usize>().unwrap()));
    }
    left.sort_unstable();
    assert_eq!(left, (0..ELEMENTS).collect::<Vec<_>>());
}
