//! Commands that only sorted sets have, and that wake clients who wait for one. What wakes them in general is in `collections`.

use wire::check;

#[test]
fn every_way_to_make_a_sorted_set() {
    for (command, served) in [
        ("ZINCRBY z 2.5 a", r#"["z", "a", "2.5"]"#),
        ("ZADD z INCR 2.5 a", r#"["z", "a", "2.5"]"#),
        ("ZUNIONSTORE z 1 y", r#"["z", "c", "3"]"#),
        ("ZINTERSTORE z 2 y y", r#"["z", "c", "6"]"#),
        ("ZDIFFSTORE z 2 y nosuch", r#"["z", "c", "3"]"#),
        ("ZRANGESTORE z y 0 -1", r#"["z", "c", "3"]"#),
    ] {
        check(&format!(
            r#"
            2> ZADD y 3 c
            :1
            > BZPOPMIN z 0
            # until blocked_clients:1
            2> {command}
            *
            1< {served}
            > BZMPOP 0.01 1 z MAX
            (nil array)
            "#
        ));
    }
}
