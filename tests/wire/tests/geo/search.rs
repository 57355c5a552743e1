//! GEOSEARCH and the older forms that only read.

use wire::check;

#[test]
fn in_a_circle() {
    check(
        r#"
        > GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2
        :4
        GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC => ["Catania", "Palermo"]
        GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km DESC => ["Palermo", "Catania"]
        GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km => ["Palermo", "Catania"]
        > GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 200 km WITHDIST
        [["Palermo", "0.0000"], ["edge1", "91.4007"], ["Catania", "166.2742"]]
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 KM WITHCOORD WITHDIST WITHHASH ASC
        [["Catania", "56.4413", :3479447370796909, ["15.08726745843887329", "37.50266842333162032"]], ["Palermo", "190.4424", :3479099956230698, ["13.36138933897018433", "38.11555639549629859"]]]
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200000 m WITHHASH WITHDIST DESC
        [["Palermo", "190442.4298", :3479099956230698], ["Catania", "56441.2579", :3479447370796909]]
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 120 mi WITHDIST ASC
        [["Catania", "35.0711"], ["Palermo", "118.3357"]]
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 700000 ft WITHDIST ASC
        [["Catania", "185174.7305"], ["Palermo", "624811.1215"]]
        GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 0 m => ["Palermo"]
        GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 m => []
        GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS inf km ASC => ["Catania", "Palermo", "edge2", "edge1"]
        GEOSEARCH none FROMLONLAT 15 37 BYRADIUS 200 km => []
        GEOSEARCH none FROMMEMBER x BYRADIUS 200 km => []
        HELLO 3 => *
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km WITHCOORD WITHDIST WITHHASH ASC
        [["Catania", "56.4413", :3479447370796909, [,15.08726745843887329, ,37.50266842333162032]], ["Palermo", "190.4424", :3479099956230698, [,13.36138933897018433, ,38.11555639549629859]]]
        GEOSEARCH none FROMLONLAT 15 37 BYRADIUS 200 km => []
        "#,
    );
}

#[test]
fn in_a_rectangle() {
    check(
        r#"
        > GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2
        :4
        GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC => ["Catania", "Palermo", "edge2", "edge1"]
        > GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST
        [["Catania", "56.4413", ["15.08726745843887329", "37.50266842333162032"]], ["Palermo", "190.4424", ["13.36138933897018433", "38.11555639549629859"]], ["edge2", "279.7403", ["17.24151045083999634", "38.78813451624225195"]], ["edge1", "279.7405", ["12.7584877610206604", "38.78813451624225195"]]]
        GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 200 km ASC => ["Catania"]
        GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 200 800 km ASC => ["Catania"]
        GEOSEARCH Sicily FROMMEMBER Catania BYBOX 300 200 mi DESC => ["edge1", "edge2", "Palermo", "Catania"]
        GEOSEARCH Sicily FROMMEMBER Catania BYBOX 0 0 m => ["Catania"]
        GEOSEARCH Sicily FROMMEMBER Catania BYBOX inf inf m ASC => ["Catania", "Palermo", "edge2", "edge1"]
        "#,
    );
}

#[test]
fn so_many_of_them() {
    check(
        r#"
        GEOADD g 1 1 a 1 1 b 1 1 c 1.1 1 d 1.2 1 e 1.3 1 f 0.9 1 y 0.8 1 z => :8
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 3 => ["a", "b", "c"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 3 DESC => ["f", "z", "e"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 3 ANY => ["z", "y", "a"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 3 ANY ASC => ["a", "y", "z"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 100 => ["a", "b", "c", "d", "y", "e", "z", "f"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 1 WITHDIST => [["a", "0.0001"]]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km ANY COUNT 2 => ["z", "y"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 2 COUNT 4 => ["a", "b", "c", "d"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km ASC DESC => ["f", "z", "e", "y", "d", "a", "b", "c"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km ANY => -ERR the ANY argument requires COUNT argument
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 0 => -ERR COUNT must be > 0
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT -1 => -ERR COUNT must be > 0
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT x => -ERR value is not an integer or out of range
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT => -ERR syntax error
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 100 km COUNT 9223372036854775807 => ["a", "b", "c", "d", "y", "e", "z", "f"]
        "#,
    );
}

#[test]
fn what_a_search_needs() {
    check(
        r#"
        GEOADD g 1 1 a => :1
        > GEOSEARCH g BYRADIUS 1 m ASC ASC ASC
        -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
        > gEosearch g BYRADIUS 1 m ASC ASC ASC
        -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for gEosearch
        > GEOSEARCH g FROMMEMBER a ASC ASC ASC ASC
        -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
        -ERR syntax error
            GEOSEARCH g FROMMEMBER a FROMLONLAT 1 1 BYRADIUS 1 m
            GEOSEARCH g FROMLONLAT 1 1 FROMMEMBER a BYRADIUS 1 m
            GEOSEARCH g FROMMEMBER a BYRADIUS 1 m BYBOX 1 1 m
            GEOSEARCH g FROMMEMBER a BYBOX 1 1 m BYRADIUS 1 m
        GEOSEARCH g FROMMEMBER nosuch BYRADIUS 1 m FROMMEMBER a => -ERR could not decode requested zset member
        GEOSEARCH g FROMMEMBER nosuch BYRADIUS 1 m => -ERR could not decode requested zset member
        GEOSEARCH g FROMMEMBER a BYRADIUS 1 m FROMMEMBER a => ["a"]
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m FROMLONLAT 1 1 => ["a"]
        GEOSEARCH g FROMLONLAT 200 1 BYRADIUS 1 m => -ERR invalid longitude,latitude pair 200.000000,1.000000
        GEOSEARCH g FROMLONLAT x 1 BYRADIUS 1 m => -ERR value is not a valid float
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS x m => -ERR need numeric radius
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS -1 m => -ERR radius cannot be negative
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEOSEARCH g FROMLONLAT 1 1 BYBOX x 1 m => -ERR need numeric width
        GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 x m => -ERR need numeric height
        GEOSEARCH g FROMLONLAT 1 1 BYBOX -1 1 m => -ERR height or width cannot be negative
        GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 1 parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        -ERR syntax error
            GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m STORE d
            GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m STOREDIST
            GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1
        GEOSEARCH none FROMLONLAT 200 1 BYRADIUS 1 m => -ERR invalid longitude,latitude pair 200.000000,1.000000
        GEOSEARCH none FROMMEMBER a BYRADIUS -1 m => -ERR radius cannot be negative
        SET s 1 => +OK
        GEOSEARCH s x y z 1 2 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn around_coordinates() {
    check(
        r#"
        GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEORADIUS Sicily 15 37 200 km WITHDIST => [["Palermo", "190.4424"], ["Catania", "56.4413"]]
        > GEORADIUS Sicily 15 37 200 km WITHCOORD
        [["Palermo", ["13.36138933897018433", "38.11555639549629859"]], ["Catania", ["15.08726745843887329", "37.50266842333162032"]]]
        > GEORADIUS Sicily 15 37 200 km WITHDIST WITHCOORD DESC
        [["Palermo", "190.4424", ["13.36138933897018433", "38.11555639549629859"]], ["Catania", "56.4413", ["15.08726745843887329", "37.50266842333162032"]]]
        GEORADIUS_RO Sicily 15 37 200 km COUNT 1 WITHHASH => [["Catania", :3479447370796909]]
        GEORADIUS_RO Sicily 15 37 200 km COUNT 2 ANY => ["Palermo", "Catania"]
        GEORADIUS Sicily 15 37 x km => -ERR need numeric radius
        GEORADIUS Sicily 15 37 -1 km => -ERR radius cannot be negative
        GEORADIUS Sicily 15 370 200 km => -ERR invalid longitude,latitude pair 15.000000,370.000000
        GEORADIUS Sicily 15 37 200 parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        -ERR syntax error
            GEORADIUS Sicily 15 37 200 km FROMMEMBER Palermo
            GEORADIUS_RO Sicily 15 37 200 km STORE d
            GEORADIUS_RO Sicily 15 37 200 km STOREDIST d
        GEORADIUS none 15 37 200 km => []
        GEORADIUS none 15 37 200 parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        "#,
    );
}

#[test]
fn around_a_member() {
    check(
        r#"
        GEOADD Sicily 13.583333 37.316667 Agrigento 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :3
        GEORADIUSBYMEMBER Sicily Agrigento 100 km => ["Agrigento", "Palermo"]
        > GEORADIUSBYMEMBER Sicily Agrigento 100 km WITHDIST WITHCOORD DESC
        [["Palermo", "90.9778", ["13.36138933897018433", "38.11555639549629859"]], ["Agrigento", "0.0000", ["13.5833314061164856", "37.31666804993816555"]]]
        > GEORADIUSBYMEMBER_RO Sicily Agrigento 200 km WITHHASH COUNT 2
        [["Agrigento", :3479030013248308], ["Palermo", :3479099956230698]]
        GEORADIUSBYMEMBER Sicily nosuch 100 km => -ERR could not decode requested zset member
        GEORADIUSBYMEMBER Sicily nosuch x km => -ERR could not decode requested zset member
        GEORADIUSBYMEMBER Sicily Agrigento x km => -ERR need numeric radius
        GEORADIUSBYMEMBER Sicily Agrigento -1 km => -ERR radius cannot be negative
        GEORADIUSBYMEMBER Sicily Agrigento 1 parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEORADIUSBYMEMBER Sicily Agrigento 1 km STORE => -ERR syntax error
        GEORADIUSBYMEMBER_RO Sicily Agrigento 100 km STORE d => -ERR syntax error
        GEORADIUSBYMEMBER none a 1 km => []
        GEORADIUSBYMEMBER none a x parsec => []
        GEORADIUSBYMEMBER none a 1 km COUNT 0 => -ERR COUNT must be > 0
        GEORADIUSBYMEMBER_RO none a 1 km => []
        "#,
    );
}
