//! Sets: the rows, each with its documentation: Redis's facts in our words.

use super::{algebra, members, random, scan};
use execution::command::{Command, KeyFlags, Keys, at_least, counted, exactly, key, keys, read, write};
use execution::docs::argument as arg;

pub(super) const COMMANDS: &[Command] = &[
    write("sadd", at_least(3), key(1).added_to(), members::sadd)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Puts members into a set and replies with how many of them are new.")
        .complexity("O(1) for each member")
        .history(&[("2.4.0", "Takes several members in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    read("scard", exactly(2), key(1).examined(), members::scard)
        .fast()
        .doc("1.0.0", "Returns the number of members of a set.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    read("sismember", exactly(3), key(1).examined(), members::sismember)
        .fast()
        .doc("1.0.0", "Returns whether a set has a member.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("member")]),
    read("smembers", exactly(2), key(1), members::smembers)
        .tips(IN_NO_ORDER)
        .doc("1.0.0", "Lists all members of a set.")
        .complexity("O(N) for N members")
        .arguments(&[arg::key("key", 0)]),
    read("smismember", at_least(3), key(1), members::smismember)
        .fast()
        .doc("6.2.0", "Returns for each of several members whether a set has it.")
        .complexity("O(N) for N members asked for")
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    write("smove", exactly(4), key(1).taken_from().and(key(2).added_to()), members::smove)
        .fast()
        .doc("1.0.0", "Takes a member out of one set and puts it into another.")
        .complexity("O(1)")
        .arguments(&[arg::key("source", 0), arg::key("destination", 1), arg::string("member")]),
    write("srem", at_least(3), key(1).removed_from(), members::srem)
        .fast()
        .doc("1.0.0", "Takes members out of a set; a set without members ceases to exist.")
        .complexity("O(N) for N members given")
        .history(&[("2.4.0", "Takes several members in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    write("spop", at_least(2), key(1).taken_from(), random::spop)
        .fast()
        .tips(BY_CHANCE)
        .doc("1.0.0", "Takes members out of a set at random and replies with them.")
        .complexity("O(N) for N members taken")
        .history(&[("3.2.0", "Takes a `count`.")])
        .arguments(&[arg::key("key", 0), arg::integer("count").since("3.2.0").optional()]),
    read("srandmember", at_least(2), key(1), random::srandmember)
        .tips(BY_CHANCE)
        .doc("1.0.0", "Picks members of a set at random.")
        .complexity("O(N) for N members returned")
        .history(&[("2.6.0", "Takes a `count`.")])
        .arguments(&[arg::key("key", 0), arg::integer("count").since("2.6.0").optional()]),
    read("sdiff", at_least(2), keys(1, -1, 1), algebra::sdiff)
        .tips(IN_NO_ORDER)
        .doc("1.0.0", "Lists the members of the first set that no other has.")
        .complexity("O(N) for N members in all sets")
        .arguments(&[arg::key("key", 0).multiple()]),
    write("sdiffstore", at_least(3), key(1).overwritten().and(keys(2, -1, 1).read()), algebra::sdiffstore)
        .copies_values()
        .grows_memory()
        .doc("1.0.0", "Keeps the members of the first set that no other has under a key.")
        .complexity("O(N) for N members in all sets")
        .arguments(&[arg::key("destination", 0), arg::key("key", 1).multiple()]),
    read("sinter", at_least(2), keys(1, -1, 1), algebra::sinter)
        .tips(IN_NO_ORDER)
        .doc("1.0.0", "Lists the members that several sets have in common.")
        .complexity("O(N*K) for N members in the smallest of K sets")
        .arguments(&[arg::key("key", 0).multiple()]),
    read("sintercard", at_least(3), counted(1), algebra::sintercard)
        .doc("7.0.0", "Counts the members that several sets have in common.")
        .complexity("O(N*K) for N members in the smallest of K sets")
        .arguments(&[
            arg::integer("numkeys"),
            arg::key("key", 0).multiple(),
            arg::integer("limit").after("LIMIT").optional(),
        ]),
    write("sinterstore", at_least(3), INTERSECTION.and(keys(2, -1, 1).read()), algebra::sinterstore)
        .copies_values()
        .grows_memory()
        .doc("1.0.0", "Keeps the members that several sets have in common under a key.")
        .complexity("O(N*K) for N members in the smallest of K sets")
        .arguments(&[arg::key("destination", 0), arg::key("key", 1).multiple()]),
    read("sunion", at_least(2), keys(1, -1, 1), algebra::sunion)
        .tips(IN_NO_ORDER)
        .doc("1.0.0", "Lists the members that any of several sets has.")
        .complexity("O(N) for N members in all sets")
        .arguments(&[arg::key("key", 0).multiple()]),
    write("sunionstore", at_least(3), key(1).overwritten().and(keys(2, -1, 1).read()), algebra::sunionstore)
        .copies_values()
        .grows_memory()
        .doc("1.0.0", "Keeps the members that any of several sets has under a key.")
        .complexity("O(N) for N members in all sets")
        .arguments(&[arg::key("destination", 0), arg::key("key", 1).multiple()]),
    read("sscan", at_least(3), key(1), scan::sscan)
        .tips(BY_CHANCE)
        .doc("2.8.0", "Walks through a set a few members at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N members")
        .arguments(&[
            arg::key("key", 0),
            arg::integer("cursor"),
            arg::pattern("pattern").after("MATCH").optional(),
            arg::integer("count").after("COUNT").optional(),
        ]),
];

/// Redis 7.0 flags the destination as if its new value depended on the old one, which it does not.
const INTERSECTION: Keys = key(1).access(KeyFlags::RW.union(KeyFlags::UPDATE));

/// Neither the order of members nor random choices are deterministic.
const BY_CHANCE: &[&str] = &["nondeterministic_output"];
const IN_NO_ORDER: &[&str] = &["nondeterministic_output_order"];
