//! Sorted sets, documented.

use super::CommandDoc;
use super::argument::{Argument, block, double, integer, key, one_of, pattern, string, token};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("bzmpop", "7.0.0", "Takes members from one end of the first sorted set that is there, or waits until one is.")
        .complexity("O(K + M*log(N)) for K keys and M members out of N")
        .arguments(&[
            double("timeout"),
            NUMKEYS,
            key("key", 0).multiple(),
            one_of("where", &[token("min", "MIN"), token("max", "MAX")]),
            integer("count").after("COUNT").optional(),
        ]),
    doc(
        "bzpopmax",
        "5.0.0",
        "Takes the member with the highest score out of a sorted set, or waits until there is one.",
    )
    .complexity("O(log(N)) in a set of N")
    .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
    .arguments(&[key("key", 0).multiple(), double("timeout")]),
    doc(
        "bzpopmin",
        "5.0.0",
        "Takes the member with the lowest score out of a sorted set, or waits until there is one.",
    )
    .complexity("O(log(N)) in a set of N")
    .history(&[("6.0.0", "Takes a `timeout` with decimals.")])
    .arguments(&[key("key", 0).multiple(), double("timeout")]),
    doc("zadd", "1.2.0", "Gives members of a sorted set scores and replies with how many of them are new.")
        .complexity("O(log(N)) for each member, in a set of N")
        .history(&[
            ("2.4.0", "Takes several members in one call."),
            ("3.0.2", "Takes the options `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Takes the options `GT` and `LT`."),
        ])
        .arguments(&[
            key("key", 0),
            one_of("condition", &[token("nx", "NX"), token("xx", "XX")]).since("3.0.2").optional(),
            one_of("comparison", &[token("gt", "GT"), token("lt", "LT")]).since("6.2.0").optional(),
            token("change", "CH").since("3.0.2").optional(),
            token("increment", "INCR").since("3.0.2").optional(),
            block("data", &[double("score"), string("member")]).multiple(),
        ]),
    doc("zcard", "1.2.0", "Tells how many members a sorted set has.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("zcount", "2.0.0", "Counts the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[key("key", 0), double("min"), double("max")]),
    doc("zdiff", "6.2.0", "Lists the members of the first sorted set that no other has.")
        .complexity("O(L + N*log(N)) for L members in all sets and N in the first")
        .arguments(&[NUMKEYS, key("key", 0).multiple(), WITHSCORES]),
    doc("zdiffstore", "6.2.0", "Keeps the members of the first sorted set that no other has under a key.")
        .complexity("O(L + N*log(N)) for L members in all sets and N in the first")
        .arguments(&[key("destination", 0), NUMKEYS, key("key", 1).multiple()]),
    doc("zincrby", "1.2.0", "Adds an amount to the score of a member; a missing member has the score 0.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[key("key", 0), integer("increment"), string("member")]),
    doc("zinter", "6.2.0", "Lists the members that several sorted sets have in common.")
        .complexity("O(N*K + M*log(M)) for N members in the smallest of K sets and M in the result")
        .arguments(&[NUMKEYS, key("key", 0).multiple(), WEIGHTS, AGGREGATE, WITHSCORES]),
    doc("zintercard", "7.0.0", "Counts the members that several sorted sets have in common.")
        .complexity("O(N*K) for N members in the smallest of K sets")
        .arguments(&[NUMKEYS, key("key", 0).multiple(), integer("limit").after("LIMIT").optional()]),
    doc("zinterstore", "2.0.0", "Keeps the members that several sorted sets have in common under a key.")
        .complexity("O(N*K + M*log(M)) for N members in the smallest of K sets and M in the result")
        .arguments(&[key("destination", 0), NUMKEYS, key("key", 1).multiple(), WEIGHTS, AGGREGATE]),
    doc("zlexcount", "2.8.9", "Counts the members of one score whose names are within a range.")
        .complexity("O(log(N)) in a set of N")
        .arguments(&[key("key", 0), string("min"), string("max")]),
    doc("zmpop", "7.0.0", "Takes members from one end of the first sorted set that is there.")
        .complexity("O(K + M*log(N)) for K keys and M members out of N")
        .arguments(&[
            NUMKEYS,
            key("key", 0).multiple(),
            one_of("where", &[token("min", "MIN"), token("max", "MAX")]),
            integer("count").after("COUNT").optional(),
        ]),
    doc("zmscore", "6.2.0", "Tells the scores of several members, with nil for each that the sorted set lacks.")
        .complexity("O(N) for N members")
        .arguments(&[key("key", 0), string("member").multiple()]),
    doc("zpopmax", "5.0.0", "Takes the members with the highest scores out of a sorted set.")
        .complexity("O(M*log(N)) for M members out of N")
        .arguments(&[key("key", 0), integer("count").optional()]),
    doc("zpopmin", "5.0.0", "Takes the members with the lowest scores out of a sorted set.")
        .complexity("O(M*log(N)) for M members out of N")
        .arguments(&[key("key", 0), integer("count").optional()]),
    doc("zrandmember", "6.2.0", "Picks members of a sorted set at random, with their scores if wanted.")
        .complexity("O(N) for N members returned")
        .arguments(&[key("key", 0), block("options", &[integer("count"), WITHSCORES]).optional()]),
    doc("zrange", "1.2.0", "Lists the members of a sorted set within a range of ranks, scores or names.")
        .complexity("O(log(N) + M) for M members out of N")
        .history(&[("6.2.0", "Takes the options `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")])
        .arguments(&[
            key("key", 0),
            string("start"),
            string("stop"),
            SORTBY.since("6.2.0"),
            token("rev", "REV").since("6.2.0").optional(),
            LIMIT.since("6.2.0"),
            WITHSCORES,
        ]),
    doc("zrangebylex", "2.8.9", "Lists the members of one score whose names are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument")
        .arguments(&[key("key", 0), string("min"), string("max"), LIMIT]),
    doc("zrangebyscore", "1.0.5", "Lists the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument")
        .history(&[("2.0.0", "Takes the option `WITHSCORES`.")])
        .arguments(&[key("key", 0), double("min"), double("max"), WITHSCORES.since("2.0.0"), LIMIT]),
    doc("zrangestore", "6.2.0", "Keeps the members of a sorted set within a range under another key.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[
            key("dst", 0),
            key("src", 1),
            string("min"),
            string("max"),
            SORTBY,
            token("rev", "REV").optional(),
            LIMIT,
        ]),
    doc("zrank", "2.0.0", "Tells how many members of a sorted set come before one, by ascending score.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("7.2.0", "Takes the option `WITHSCORE`.")])
        .arguments(&[key("key", 0), string("member"), WITHSCORE]),
    doc("zrem", "1.2.0", "Takes members out of a sorted set; a set without members ceases to exist.")
        .complexity("O(M*log(N)) for M members out of N")
        .history(&[("2.4.0", "Takes several members in one call.")])
        .arguments(&[key("key", 0), string("member").multiple()]),
    doc("zremrangebylex", "2.8.9", "Takes out the members of one score whose names are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[key("key", 0), string("min"), string("max")]),
    doc("zremrangebyrank", "2.0.0", "Takes out the members of a sorted set within a range of ranks.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[key("key", 0), integer("start"), integer("stop")]),
    doc("zremrangebyscore", "1.2.0", "Takes out the members of a sorted set whose scores are within a range.")
        .complexity("O(log(N) + M) for M members out of N")
        .arguments(&[key("key", 0), double("min"), double("max")]),
    doc("zrevrange", "1.2.0", "Lists the members of a sorted set within a range of ranks, highest first.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument")
        .arguments(&[key("key", 0), integer("start"), integer("stop"), WITHSCORES]),
    doc("zrevrangebylex", "2.8.9", "Lists the members of one score whose names are within a range, backwards.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")
        .arguments(&[key("key", 0), string("max"), string("min"), LIMIT]),
    doc("zrevrangebyscore", "2.2.0", "Lists the members whose scores are within a range, highest first.")
        .complexity("O(log(N) + M) for M members out of N")
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")
        .history(&[("2.1.6", "Either end of the range may be excluded.")])
        .arguments(&[key("key", 0), double("max"), double("min"), WITHSCORES, LIMIT]),
    doc("zrevrank", "2.0.0", "Tells how many members of a sorted set come before one, by descending score.")
        .complexity("O(log(N)) in a set of N")
        .history(&[("7.2.0", "Takes the option `WITHSCORE`.")])
        .arguments(&[key("key", 0), string("member"), WITHSCORE]),
    doc("zscan", "2.8.0", "Walks through a sorted set a few members at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N members")
        .arguments(&[
            key("key", 0),
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
        ]),
    doc("zscore", "1.2.0", "Tells the score of a member of a sorted set.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), string("member")]),
    doc("zunion", "6.2.0", "Lists the members that any of several sorted sets has.")
        .complexity("O(N + M*log(M)) for N members in all sets and M in the result")
        .arguments(&[NUMKEYS, key("key", 0).multiple(), WEIGHTS, AGGREGATE, WITHSCORES]),
    doc("zunionstore", "2.0.0", "Keeps the members that any of several sorted sets has under a key.")
        .complexity("O(N + M*log(M)) for N members in all sets and M in the result")
        .arguments(&[key("destination", 0), NUMKEYS, key("key", 1).multiple(), WEIGHTS, AGGREGATE]),
];

const NUMKEYS: Argument = integer("numkeys");
const WITHSCORE: Argument = token("withscore", "WITHSCORE").optional();
const WITHSCORES: Argument = token("withscores", "WITHSCORES").optional();
const WEIGHTS: Argument = integer("weight").after("WEIGHTS").optional().multiple();
const AGGREGATE: Argument =
    one_of("aggregate", &[token("sum", "SUM"), token("min", "MIN"), token("max", "MAX")]).after("AGGREGATE").optional();
const SORTBY: Argument = one_of("sortby", &[token("byscore", "BYSCORE"), token("bylex", "BYLEX")]).optional();
const LIMIT: Argument = block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional();

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("sorted-set", name, since, summary)
}
