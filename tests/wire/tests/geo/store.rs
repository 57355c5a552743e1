//! GEOSEARCHSTORE, and STORE and STOREDIST of the older forms.

use wire::check;

#[test]
fn results_are_kept_as_a_sorted_set() {
    check(
        r#"
        GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 => :3
        GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km => :2
        ZRANGE d 0 -1 WITHSCORES => ["Palermo", "3479099956230698", "Catania", "3479447370796909"]
        GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST => :2
        ZRANGE d 0 -1 WITHSCORES => ["Catania", "56.441257870158204", "Palermo", "190.44242984775784"]
        GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYBOX 900 900 km COUNT 2 DESC STOREDIST => :2
        ZRANGE d 0 -1 WITHSCORES => ["Palermo", "190.44242984775784", "edge1", "279.74045213563431"]
        GEOSEARCHSTORE d Sicily FROMMEMBER Palermo BYRADIUS 1 m => :1
        ZRANGE d 0 -1 => ["Palermo"]
        EXPIRE d 100 => :1
        GEOSEARCHSTORE d Sicily FROMMEMBER Palermo BYRADIUS 100 km => :2
        TTL d => :-1
        OBJECT ENCODING d => "listpack"
        "#,
    );
}

#[test]
fn an_empty_result_removes_the_key() {
    check(
        r#"
        GEOADD g 1 1 a => :1
        SET d x => +OK
        GEOSEARCHSTORE d g FROMLONLAT 50 50 BYRADIUS 1 m => :0
        EXISTS d => :0
        SET d x => +OK
        GEOSEARCHSTORE d none FROMMEMBER a BYRADIUS 1 m => :0
        EXISTS d => :0
        SET d x => +OK
        GEORADIUS none 1 1 1 m STORE d => :0
        EXISTS d => :0
        SET d x => +OK
        GEORADIUSBYMEMBER none a 1 m STOREDIST d => :0
        EXISTS d => :0
        GEOSEARCHSTORE none none FROMMEMBER a BYRADIUS 1 m => :0
        ! FLUSHALL
        // The source may be the target.
        GEOADD g 1 1 a 2 2 b => :2
        GEOSEARCHSTORE g g FROMMEMBER a BYRADIUS 10 km => :1
        ZRANGE g 0 -1 => ["a"]
        GEORADIUS g 1 1 10 km STOREDIST g => :1
        ZRANGE g 0 -1 WITHSCORES => ["a", "6.0521617125866494e-05"]
        GEORADIUSBYMEMBER g a 10 km STORE g => :1
        ZRANGE g 0 -1 => ["a"]
        ! FLUSHALL
        // Other values are replaced.
        GEOADD g 1 1 a => :1
        HSET d f v => :1
        GEORADIUS g 1 1 10 km STORE d => :1
        TYPE d => +zset
        "#,
    );
}

#[test]
fn older_forms_name_their_target() {
    check(
        r#"
        GEOADD g 1 1 a 1.1 1 b => :2
        GEORADIUS g 1 1 100 km STORE d => :2
        ZRANGE d 0 -1 => ["a", "b"]
        GEORADIUS g 1 1 100 km STOREDIST d => :2
        ZRANGE d 0 -1 WITHSCORES => ["a", "6.0521617125866494e-05", "b", "11.120719878049625"]
        GEORADIUSBYMEMBER g a 100 km STORE d COUNT 1 DESC => :1
        ZRANGE d 0 -1 => ["b"]
        GEORADIUSBYMEMBER g a 100 km STORE first STORE second => :2
        EXISTS first second => :1
        GEORADIUSBYMEMBER g a 100 km STORE x STOREDIST y => :2
        EXISTS x => :0
        ZRANGE y 0 -1 => ["a", "b"]
        COMMAND GETKEYS GEORADIUS g 1 1 100 km STORE x STOREDIST y => ["g", "x", "y"]
        COMMAND GETKEYS GEORADIUSBYMEMBER g a 100 km => ["g"]
        COMMAND GETKEYSANDFLAGS GEORADIUSBYMEMBER g a 100 km STORE d => [["g", [+RO, +access]], ["d", [+OW, +update]]]
        COMMAND GETKEYS GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m => ["d", "g"]
        "#,
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"
        GEOADD g 1 1 a => :1
        -ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
            GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m WITHDIST
            GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m WITHCOORD
            GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m WITHHASH
        GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m STORE x => -ERR syntax error
        > GEOSEARCHSTORE d g FROMMEMBER a ASC ASC ASC
        -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCHSTORE
        > GEOSEARCHSTORE d g BYRADIUS 1 m ASC ASC
        -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCHSTORE
        GEOSEARCHSTORE d g FROMMEMBER nosuch BYRADIUS 1 m => -ERR could not decode requested zset member
        -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
            GEORADIUS g 1 1 1 m STORE d WITHDIST
            GEORADIUS g 1 1 1 m STOREDIST d WITHCOORD
        GEORADIUS g 1 1 1 m STOREDIST => -ERR syntax error
        > GEORADIUSBYMEMBER g a 1 m WITHHASH STORE d
        -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
        EXISTS d => :0
        SET s 1 => +OK
        > GEOSEARCHSTORE d s FROMMEMBER a BYRADIUS 1 m
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn in_a_transaction_and_in_scripts() {
    check(
        r#"
        MULTI => +OK
        GEOADD g 1 1 a 1.1 1 b => +QUEUED
        GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 100 km STOREDIST => +QUEUED
        GEOPOS d a => +QUEUED
        EXEC => [:2, :2, [["-179.99999731779098511", "-85.05112751263942528"]]]
        > EVAL "return redis.call('GEORADIUS', KEYS[1], 1, 1, 100, 'km', 'WITHDIST', 'STORE', KEYS[2])" 2 g d
        -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options script: f18bbdf13eb2965dece4fdd2c150747e10aa3fd3, on @user_script:1.
        > EVAL "return redis.call('GEOSEARCH', KEYS[1], 'FROMMEMBER', 'a', 'BYRADIUS', 100, 'km', 'WITHDIST', 'WITHCOORD')" 1 g
        [["a", "0.0000", ["0.99999994039535522", "0.99999945914297683"]], ["b", "11.1207", ["1.09999805688858032", "0.99999945914297683"]]]
        "#,
    );
}
