//! Lists: the rows, each with its documentation: Redis's facts in our words.

use super::{elements, ends, moves};
use execution::command::{Command, Flags, KeyFlags, Keys, at_least, counted, exactly, key, keys, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("lpush", at_least(3), key(1).added_to(), ends::lpush)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Puts elements in front of a list, one after the other, and replies with its length.")
        .complexity("O(1) for each element")
        .history(&[("2.4.0", "Takes several elements in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("element").multiple()]),
    write("rpush", at_least(3), key(1).added_to(), ends::rpush)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Puts elements at the end of a list and replies with its length.")
        .complexity("O(1) for each element")
        .history(&[("2.4.0", "Takes several elements in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("element").multiple()]),
    write("lpushx", at_least(3), key(1).added_to(), ends::lpushx)
        .fast()
        .grows_memory()
        .doc("2.2.0", "Puts elements in front of a list if there is one.")
        .complexity("O(1) for each element")
        .history(&[("4.0.0", "Takes several elements in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("element").multiple()]),
    write("rpushx", at_least(3), key(1).added_to(), ends::rpushx)
        .fast()
        .grows_memory()
        .doc("2.2.0", "Puts elements at the end of a list if there is one.")
        .complexity("O(1) for each element")
        .history(&[("4.0.0", "Takes several elements in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("element").multiple()]),
    write("lpop", at_least(2), key(1).taken_from(), ends::lpop)
        .fast()
        .doc("1.0.0", "Takes the first element of a list, or several; a list without elements ceases to exist.")
        .complexity("O(N) for N elements")
        .history(&[("6.2.0", "Takes a `count`.")])
        .arguments(&[arg::key("key", 0), arg::integer("count").since("6.2.0").optional()]),
    write("rpop", at_least(2), key(1).taken_from(), ends::rpop)
        .fast()
        .doc("1.0.0", "Takes the last element of a list, or several; a list without elements ceases to exist.")
        .complexity("O(N) for N elements")
        .history(&[("6.2.0", "Takes a `count`.")])
        .arguments(&[arg::key("key", 0), arg::integer("count").since("6.2.0").optional()]),
    read("llen", exactly(2), key(1).examined(), elements::llen)
        .fast()
        .doc("1.0.0", "Returns how many elements a list has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    read("lindex", exactly(3), key(1), elements::lindex)
        .doc("1.0.0", "Returns an element of a list by its index, from the end if that is negative.")
        .complexity("O(N) for N elements that are passed over; most of them are passed over in chunks")
        .arguments(&[arg::key("key", 0), arg::integer("index")]),
    write("linsert", exactly(5), key(1).added_to(), elements::linsert)
        .grows_memory()
        .doc("2.2.0", "Inserts an element before or after the first that is equal to a pivot.")
        .complexity("O(N) for N elements before the pivot")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of("where", &[arg::token("before", "BEFORE"), arg::token("after", "AFTER")]),
            arg::string("pivot"),
            arg::string("element"),
        ]),
    write("lset", exactly(4), key(1).access(KeyFlags::RW.union(KeyFlags::UPDATE)), elements::lset)
        .grows_memory()
        .doc("1.0.0", "Gives an element of a list another value, by its index.")
        .complexity("O(N) for N elements that are passed over; most of them are passed over in chunks")
        .arguments(&[arg::key("key", 0), arg::integer("index"), arg::string("element")]),
    read("lrange", exactly(4), key(1), elements::lrange)
        .doc("1.0.0", "Lists the elements of a list from one index to another.")
        .complexity("O(S + N) for N elements of which the first has S before it, or behind it")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("stop")]),
    write("lrem", exactly(4), key(1).removed_from(), elements::lrem)
        .doc("1.0.0", "Takes elements that are equal to a value out of a list: the first, the last or all.")
        .complexity("O(N) in a list of N")
        .arguments(&[arg::key("key", 0), arg::integer("count"), arg::string("element")]),
    write("ltrim", exactly(4), key(1).removed_from(), elements::ltrim)
        .doc("1.0.0", "Takes all elements out of a list but those from one index to another.")
        .complexity("O(N) for N elements that are removed")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("stop")]),
    read("lpos", at_least(3), key(1), elements::lpos)
        .doc("6.0.6", "Returns the index of an element that is equal to a value, or of several.")
        .complexity("O(N) in a list of N")
        .arguments(&[
            arg::key("key", 0),
            arg::string("element"),
            arg::integer("rank").after("RANK").optional(),
            arg::integer("num-matches").after("COUNT").optional(),
            arg::integer("len").after("MAXLEN").optional(),
        ]),
    write("lmove", exactly(5), FROM_TO, moves::lmove)
        .copies_values()
        .grows_memory()
        .doc("6.2.0", "Moves an element from one end of a list to one end of another, and returns it.")
        .complexity("O(1)")
        .arguments(&[arg::key("source", 0), arg::key("destination", 1), WHEREFROM, WHERETO]),
    write("rpoplpush", exactly(3), FROM_TO, moves::rpoplpush)
        .copies_values()
        .grows_memory()
        .doc("1.2.0", "Moves the last element of a list to the front of another, and returns it.")
        .complexity("O(1)")
        .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")
        .arguments(&[arg::key("source", 0), arg::key("destination", 1)]),
    write("lmpop", at_least(4), counted(1).taken_from(), ends::lmpop)
        .doc("7.0.0", "Takes elements from one end of the first list that is there.")
        .complexity("O(K + N) for K keys and N elements")
        .arguments(&[NUMKEYS, arg::key("key", 0).multiple(), WHERE, COUNT]),
    write("blpop", at_least(3), keys(1, -2, 1).taken_from(), ends::blpop)
        .flag(Flags::BLOCKING)
        .doc("2.0.0", "Takes the first element of the first list that is there, or waits until one is.")
        .complexity("O(K) for K keys")
        .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
        .arguments(&[arg::key("key", 0).multiple(), arg::double("timeout")]),
    write("brpop", at_least(3), keys(1, -2, 1).taken_from(), ends::brpop)
        .flag(Flags::BLOCKING)
        .doc("2.0.0", "Takes the last element of the first list that is there, or waits until one is.")
        .complexity("O(K) for K keys")
        .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
        .arguments(&[arg::key("key", 0).multiple(), arg::double("timeout")]),
    write("blmove", exactly(6), FROM_TO, moves::blmove)
        .flag(Flags::BLOCKING)
        .copies_values()
        .grows_memory()
        .doc("6.2.0", "Moves an element from one list to another, or waits until there is one.")
        .complexity("O(1)")
        .arguments(&[arg::key("source", 0), arg::key("destination", 1), WHEREFROM, WHERETO, arg::double("timeout")]),
    write("brpoplpush", exactly(4), FROM_TO, moves::brpoplpush)
        .flag(Flags::BLOCKING)
        .copies_values()
        .grows_memory()
        .doc("2.2.0", "Moves the last element of a list to the front of another, or waits until there is one.")
        .complexity("O(1)")
        .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")
        .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
        .arguments(&[arg::key("source", 0), arg::key("destination", 1), arg::double("timeout")]),
    write("blmpop", at_least(5), counted(2).taken_from(), ends::blmpop)
        .flag(Flags::BLOCKING)
        .doc("7.0.0", "Takes elements from one end of the first list that is there, or waits until one is.")
        .complexity("O(K + N) for K keys and N elements")
        .arguments(&[arg::double("timeout"), NUMKEYS, arg::key("key", 0).multiple(), WHERE, COUNT]),
];

const FROM_TO: Keys = key(1).taken_from().and(key(2).added_to());
const NUMKEYS: Argument = arg::integer("numkeys");
const ENDS: &[Argument] = &[arg::token("left", "LEFT"), arg::token("right", "RIGHT")];
const WHERE: Argument = arg::one_of("where", ENDS);
const WHEREFROM: Argument = arg::one_of("wherefrom", ENDS);
const WHERETO: Argument = arg::one_of("whereto", ENDS);
const COUNT: Argument = arg::integer("count").after("COUNT").optional();
