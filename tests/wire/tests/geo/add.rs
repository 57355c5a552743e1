//! GEOADD, and what GEOPOS, GEOHASH and GEODIST tell of single places.

use wire::check;

#[test]
fn places_become_scores() {
    check(
        r#"
        GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        ZRANGE Sicily 0 -1 WITHSCORES => ["Palermo", "3479099956230698", "Catania", "3479447370796909"]
        TYPE Sicily => +zset
        OBJECT ENCODING Sicily => "listpack"
        GEOADD Sicily 13.361389 38.115556 Palermo => :0
        GEOADD Sicily 13.583333 37.316667 Palermo => :0
        GEOADD Sicily CH 13.583333 37.316667 Palermo 13.5 37.3 Agrigento => :1
        GEOADD Sicily CH 13.361389 38.115556 Palermo 1 1 new => :2
        > ZRANGE Sicily 0 -1 WITHSCORES
        ["new", "3377822707026402", "Agrigento", "3479028340915260", "Palermo", "3479099956230698", "Catania", "3479447370796909"]
        "#,
    );
}

#[test]
fn the_edges_of_the_map() {
    check(
        r#"
        > GEOADD g 180 85.05112878 ne -180 85.05112878 nw 180 -85.05112878 se -180 -85.05112878 sw 0 0 zero -0 -0 minus
        :6
        > ZRANGE g 0 -1 WITHSCORES
        ["sw", "0", "minus", "3377699720527872", "zero", "3377699720527872", "nw", "4503599627370496", "se", "9007199254740992", "ne", "13510798882111488"]
        > GEOPOS g ne nw se sw zero minus
        [["180", "85.0511287799999991"], ["-179.99999731779098511", "85.0511287799999991"], ["180", "-85.05112751263942528"], ["-179.99999731779098511", "-85.05112751263942528"], ["0.00000268220901489", "0.00000126736058093"], ["0.00000268220901489", "0.00000126736058093"]]
        > GEOHASH g ne nw se sw zero minus
        ["bp05b5048p0", "bp05b5048p0", "00bh0hbj200", "00bh0hbj200", "s0000000000", "s0000000000"]
        GEODIST g ne sw km => "18919.8446"
        GEODIST g ne se km => "18919.8446"
        GEODIST g ne nw => "0.0257"
        GEOADD g 180.00001 0 x => -ERR invalid longitude,latitude pair 180.000010,0.000000
        GEOADD g 0 85.06 x => -ERR invalid longitude,latitude pair 0.000000,85.060000
        GEOADD g -181 -100.5 x => -ERR invalid longitude,latitude pair -181.000000,-100.500000
        GEOADD g inf 0 x => -ERR invalid longitude,latitude pair inf,0.000000
        > GEOADD g 1e300 0 x
        -ERR invalid longitude,latitude pair 1000000000000000052504760255204420248704468581108159154915854115511802457988908195786371375080447864043704443832883878176942523235360430575644792184786706982848387200926575803737830233794788090059368953234970799945081119038967640880074652742780142494579258788820056842838115669472196386865459400540160.000000,0.000000
        ZCARD g => :6
        "#,
    );
}

#[test]
fn rules_of_adding() {
    check(
        r#"
        GEOADD g NX 1 1 a => :1
        GEOADD g NX 2 2 a 3 3 b => :1
        GEOADD g XX 2 2 a 4 4 c => :0
        GEOADD g XX CH 3 3 a 4 4 c => :1
        GEOADD g CH NX 3 3 a 4 4 d => :1
        GEOADD g ch xx ch 1 1 a => :1
        ZRANGE g 0 -1 => ["a", "b", "d"]
        GEOADD g 1 1 a 2 2 a 3 3 a => :0
        GEOADD none XX 1 1 a => :0
        EXISTS none => :0
        "#,
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"
        -ERR syntax error
            GEOADD g 1 1 a 2
            GEOADD g 1 1 a 2 2
            GEOADD g NX XX 1 1 a
            GEOADD g NX CH CH
            GEOADD g GT 1 1 a
            GEOADD g INCR 1 1 a
        -ERR value is not a valid float
            GEOADD g x 1 a
            GEOADD g 1 x a
            GEOADD g 1 1 a 2 x b
            GEOADD g nan 1 a
        GEOADD g 200 100 a => -ERR invalid longitude,latitude pair 200.000000,100.000000
        EXISTS g => :0
        SET s 1 => +OK
        GEOADD s 1 x a => -ERR value is not a valid float
        GEODIST s a b parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        "#,
    );
}

#[test]
fn where_members_are() {
    check(
        r#"
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -122.42 37.77 "San Francisco" 1 1 "" => :4
        > GEOPOS g Palermo nosuch Catania "San Francisco" ""
        [["13.36138933897018433", "38.11555639549629859"], (nil array), ["15.08726745843887329", "37.50266842333162032"], ["-122.4200025200843811", "37.7700003945647822"], ["0.99999994039535522", "0.99999945914297683"]]
        > GEOHASH g Palermo nosuch Catania "San Francisco" ""
        ["sqc8b49rny0", (nil), "sqdtr74hyu0", "9q8yy7b6pn0", "s00twy01mt0"]
        GEOPOS g => []
        GEOHASH g => []
        GEOPOS nosuch a b => [(nil array), (nil array)]
        GEOHASH nosuch a b => [(nil), (nil)]
        GEOPOS nosuch => []
        HELLO 3 => *
        GEOPOS g Palermo nosuch => [[,13.36138933897018433, ,38.11555639549629859], _]
        GEOHASH g Palermo nosuch => ["sqc8b49rny0", _]
        GEOPOS nosuch a => [_]
        "#,
    );
}

#[test]
fn distances() {
    check(
        r#"
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.361389 38 below => :3
        GEODIST g Palermo Catania => "166274.1516"
        GEODIST g Palermo Catania m => "166274.1516"
        GEODIST g Palermo Catania km => "166.2742"
        GEODIST g Palermo Catania mi => "103.3182"
        GEODIST g Palermo Catania FT => "545518.8700"
        GEODIST g Palermo Palermo => "0.0000"
        GEODIST g Palermo below Km => "12.8528"
        GEODIST g Palermo nosuch => (nil)
        GEODIST g nosuch nosuch => (nil)
        GEODIST none a b => (nil)
        GEODIST g Palermo Catania parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEODIST none Palermo Catania parsec => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEODIST g Palermo Catania m km => -ERR syntax error
        HELLO 3 => *
        GEODIST g Palermo Catania km => "166.2742"
        GEODIST g Palermo nosuch => _
        "#,
    );
}

#[test]
fn scores_that_no_place_has() {
    check(
        r#"
        > ZADD g -1 minus 1.5 half 4503599627370496 above 9007199254740992 far 1e19 huge 1e300 vast inf infinite -inf least
        :8
        > GEOPOS g minus half above far huge vast infinite least
        [["180", "85.0511287799999991"], ["-179.99999731779098511", "-85.05112497791824921"], ["-179.99999731779098511", "85.0511287799999991"], ["180", "-85.05112751263942528"], ["180", "85.0511287799999991"], ["-179.99999731779098511", "-85.05112751263942528"], ["-179.99999731779098511", "-85.05112751263942528"], ["180", "-85.05112751263942528"]]
        > GEOHASH g minus half above far huge vast infinite least
        ["bp05b5048p0", "00bh0hbj210", "bp05b5048p0", "00bh0hbj200", "bp05b5048p0", "00bh0hbj200", "00bh0hbj200", "00bh0hbj200"]
        GEODIST g minus half => "18919844.3072"
        "#,
    );
}
