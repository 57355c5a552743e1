//! The words of the tests about clients that wait for elements of a list or a sorted set.

use crate::Words;

/// `GIVE k a b` adds elements, of which `FIRST k 0` takes the first in alphabetical order and `LAST k 0` the last.
pub(crate) const KINDS: &[Words] = &[
    Words(&[
        ("GIVE", "RPUSH # {@}"),
        ("SHOW", "LRANGE # 0 -1"),
        ("FIRST", "BLPOP # {@}"),
        ("LAST", "BRPOP # {@}"),
        ("SEVERAL", "BLMPOP 0 1 # LEFT {@}"),
        ("SEVERAL_OF", "BLMPOP 0 2 # {@} LEFT"),
        ("MPOP", "LMPOP # {@}"),
        ("BMPOP", "BLMPOP # {@}"),
        ("FROM_START", "LEFT"),
        ("GOT", r##"["#", "@"]"##),
        ("GOT_RESP3", r##"["#", "@"]"##),
        ("GOT_ALL", r##"["#", [{"@"}]]"##),
        // A command of a script.
        ("LUA_GIVE", "'RPUSH', KEYS[1]"),
        ("LUA_FIRST", "'BLPOP', KEYS[1], 0"),
        ("LUA_SEVERAL", "'BLMPOP', 0, 1, KEYS[1], 'LEFT'"),
        ("GIVEN", "rpush"),
        ("TAKEN", "lpop"),
        (
            "PAYLOAD",
            r#""\x12\x01\x02\x13\x13\x00\x00\x00\x04\x00\x81x\x02\x0c\x01\x80\x01\xf2\x90\xee\xfe\x04\xff\n\x00\n\x16j\xee\xc8\xcc\xb7\xfb""#,
        ),
        ("RESTORED", r#"["{k}", "x"]"#),
    ]),
    Words(&[
        ("GIVE", "ZADD # {1 @}"),
        ("SHOW", "ZRANGE # 0 -1"),
        ("FIRST", "BZPOPMIN # {@}"),
        ("LAST", "BZPOPMAX # {@}"),
        ("SEVERAL", "BZMPOP 0 1 # MIN {@}"),
        ("SEVERAL_OF", "BZMPOP 0 2 # {@} MIN"),
        ("MPOP", "ZMPOP # {@}"),
        ("BMPOP", "BZMPOP # {@}"),
        ("FROM_START", "MIN"),
        ("GOT", r##"["#", "@", "1"]"##),
        ("GOT_RESP3", r##"["#", "@", ,1]"##),
        ("GOT_ALL", r##"["#", [{["@", "1"]}]]"##),
        ("LUA_GIVE", "'ZADD', KEYS[1], 1"),
        ("LUA_FIRST", "'BZPOPMIN', KEYS[1], 0"),
        ("LUA_SEVERAL", "'BZMPOP', 0, 1, KEYS[1], 'MIN'"),
        ("GIVEN", "zadd"),
        ("TAKEN", "zpopmin"),
        (
            "PAYLOAD",
            r#""\x11,,\x00\x00\x00\n\x00\x81c\x02\xdf\xfd\x02\x81a\x02\x01\x01\x81b\x02\x02\x01\x81d\x02\xf2\xa0\x86\x01\x04\x81e\x02\xf4\x00\x00\x00\x00\x00\x00 \x00\t\xff\n\x00\xf6\a\xd5\xe4\xb9\x06\xc3\xed""#,
        ),
        ("RESTORED", r#"["{k}", "c", "-3"]"#),
    ]),
];
