//! Transactions, documented.

use super::CommandDoc;
use super::argument::key;

pub(super) const DOCS: &[CommandDoc] = &[
    doc("discard", "2.0.0", "Forgets the queued commands and ends the transaction.")
        .complexity("O(N) for N commands queued"),
    doc("exec", "1.2.0", "Executes the queued commands, all at once, unless a watched key has changed.")
        .complexity("That of the commands"),
    doc("multi", "1.2.0", "Begins a transaction: commands are queued until EXEC.").complexity("O(1)"),
    doc("unwatch", "2.2.0", "Forgets all watched keys.").complexity("O(1)"),
    doc("watch", "2.2.0", "Has EXEC do nothing if one of these keys changes before it.")
        .complexity("O(1) per key")
        .arguments(&[key("key", 0).multiple()]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("transactions", name, since, summary)
}
