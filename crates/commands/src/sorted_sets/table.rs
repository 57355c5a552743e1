//! Sorted sets: the rows, each with its documentation: Redis's facts in our words.

use super::{algebra, members, pops, ranges, scan};
use execution::command::{Command, Flags, at_least, counted, exactly, key, keys, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("zadd", at_least(4), key(1), members::zadd)
        .fast()
        .grows_memory()
        .doc("1.2.0", "Gives members of a sorted set scores and replies with how many of them are new.")
        .complexity("O(log(N)) for each member, in a set of N")
        .history(&[
            ("2.4.0", "Takes several members in one call."),
            ("3.0.2", "Takes the options `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Takes the options `GT` and `LT`."),
        ])
        .arguments(&[
            arg::key("key", 0),
            arg::one_of("condition", &[arg::token("nx", "NX"), arg::token("xx", "XX")]).since("3.0.2").optional(),
            arg::one_of("comparison", &[arg::token("gt", "GT"), arg::token("lt", "LT")]).since("6.2.0").optional(),
            arg::token("change", "CH").since("3.0.2").optional(),
            arg::token("increment", "INCR").since("3.0.2").optional(),
            arg::block("data", &[arg::double("score"), arg::string("member")]).multiple(),
        ]),
    read("zcard", exactly(2), key(1).examined(), members::zcard)
        .fast()
        .doc("1.2.0", "Returns how many members a sorted set has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("zincrby", exactly(4), key(1).changed(), members::zincrby)
        .fast()
        .grows_memory()
        .doc("1.2.0", "Adds an amount to the score of a member; a missing member has the score 0.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[arg::key("key", 0), arg::integer("increment"), arg::string("member")]),
    read("zmscore", at_least(3), key(1), members::zmscore)
        .fast()
        .doc("6.2.0", "Returns the scores of several members, with nil for each that the sorted set lacks.")
        .complexity("O(N) for N members")
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    read("zrank", at_least(3), key(1), members::zrank)
        .fast()
        .doc("2.0.0", "Returns how many members of a sorted set come before one, by ascending score.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("7.2.0", "Takes the option `WITHSCORE`.")])
        .arguments(&[arg::key("key", 0), arg::string("member"), WITHSCORE]),
    write("zrem", at_least(3), key(1).removed_from(), members::zrem)
        .fast()
        .doc("1.2.0", "Takes members out of a sorted set; a set without members ceases to exist.")
        .complexity("O(M*log(N)) for M members out of N")
        .history(&[("2.4.0", "Takes several members in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    read("zrevrank", at_least(3), key(1), members::zrevrank)
        .fast()
        .doc("2.0.0", "Returns how many members of a sorted set come before one, by descending score.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("7.2.0", "Takes the option `WITHSCORE`.")])
        .arguments(&[arg::key("key", 0), arg::string("member"), WITHSCORE]),
    read("zscore", exactly(3), key(1), members::zscore)
        .fast()
        .doc("1.2.0", "Returns the score of a member of a sorted set.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("member")]),
    read("zcount", exactly(4), key(1), ranges::zcount)
        .fast()
        .doc("2.0.0", "Counts the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[arg::key("key", 0), arg::double("min"), arg::double("max")]),
    read("zlexcount", exactly(4), key(1), ranges::zlexcount)
        .fast()
        .doc("2.8.9", "Counts the members of one score whose names are within a range.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[arg::key("key", 0), arg::string("min"), arg::string("max")]),
    read("zrange", at_least(4), key(1), ranges::zrange)
        .doc("1.2.0", "Lists the members of a sorted set within a range of ranks, scores or names.")
        .complexity("O(log(N) + M) for M members out of N")
        .history(&[("6.2.0", "Takes the options `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")])
        .arguments(&[
            arg::key("key", 0),
            arg::string("start"),
            arg::string("stop"),
            SORTBY.since("6.2.0"),
            arg::token("rev", "REV").since("6.2.0").optional(),
            LIMIT.since("6.2.0"),
            WITHSCORES,
        ]),
    read("zrangebylex", at_least(4), key(1), ranges::zrangebylex)
        .doc("2.8.9", "Lists the members of one score whose names are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument")
        .arguments(&[arg::key("key", 0), arg::string("min"), arg::string("max"), LIMIT]),
    read("zrangebyscore", at_least(4), key(1), ranges::zrangebyscore)
        .doc("1.0.5", "Lists the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument")
        .history(&[("2.0.0", "Takes the option `WITHSCORES`.")])
        .arguments(&[arg::key("key", 0), arg::double("min"), arg::double("max"), WITHSCORES.since("2.0.0"), LIMIT]),
    write("zrangestore", at_least(5), key(1).overwritten().and(key(2).read()), ranges::zrangestore)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("6.2.0", "Keeps the members of a sorted set within a range under another key.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[
            arg::key("dst", 0),
            arg::key("src", 1),
            arg::string("min"),
            arg::string("max"),
            SORTBY,
            arg::token("rev", "REV").optional(),
            LIMIT,
        ]),
    write("zremrangebylex", exactly(4), key(1).removed_from(), ranges::zremrangebylex)
        .doc("2.8.9", "Takes out the members of one score whose names are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[arg::key("key", 0), arg::string("min"), arg::string("max")]),
    write("zremrangebyrank", exactly(4), key(1).removed_from(), ranges::zremrangebyrank)
        .doc("2.0.0", "Takes out the members of a sorted set within a range of ranks.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("stop")]),
    write("zremrangebyscore", exactly(4), key(1).removed_from(), ranges::zremrangebyscore)
        .doc("1.2.0", "Takes out the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[arg::key("key", 0), arg::double("min"), arg::double("max")]),
    read("zrevrange", at_least(4), key(1), ranges::zrevrange)
        .doc("1.2.0", "Lists the members of a sorted set within a range of ranks, highest first.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("stop"), WITHSCORES]),
    read("zrevrangebylex", at_least(4), key(1), ranges::zrevrangebylex)
        .doc("2.8.9", "Lists the members of one score whose names are within a range, backwards.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")
        .arguments(&[arg::key("key", 0), arg::string("max"), arg::string("min"), LIMIT]),
    read("zrevrangebyscore", at_least(4), key(1), ranges::zrevrangebyscore)
        .doc("2.2.0", "Lists the members whose scores are within a range, highest first.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")
        .history(&[("2.1.6", "Either end of the range may be excluded.")])
        .arguments(&[arg::key("key", 0), arg::double("max"), arg::double("min"), WITHSCORES, LIMIT]),
    write("bzmpop", at_least(5), counted(2).taken_from(), pops::bzmpop)
        .flag(Flags::BLOCKING)
        .doc("7.0.0", "Takes members from one end of the first sorted set that is there, or waits until one is.")
        .complexity("O(K + M*log(N)) for K keys and M members out of N")
        .arguments(&[
            arg::double("timeout"),
            NUMKEYS,
            arg::key("key", 0).multiple(),
            arg::one_of("where", &[arg::token("min", "MIN"), arg::token("max", "MAX")]),
            arg::integer("count").after("COUNT").optional(),
        ]),
    write("bzpopmax", at_least(3), keys(1, -2, 1).taken_from(), pops::bzpopmax)
        .fast()
        .flag(Flags::BLOCKING)
        .doc("5.0.0", "Takes the member with the highest score out of a sorted set, or waits until there is one.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
        .arguments(&[arg::key("key", 0).multiple(), arg::double("timeout")]),
    write("bzpopmin", at_least(3), keys(1, -2, 1).taken_from(), pops::bzpopmin)
        .fast()
        .flag(Flags::BLOCKING)
        .doc("5.0.0", "Takes the member with the lowest score out of a sorted set, or waits until there is one.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
        .arguments(&[arg::key("key", 0).multiple(), arg::double("timeout")]),
    write("zmpop", at_least(4), counted(1).taken_from(), pops::zmpop)
        .doc("7.0.0", "Takes members from one end of the first sorted set that is there.")
        .complexity("O(K + M*log(N)) for K keys and M members out of N")
        .arguments(&[
            NUMKEYS,
            arg::key("key", 0).multiple(),
            arg::one_of("where", &[arg::token("min", "MIN"), arg::token("max", "MAX")]),
            arg::integer("count").after("COUNT").optional(),
        ]),
    write("zpopmax", at_least(2), key(1).taken_from(), pops::zpopmax)
        .fast()
        .doc("5.0.0", "Takes the members with the highest scores out of a sorted set.")
        .complexity("O(M*log(N)) for M members out of N")
        .arguments(&[arg::key("key", 0), arg::integer("count").optional()]),
    write("zpopmin", at_least(2), key(1).taken_from(), pops::zpopmin)
        .fast()
        .doc("5.0.0", "Takes the members with the lowest scores out of a sorted set.")
        .complexity("O(M*log(N)) for M members out of N")
        .arguments(&[arg::key("key", 0), arg::integer("count").optional()]),
    read("zdiff", at_least(3), counted(1), algebra::zdiff)
        .doc("6.2.0", "Lists the members of the first sorted set that no other has.")
        .complexity("O(L + N*log(N)) for L members in all sets and N in the first")
        .arguments(&[NUMKEYS, arg::key("key", 0).multiple(), WITHSCORES]),
    write("zdiffstore", at_least(4), key(1).overwritten().and(counted(2).read()), algebra::zdiffstore)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("6.2.0", "Keeps the members of the first sorted set that no other has under a key.")
        .complexity("O(L + N*log(N)) for L members in all sets and N in the first")
        .arguments(&[arg::key("destination", 0), NUMKEYS, arg::key("key", 1).multiple()]),
    read("zinter", at_least(3), counted(1), algebra::zinter)
        .doc("6.2.0", "Lists the members that several sorted sets have in common.")
        .complexity("O(N*K + M*log(M)) for N members in the smallest of K sets and M in the result")
        .arguments(&[NUMKEYS, arg::key("key", 0).multiple(), WEIGHTS, AGGREGATE, WITHSCORES]),
    read("zintercard", at_least(3), counted(1), algebra::zintercard)
        .doc("7.0.0", "Counts the members that several sorted sets have in common.")
        .complexity("O(N*K) for N members in the smallest of K sets")
        .arguments(&[NUMKEYS, arg::key("key", 0).multiple(), arg::integer("limit").after("LIMIT").optional()]),
    write("zinterstore", at_least(4), key(1).overwritten().and(counted(2).read()), algebra::zinterstore)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("2.0.0", "Keeps the members that several sorted sets have in common under a key.")
        .complexity("O(N*K + M*log(M)) for N members in the smallest of K sets and M in the result")
        .arguments(&[arg::key("destination", 0), NUMKEYS, arg::key("key", 1).multiple(), WEIGHTS, AGGREGATE]),
    read("zunion", at_least(3), counted(1), algebra::zunion)
        .doc("6.2.0", "Lists the members that any of several sorted sets has.")
        .complexity("O(N + M*log(M)) for N members in all sets and M in the result")
        .arguments(&[NUMKEYS, arg::key("key", 0).multiple(), WEIGHTS, AGGREGATE, WITHSCORES]),
    write("zunionstore", at_least(4), key(1).overwritten().and(counted(2).read()), algebra::zunionstore)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("2.0.0", "Keeps the members that any of several sorted sets has under a key.")
        .complexity("O(N + M*log(M)) for N members in all sets and M in the result")
        .arguments(&[arg::key("destination", 0), NUMKEYS, arg::key("key", 1).multiple(), WEIGHTS, AGGREGATE]),
    read("zrandmember", at_least(2), key(1), scan::zrandmember)
        .tips(BY_CHANCE)
        .doc("6.2.0", "Picks members of a sorted set at random, with their scores if wanted.")
        .complexity("O(N) for N members returned")
        .arguments(&[arg::key("key", 0), arg::block("options", &[arg::integer("count"), WITHSCORES]).optional()]),
    read("zscan", at_least(3), key(1), scan::zscan)
        .tips(BY_CHANCE)
        .doc("2.8.0", "Walks through a sorted set a few members at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N members")
        .arguments(&[
            arg::key("key", 0),
            arg::integer("cursor"),
            arg::pattern("pattern").after("MATCH").optional(),
            arg::integer("count").after("COUNT").optional(),
        ]),
];

/// Neither the order of members nor random choices are deterministic.
const BY_CHANCE: &[&str] = &["nondeterministic_output"];

const NUMKEYS: Argument = arg::integer("numkeys");
const WITHSCORE: Argument = arg::token("withscore", "WITHSCORE").optional();
const WITHSCORES: Argument = arg::token("withscores", "WITHSCORES").optional();
const WEIGHTS: Argument = arg::integer("weight").after("WEIGHTS").optional().multiple();
const AGGREGATE: Argument =
    arg::one_of("aggregate", &[arg::token("sum", "SUM"), arg::token("min", "MIN"), arg::token("max", "MAX")])
        .after("AGGREGATE")
        .optional();
const SORTBY: Argument =
    arg::one_of("sortby", &[arg::token("byscore", "BYSCORE"), arg::token("bylex", "BYLEX")]).optional();
const LIMIT: Argument = arg::block("limit", &[arg::integer("offset"), arg::integer("count")]).after("LIMIT").optional();
