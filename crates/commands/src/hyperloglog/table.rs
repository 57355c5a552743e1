//! HyperLogLogs: the rows, each with its documentation: Redis's facts in our words.

use super::{counting, debugging};
use execution::command::{Command, Flags, KeyFlags, Keys, at_least, exactly, key, keys, read, server, write};
use execution::docs::argument as arg;

pub(super) const COMMANDS: &[Command] = &[
    write("pfadd", at_least(2), key(1).added_to(), counting::pfadd)
        .fast()
        .grows_memory()
        .doc("2.8.9", "Adds elements to a HyperLogLog; replies 1 if its estimate may have changed.")
        .complexity("O(1) to add every element")
        .arguments(&[arg::key("key", 0), arg::string("element").optional().multiple()]),
    // It may store the computed count: see `View::keep_in_string`.
    read("pfcount", at_least(2), COUNTED, counting::pfcount)
        .flag(Flags::MAY_REPLICATE)
        .doc("2.8.9", "Estimates how many different elements were added to HyperLogLogs.")
        .complexity("O(1) for one key, O(N) for N")
        .arguments(&[arg::key("key", 0).multiple()]),
    write("pfdebug", exactly(3), key(2).access(KeyFlags::RW.union(KeyFlags::ACCESS)), debugging::pfdebug)
        .flag(Flags::ADMIN)
        .grows_memory()
        .system()
        .doc("2.8.9", "Shows what a HyperLogLog has inside: its registers, runs or form.")
        .complexity("N/A")
        .arguments(&[arg::string("subcommand"), arg::key("key", 0)]),
    write(
        "pfmerge",
        at_least(2),
        key(1).access(KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::INSERT)).and(keys(2, -1, 1).read()),
        counting::pfmerge,
    )
    .copies_values()
    .grows_memory()
    .doc("2.8.9", "Adds to a HyperLogLog what was added to others.")
    .complexity("O(N) to merge N HyperLogLogs")
    .arguments(&[arg::key("destkey", 0), arg::key("sourcekey", 1).multiple()]),
    server("pfselftest", exactly(1), debugging::pfselftest)
        .flag(Flags::ADMIN)
        .system()
        .doc("2.8.9", "Checks that HyperLogLogs count as they should.")
        .complexity("N/A"),
];

const COUNTED: Keys = keys(1, -1, 1)
    .access(KeyFlags::RW.union(KeyFlags::ACCESS))
    .noted("RW because what was counted may be kept in the value");
