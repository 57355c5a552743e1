//! Registers: the rows, each with its documentation.

use super::{read, restore, snapshot, write};
use crate::shared::reach;
use execution::command::{Command, at_least, definition, exactly, key, keys, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    read("reg.get", exactly(2), key(1).read(), read::get)
        .fast()
        .own_doc("0.1.0", "Returns the value of a register and its version.")
        .complexity("O(1)")
        .arguments(&[REGISTER]),
    write("reg.incrby", at_least(4), key(1).changed(), write::incrby)
        .fast()
        .grows_memory()
        .own_doc("0.1.0", "Adds to the value of a register, once for each version.")
        .complexity("O(1); O(N) when N buffered versions are applied")
        .arguments(&[REGISTER, VERSION, arg::integer("increment"), ORDERED]),
    read("reg.mget", at_least(2), keys(1, -1, 1).read(), read::mget)
        .fast()
        .own_doc("0.1.0", "Returns the values of registers and their versions.")
        .complexity("O(N) for N registers")
        .arguments(&[REGISTER.multiple()]),
    write("reg.put", at_least(4), key(1).changed(), write::put)
        .fast()
        .grows_memory()
        .own_doc("0.1.0", "Puts a value into a register, once for each version; an older one never replaces a newer.")
        .complexity("O(1); O(N) when N buffered versions are applied")
        .arguments(&[REGISTER, VERSION, arg::string("value"), ORDERED]),
    definition("reg.restore", at_least(2), restore::restore)
        .searches(reach::restores)
        .grows_memory()
        .own_doc("0.1.0", "Sets registers from a snapshot, or merges them by version; INTO names another prefix.")
        .complexity("O(N) for N registers, and O(M) for M keys looked at, while other commands go on")
        .arguments(&[
            arg::one_of("source", &[arg::string("snapshot"), arg::string("source-key").after("FROM")]),
            arg::one_of("policy", &[arg::token("replace", "REPLACE"), arg::token("merge", "MERGE")]).optional(),
            arg::string("prefix").after("INTO").optional(),
        ]),
    write("reg.seal", exactly(3), key(1).changed(), write::seal)
        .grows_memory()
        .own_doc("0.1.0", "Says that no version below is to come, and applies what was buffered.")
        .complexity("O(N) for N buffered versions")
        .arguments(&[REGISTER, VERSION]),
    definition("reg.snapshot", at_least(1), snapshot::snapshot)
        .searches(reach::snapshots)
        .grows_memory()
        .reads_if(snapshot::only_reads)
        .own_doc("0.1.0", "Returns registers as one blob with an input position, or stores it as a string.")
        .complexity("O(N) for N keys looked at, while other commands go on")
        .arguments(&[
            arg::one_of(
                "scope",
                &[
                    arg::string("prefix").after("PREFIX"),
                    arg::block("keys", &[arg::integer("numkeys"), arg::string("name").multiple()]).after("KEYS"),
                ],
            )
            .optional(),
            arg::string("position").after("POSITION").optional(),
            arg::string("destination").after("STORE").optional(),
        ]),
];

const REGISTER: Argument = arg::key("key", 0);
const VERSION: Argument = arg::string("version");
const ORDERED: Argument = arg::token("ordered", "ORDERED").optional();
