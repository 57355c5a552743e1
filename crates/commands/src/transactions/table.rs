//! Transactions: the rows, each with its documentation: Redis's facts in our words.

use super::{interactive, multi};
use execution::command::{Command, Flags, at_least, exactly, keys, server, write};
use execution::docs::argument as arg;

pub(super) const COMMANDS: &[Command] = &[
    server("discard", exactly(1), multi::discard)
        .flag(FAST)
        .flag(AT_ONCE)
        .doc("2.0.0", "Forgets the queued commands and ends the transaction.")
        .complexity("O(N) for N commands queued"),
    server("exec", exactly(1), multi::exec)
        .flag(ANYTIME)
        .flag(Flags::SKIP_SLOWLOG)
        .flag(AT_ONCE)
        .flag(Flags::ENDS_QUEUE)
        .doc("1.2.0", "Executes the queued commands, all at once, unless a watched key has changed.")
        .complexity("That of the commands"),
    server("multi", exactly(1), multi::multi)
        .flag(FAST)
        .flag(AT_ONCE)
        .doc("1.2.0", "Begins a transaction: commands are queued until EXEC.")
        .complexity("O(1)"),
    server("txn.begin", at_least(1), interactive::begin)
        .flag(INTERACTIVE)
        .flag(Flags::BEGINS_TXN)
        .own_doc("0.1.0", "Begins a transaction whose commands answer at once and take effect with TXN.COMMIT.")
        .complexity("O(1); READONLY locks all keys for a moment")
        .arguments(&[arg::token("readonly", "READONLY").optional()]),
    server("txn.commit", exactly(1), interactive::commit)
        .flag(INTERACTIVE)
        .flag(Flags::ENDS_TXN)
        .flag(Flags::MAY_REPLICATE)
        .own_doc("0.1.0", "Applies an interactive transaction, unless one of its keys was changed by another client.")
        .complexity("O(N) for N keys and changes"),
    server("txn.rollback", exactly(1), interactive::rollback)
        .flag(INTERACTIVE)
        .flag(Flags::ENDS_TXN)
        .own_doc("0.1.0", "Ends an interactive transaction without applying anything.")
        .complexity("O(N) for N keys"),
    server("unwatch", exactly(1), multi::unwatch)
        .flag(FAST)
        .flag(Flags::NO_TXN)
        .doc("2.2.0", "Forgets all watched keys.")
        .complexity("O(1)"),
    write("watch", at_least(2), keys(1, -1, 1).examined(), multi::watch)
        .not_data()
        .flag(FAST)
        .flag(AT_ONCE)
        .doc("2.2.0", "Has EXEC do nothing if one of these keys changes before it.")
        .complexity("O(1) per key")
        .arguments(&[arg::key("key", 0).multiple()]),
];

const ANYTIME: Flags = Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE);
const FAST: Flags = ANYTIME.union(Flags::FAST).union(Flags::ALLOW_BUSY);
/// Not allowed in MULTI or in a script.
const INTERACTIVE: Flags = Flags::FAST.union(Flags::NOSCRIPT).union(Flags::NO_MULTI);
/// Commands that begin or end a queue are not queued.
const AT_ONCE: Flags = Flags::NOT_QUEUED;
