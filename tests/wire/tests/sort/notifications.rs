//! Keyspace notifications of SORT.

use wire::check_events;

#[test]
fn events() {
    check_events(
        r#"
        RPUSH l 2 1 => new l, rpush l
        SORT l =>
        SORT l STORE d => new d, sortstore d
        SORT l STORE d => sortstore d
        SORT l LIMIT 0 0 STORE d => del d
        SORT none => keymiss none
        SORT none STORE d => keymiss none
        SET w_1 5 => new w_1, set w_1
        SORT l BY w_* => keymiss w_2
        SORT l GET w_* => keymiss w_2
        "#,
    );
}
