//! Keyspace notifications of places.

use wire::check_events;

#[test]
fn events() {
    check_events(
        r#"
        GEOADD g 1 1 a => new g, zadd g
        GEOADD g 1 1 a =>
        GEOADD g 2 2 a => zadd g
        GEOADD g XX 1 1 nosuch =>
        GEOPOS g a =>
        GEOPOS none a => keymiss none
        GEOHASH none a => keymiss none
        GEODIST none a b => keymiss none
        GEOSEARCH none FROMMEMBER a BYRADIUS 1 m => keymiss none
        GEORADIUS none 1 1 1 m => keymiss none
        GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m => new d, geosearchstore d
        GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 m STOREDIST => geosearchstore d
        GEOSEARCHSTORE d g FROMLONLAT 50 50 BYRADIUS 1 m => del d
        GEOSEARCHSTORE d g FROMLONLAT 50 50 BYRADIUS 1 m =>
        GEORADIUS g 2 2 1 m STORE d => new d, georadiusstore d
        GEORADIUS g 2 2 1 km =>
        GEORADIUSBYMEMBER g a 1 m STOREDIST d => georadiusstore d
        GEORADIUS none 1 1 1 m STORE d => keymiss none, del d
        "#,
    );
}
