//! Points on earth: the rows, each with its documentation: Redis's facts in our words.

use super::{members, search};
use execution::command::{Command, Flags, Keys, at_least, key, keys_after, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("geoadd", at_least(5), key(1), members::geoadd)
        .grows_memory()
        .doc("3.2.0", "Puts members at places on earth and replies with how many of them are new.")
        .complexity("O(log(N)) for each member, in a set of N")
        .history(&[("6.2.0", "Takes the options `CH`, `NX` and `XX`.")])
        .arguments(&[
            arg::key("key", 0),
            arg::one_of("condition", &[arg::token("nx", "NX"), arg::token("xx", "XX")]).since("6.2.0").optional(),
            arg::token("change", "CH").since("6.2.0").optional(),
            arg::block("data", &[arg::double("longitude"), arg::double("latitude"), arg::string("member")]).multiple(),
        ]),
    read("geodist", at_least(4), key(1), members::geodist)
        .doc("3.2.0", "Returns the distance between two members.")
        .complexity("O(log(N))")
        .arguments(&[arg::key("key", 0), arg::string("member1"), arg::string("member2"), UNIT.optional()]),
    read("geohash", at_least(2), key(1), members::geohash)
        .doc("3.2.0", "Returns the standard geohash of each member, a text of eleven letters.")
        .complexity("O(log(N)) for each member, in a set of N")
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    read("geopos", at_least(2), key(1), members::geopos)
        .doc("3.2.0", "Returns the longitude and latitude of each member.")
        .complexity("O(N) for N members")
        .arguments(&[arg::key("key", 0), arg::string("member").multiple()]),
    write("georadius", at_least(6), RADIUS_KEYS, search::georadius)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("3.2.0", "Finds the members near a place, and keeps them under a key if wanted.")
        .complexity(COMPLEXITY)
        .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument")
        .history(&[("6.2.0", "`COUNT` takes the option `ANY`."), ("7.0.0", "Units may be in upper case.")])
        .arguments(&[
            arg::key("key", 0),
            arg::double("longitude"),
            arg::double("latitude"),
            arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_AND_LATER_ANY,
            ORDER,
            arg::key("key", 1).after("STORE").optional(),
            arg::key("key", 2).after("STOREDIST").optional(),
        ]),
    write("georadiusbymember", at_least(5), MEMBER_RADIUS_KEYS, search::georadiusbymember)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("3.2.0", "Finds the members near one of them, and keeps them under a key if wanted.")
        .complexity(COMPLEXITY)
        .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments")
        .history(&[("7.0.0", "Units may be in upper case.")])
        .arguments(&[
            arg::key("key", 0),
            arg::string("member"),
            arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT,
            ORDER,
            arg::key("key", 1).after("STORE").optional(),
            arg::key("key", 2).after("STOREDIST").optional(),
        ]),
    read("georadiusbymember_ro", at_least(5), key(1), search::georadiusbymember_ro)
        .doc("3.2.10", "Finds the members within a distance from one of them.")
        .complexity(COMPLEXITY)
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments")
        .arguments(&[
            arg::key("key", 0),
            arg::string("member"),
            arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT,
            ORDER,
        ]),
    read("georadius_ro", at_least(6), key(1), search::georadius_ro)
        .doc("3.2.10", "Finds the members within a distance from a place.")
        .complexity(COMPLEXITY)
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")
        .history(&[("6.2.0", "`COUNT` takes the option `ANY`.")])
        .arguments(&[
            arg::key("key", 0),
            arg::double("longitude"),
            arg::double("latitude"),
            arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_AND_LATER_ANY,
            ORDER,
        ]),
    read("geosearch", at_least(7), key(1), search::geosearch)
        .doc("6.2.0", "Finds the members within a circle or a rectangle.")
        .complexity(COMPLEXITY)
        .history(&[("7.0.0", "Units may be in upper case.")])
        .arguments(&[arg::key("key", 0), FROM, BY, ORDER, COUNT, WITHCOORD, WITHDIST, WITHHASH]),
    write("geosearchstore", at_least(8), key(1).overwritten().and(key(2).read()), search::geosearchstore)
        .flag(Flags::READS_INDEXES)
        .copies_values()
        .grows_memory()
        .doc("6.2.0", "Keeps the members within a circle or a rectangle under a key.")
        .complexity(COMPLEXITY)
        .history(&[("7.0.0", "Units may be in upper case.")])
        .arguments(&[
            arg::key("destination", 0),
            arg::key("source", 1),
            FROM,
            BY,
            ORDER,
            COUNT,
            arg::token("storedist", "STOREDIST").optional(),
        ]),
];

const COMPLEXITY: &str = "O(N+log(M)) for N members in the cells of the grid around the shape, in a set of M";

const RADIUS_KEYS: Keys = key(1)
    .read()
    .and(keys_after("STORE", 6).overwritten())
    .and(keys_after("STOREDIST", 6).overwritten())
    .found_by(search::keys_of_radius);
const MEMBER_RADIUS_KEYS: Keys = key(1)
    .read()
    .and(keys_after("STORE", 5).overwritten())
    .and(keys_after("STOREDIST", 5).overwritten())
    .found_by(search::keys_of_radius);

const UNIT: Argument = arg::one_of(
    "unit",
    &[arg::token("m", "M"), arg::token("km", "KM"), arg::token("ft", "FT"), arg::token("mi", "MI")],
);
const WITHCOORD: Argument = arg::token("withcoord", "WITHCOORD").optional();
const WITHDIST: Argument = arg::token("withdist", "WITHDIST").optional();
const WITHHASH: Argument = arg::token("withhash", "WITHHASH").optional();
const COUNT: Argument =
    arg::block("count", &[arg::integer("count").after("COUNT"), arg::token("any", "ANY").optional()]).optional();
/// For commands that are older than `ANY`.
const COUNT_AND_LATER_ANY: Argument =
    arg::block("count", &[arg::integer("count").after("COUNT"), arg::token("any", "ANY").since("6.2.0").optional()])
        .optional();
const ORDER: Argument = arg::one_of("order", &[arg::token("asc", "ASC"), arg::token("desc", "DESC")]).optional();
const FROM: Argument = arg::one_of(
    "from",
    &[
        arg::string("member").after("FROMMEMBER"),
        arg::block("longitude_latitude", &[arg::double("longitude"), arg::double("latitude")]).after("FROMLONLAT"),
    ],
);
const BY: Argument = arg::one_of(
    "by",
    &[
        arg::block("circle", &[arg::double("radius").after("BYRADIUS"), UNIT]),
        arg::block("box", &[arg::double("width").after("BYBOX"), arg::double("height"), UNIT]),
    ],
);
