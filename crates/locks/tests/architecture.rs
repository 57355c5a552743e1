//! The table of locks in docs/architecture/locks.md is the one in the code.

use locks::rank;

#[test]
fn the_documented_order_is_the_order() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/architecture/locks.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let rows = rank::ALL.iter().map(|(rank, name, guards)| format!("| {rank} | `{name}` | {guards} |\n"));
    let expected = format!("| rank | lock | what it guards |\n| --- | --- | --- |\n{}", rows.collect::<String>());
    assert!(text.contains(&expected), "docs/architecture/locks.md should have this table:\n{expected}");
}
