//! An index is a sorted set that can be searched, if its scores are geohashes.

use wire::{Product, Session, skip};

#[test]
fn records_are_found_by_place() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return skip("only Holdfast has indexes");
    }
    session.check(
        r#"
        > IDX.CREATE i PREFIX 1 r: FIELD place
        +OK
        > HSET r:Palermo place 3479099956230698
        :1
        > HSET r:Catania place 3479447370796909
        :1
        > GEOPOS i r:Palermo r:nosuch
        [["13.36138933897018433", "38.11555639549629859"], (nil array)]
        > GEODIST i r:Palermo r:Catania km
        "166.2742"
        > GEOSEARCH i FROMLONLAT 15 37 BYRADIUS 100 km WITHDIST
        [["r:Catania", "56.4413"]]
        > GEORADIUSBYMEMBER i r:Palermo 200 km STORE d
        :2
        > ZRANGE d 0 -1 WITHSCORES
        ["r:Palermo", "3479099956230698", "r:Catania", "3479447370796909"]
        > GEOSEARCHSTORE i d FROMLONLAT 15 37 BYRADIUS 100 km
        ~-ERR 'i' is an index*
        > GEORADIUS d 15 37 200 km STORE i
        ~-ERR 'i' is an index*
        > GEOADD i 1 1 r:Palermo
        ~-ERR 'i' is an index*
        > IDX.DROP i
        :1
        "#,
    );
}

/// More members than are looked at while everything is locked: the search runs on a copy.
#[test]
fn many_records_are_found_by_place() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return skip("only Holdfast has indexes");
    }
    let mut connection = session.connect();
    connection.run("IDX.CREATE i PREFIX 1 r: FIELD place");
    let records: Vec<String> =
        (0..2_000).map(|number| format!("HSET r:{number} place {}", 3377699720527872_u64 + number)).collect();
    connection.pipeline(&records);
    let found = connection.run("GEOSEARCH i FROMLONLAT 0 0 BYRADIUS 100 km");
    assert_eq!(found.items().len(), 2_000);
    assert_eq!(connection.run("GEORADIUS i 0 0 100 km STORE d").integer(), 2_000);
    assert_eq!(connection.run("GEOSEARCHSTORE d i FROMLONLAT 0 0 BYBOX 100 100 km COUNT 7").integer(), 7);
    assert_eq!(connection.run("ZCARD d").integer(), 7);
    connection.run("IDX.DROP i");
}
