//! CELL.LIST: pages of names.

use crate::{check, start};
use std::collections::BTreeSet;

#[test]
fn cells_alone_are_listed() {
    check(
        r#"
        > CELL.LIST
        ["0", []]
        > CELL.SET dev/a v
        :1
        > CELL.SET dev/b v
        :1
        > CELL.SET prod/a v PX 1
        :1
        > SET dev/s x
        +OK
        > HSET dev/h f v
        :1
        > CELL.LIST PREFIX dev/
        ["0", ~["dev/a", "dev/b"]]
        > CELL.LIST prefix dev/a limit 10
        ["0", ["dev/a"]]
        > CELL.LIST PREFIX nosuch
        ["0", []]
        > CELL.LIST LIMIT 0
        ["0", []]
        # eventually
        > CELL.LIST CURSOR 0
        ["0", ~["dev/a", "dev/b"]]
        > CELL.LIST CURSOR x
        -ERR the cursor 'x' is none of ours: begin with 0
        > CELL.LIST LIMIT -1
        -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        > CELL.LIST dev/
        ~-ERR unknown option 'dev/'. *
        > CELL.LIST PREFIX a PREFIX b
        -ERR PREFIX is given twice
        > CELL.LIST PREFIX
        ~-ERR missing: the prefix. Usage: *
        "#,
    );
}

#[test]
fn pages_have_each_cell_once_whatever_comes_and_goes() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let names: Vec<String> = (0..3_000).map(|number| format!("cell:{number}")).collect();
    let writes: Vec<String> = names.iter().map(|name| format!("CELL.SET {name} v")).collect();
    writes.chunks(500).for_each(|some| drop(connection.pipeline(some)));
    for limit in [1, 10, 100, 777, 1_000_000] {
        let (mut found, mut cursor, mut pages) = (Vec::new(), "0".to_owned(), 0);
        loop {
            let reply = connection.run(&format!("CELL.LIST PREFIX cell: CURSOR {cursor} LIMIT {limit}"));
            cursor = reply.items()[0].text().to_owned();
            let page: Vec<String> = reply.items()[1].items().iter().map(|name| name.text().to_owned()).collect();
            assert!(page.len() <= limit + 2, "a page of {}", page.len());
            found.extend(page);
            pages += 1;
            connection.run(&format!("CELL.SET other:{pages} v"));
            connection.run(&format!("CELL.DEL other:{}", pages / 2));
            if cursor == "0" || limit == 1 && pages > 200 {
                break;
            }
        }
        let distinct: BTreeSet<&String> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "a cell came twice");
        assert!(limit == 1 || distinct.len() == names.len(), "{} of them", distinct.len());
    }
}
