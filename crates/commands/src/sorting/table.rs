//! SORT: the rows, with their documentation: Redis's facts in our words.

use super::request::{self, keys_of, looks_up_others};
use crate::shared::reach;
use execution::args::is_word;
use execution::command::{Command, Flags, KeyFlags, Keys, at_least, key, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write(
        "sort",
        at_least(2),
        SORTED.and_unknown(KeyFlags::OVERWRITE, "the word STORE can be anywhere among the arguments").found_by(keys_of),
        request::sort,
    )
    .tells_if(|request| !request.iter().skip(2).any(|word| is_word(word, "STORE")))
    .searches(reach::sorts)
    .flag(Flags::READS_INDEXES.union(Flags::DANGEROUS))
    .reaches_beyond(looks_up_others)
    .copies_values()
    .grows_memory()
    .categories(CATEGORIES)
    .doc("1.0.0", "Sorts a list, a set or a sorted set, and keeps the result under a key if wanted.")
    .complexity(COMPLEXITY)
    .arguments(&[
        arg::key("key", 0),
        BY,
        LIMIT,
        GET,
        ORDER,
        ALPHA,
        arg::key("destination", 2).after("STORE").optional(),
    ]),
    read("sort_ro", at_least(2), SORTED.found_by(keys_of), request::sort_ro)
        .searches(reach::sorts)
        .flag(Flags::DANGEROUS)
        .reaches_beyond(looks_up_others)
        .categories(CATEGORIES)
        .doc("7.0.0", "Sorts a list, a set or a sorted set.")
        .complexity(COMPLEXITY)
        .arguments(&[arg::key("key", 0), BY, LIMIT, GET, ORDER, ALPHA]),
];

const SORTED: Keys =
    key(1).read().and_unknown(KeyFlags::READ, "the names of these keys follow from the elements that are sorted");
const CATEGORIES: &[&str] = &["set", "sortedset", "list"];
const COMPLEXITY: &str = "O(N+M*log(M)) for N elements of which M are returned; O(N) when they are not sorted";

const BY: Argument = arg::pattern("pattern").of_keys(1).after("BY").optional();
const LIMIT: Argument =
    arg::block("offset_count", &[arg::integer("offset"), arg::integer("count")]).after("LIMIT").optional();
const GET: Argument = arg::pattern("pattern").of_keys(1).after("GET").optional().multiple().multiple_token();
const ORDER: Argument = arg::one_of("order", &[arg::token("asc", "ASC"), arg::token("desc", "DESC")]).optional();
const ALPHA: Argument = arg::token("sorting", "ALPHA").optional();
