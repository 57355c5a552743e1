//! Lists of many elements and of large ones: their chunks show nowhere.

use wire::{Connection, Session};

fn element(number: usize) -> String {
    match number % 5 {
        0 => number.to_string(),
        1 => format!("element-{number}-{}", "x".repeat(number % 300)),
        _ => format!("e{number}"),
    }
}

fn fill(connection: &mut Connection, numbers: std::ops::Range<usize>) {
    for numbers in numbers.collect::<Vec<_>>().chunks(500) {
        let elements: Vec<String> = numbers.iter().map(|number| element(*number)).collect();
        connection.run(&format!("RPUSH l {}", elements.join(" ")));
    }
}

#[test]
fn elements_are_where_they_should_be() {
    const COUNT: usize = 60_000;
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 0..COUNT);
    assert_eq!(connection.run("LLEN l").integer(), COUNT as i64);
    for index in [0, 1, 239, 240, 241, 8_191, 8_192, 30_000, 59_998, 59_999] {
        assert_eq!(connection.run(&format!("LINDEX l {index}")).text(), element(index));
        assert_eq!(connection.run(&format!("LINDEX l {}", index as i64 - COUNT as i64)).text(), element(index));
        let found = connection.run(&format!("LPOS l {}", element(index)));
        assert_eq!(found.integer(), index as i64);
    }
    for (start, len) in [(0, 300), (12_345, 1_000), (59_000, 1_000)] {
        let expected: Vec<String> = (start..start + len).map(element).collect();
        let wire::Reply::Array(found) = connection.run(&format!("LRANGE l {start} {}", start + len - 1)) else {
            panic!("an array")
        };
        assert!(found.iter().map(|found| found.text()).eq(expected.iter().map(String::as_str)));
    }
    // In the middle: set, insert, remove.
    assert_eq!(connection.run("LSET l 30000 set").to_string(), "+OK");
    assert_eq!(connection.run("LINSERT l AFTER set behind").integer(), COUNT as i64 + 1);
    assert_eq!(connection.run("LINSERT l BEFORE set before").integer(), COUNT as i64 + 2);
    assert_eq!(
        connection.run("LRANGE l 29999 30003").to_string(),
        format!(r#"["{}", "before", "set", "behind", "{}"]"#, element(29_999), element(30_001))
    );
    assert_eq!(connection.run("LREM l 1 set").integer(), 1);
    assert_eq!(connection.run("LREM l -1 before").integer(), 1);
    assert_eq!(connection.run("LINDEX l 30000").text(), "behind");
    assert_eq!(connection.run("LTRIM l 29000 30999").to_string(), "+OK");
    assert_eq!(connection.run("LLEN l").integer(), 2_000);
    assert_eq!(connection.run("LINDEX l 1000").text(), "behind");
    assert_eq!(connection.run("LINDEX l -1").text(), element(30_999));
    assert_eq!(connection.run("DEBUG RELOAD").to_string(), "+OK");
    assert_eq!(connection.run("LINDEX l 1000").text(), "behind");
    assert_eq!(connection.run("LINDEX l 0").text(), element(29_000));
}

#[test]
fn a_queue_that_is_long_gives_what_it_got_in_order() {
    const COUNT: usize = 40_000;
    let session = Session::start();
    let mut connection = session.connect();
    for numbers in (0..COUNT).collect::<Vec<_>>().chunks(400) {
        let elements: Vec<String> = numbers.iter().map(|number| element(*number)).collect();
        connection.run(&format!("LPUSH l {}", elements.join(" ")));
    }
    for number in 0..COUNT / 2 {
        connection.queue_line("RPOP l");
        if number % 100 == 99 {
            connection.flush();
            for earlier in number - 99..=number {
                assert_eq!(connection.read().text(), element(earlier));
            }
        }
    }
    let wire::Reply::Array(rest) = connection.run("RPOP l 1000000") else { panic!("an array") };
    assert!(rest.iter().enumerate().all(|(at, found)| found.text() == element(COUNT / 2 + at)));
    assert_eq!(rest.len(), COUNT / 2);
    assert_eq!(connection.run("EXISTS l").integer(), 0);
}

#[test]
fn an_element_may_be_megabytes() {
    let session = Session::start();
    let mut connection = session.connect();
    let large = vec![b'x'; 3 << 20];
    connection.run("RPUSH l before");
    assert_eq!(connection.run_with("RPUSH l", &[&large]).integer(), 2);
    assert_eq!(connection.run("RPUSH l behind").integer(), 3);
    assert_eq!(connection.run_with("LINSERT l BEFORE behind", &[&large]).integer(), 4);
    assert_eq!(connection.run("LSET l 1 small").to_string(), "+OK");
    assert_eq!(connection.run("LRANGE l 0 1").to_string(), r#"["before", "small"]"#);
    assert!(matches!(connection.run("LINDEX l 2"), wire::Reply::Bulk(found) if found == large));
    assert_eq!(connection.run("LMOVE l m RIGHT LEFT").text(), "behind");
    assert!(matches!(connection.run("LMOVE l m RIGHT LEFT"), wire::Reply::Bulk(found) if found == large));
    assert!(matches!(connection.run("LPOP m"), wire::Reply::Bulk(found) if found == large));
    assert_eq!(connection.run("LRANGE m 0 -1").to_string(), r#"["behind"]"#);
}
