//! The console's pages of jobs: dead letters in bulk, how a record is queued again, records that are too large for a page; and
//! what its other pages refuse.

use crate::console::{Browser, console, encoded, run};
use crate::support::ok;

/// The values of the fields of that name on a page, as a browser would send them.
pub(super) fn values_of(page: &str, name: &str) -> Vec<String> {
    let begin = format!("name=\"{name}\" value=\"");
    page.split(&begin)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
        .map(|value| encoded(value.as_bytes()))
        .collect()
}

const DUE: &str = "IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running";

/// Chooses all records of a page of dead letters.
fn bulk(page: &str, act: &str, to: &str) -> String {
    let hidden = ["index", "queue", "prefix", "field", "state"];
    let form = &page[page.find("name=\"action\" value=\"bulk\"").expect("the page has its form")..];
    let fields: String =
        hidden.iter().map(|name| format!("&{name}={}", values_of(form, name).first().unwrap())).collect();
    let records: String = values_of(form, "record").iter().map(|value| format!("&record={value}")).collect();
    format!("action=bulk&do={act}&to={to}{fields}{records}")
}

#[test]
fn dead_letters_in_bulk() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, DUE);
    for number in 0..20 {
        client.run(&format!("HSET job:{number} run_at {} state dead attempt 3", 1_700_000_000_000_u64 - number));
    }
    let page = browser.get("/console/jobs/dead?index=due").body;
    assert_eq!(values_of(&page, "record").len(), 20);
    assert!(!page.contains(" checked"), "nobody has chosen any yet");
    assert_eq!(browser.get("/console/jobs/dead?index=due&all=1").body.matches(" checked").count(), 20);
    // In order of time, which a person can read.
    assert!(page.find("job:19<").unwrap() < page.find("job:0<").unwrap() && page.contains("2023-11-14 22:13:20.000"));
    // Others are faster: one is done, one was queued and given up again, one has another time, one is gone.
    client.run("HSET job:3 state completed");
    client.run("HSET job:4 attempt 4");
    client.run("HSET job:5 run_at 1700000000001");
    client.run("DEL job:6");
    assert_eq!(browser.post("/console/jobs/dead", &bulk(&page, "requeue", "pending")).status, 303);
    let told = browser.get("/console/jobs/dead?index=due").body;
    assert!(told.contains("16 of 20 records were changed") && told.contains("4 were left alone"), "{told}");
    assert_eq!(client.run("ZCARD due").integer(), 16);
    assert_eq!(client.run("HGET job:3 state").text(), "completed");
    assert_eq!(client.run("HGET job:4 attempt").text(), "4");
    assert_eq!(client.run("EXISTS job:6").integer(), 0);
    // What is queued again is tried again.
    let claim = "CLAIM 1 due MAX NOW SET 1 state running COUNTER attempt UPTO 3 ELSE 1 state dead COUNT 100 KEYS";
    assert_eq!(client.run(claim).to_string().matches("job:").count(), 16);
    // The same form once more deletes none of them, and a new one those that are dead.
    browser.post("/console/jobs/dead", &bulk(&page, "delete", ""));
    assert_eq!(client.run("DBSIZE").integer(), 19);
    let page = browser.get("/console/jobs/dead?index=due").body;
    assert!(page.contains("were left alone") && values_of(&page, "record").len() == 2, "{page}");
    browser.post("/console/jobs/dead", &bulk(&page, "delete", ""));
    assert_eq!(client.run("EXISTS job:4 job:5").integer(), 0);
    assert_eq!(client.run("DBSIZE").integer(), 17);
}

#[test]
fn a_record_is_queued_through_a_queue_alone() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, "IDX.CREATE open PREFIX 1 job: FIELD updated_at EXCLUDE state 2 completed dead STAMP");
    ok(&mut client, "IDX.CREATE dead PREFIX 1 job: FIELD run_at ONLY state 1 dead");
    ok(&mut client, "IDX.CREATE points PREFIX 1 player: FIELD points");
    client.run("HSET job:1 run_at 1700000000000 state running attempt 3");
    client.run("HSET job:2 run_at 1700000000000 state dead attempt 3");
    client.run("HSET player:1 points 10 state dead");
    let pages = [
        "/console/jobs/record?index=open&key=job:1",
        "/console/jobs/record?index=dead&key=job:2",
        "/console/jobs/record?index=points&key=player:1",
        "/console/jobs/dead?index=dead",
        "/console/jobs/dead?index=points",
    ];
    for path in pages {
        let page = browser.get(path).body;
        assert!(page.contains("Requeue is not offered") && !page.contains("value=\"requeue\""), "{path}: {page}");
    }
    ok(&mut client, DUE);
    for (number, path) in pages.iter().enumerate() {
        let page = browser.get(path).body;
        assert_eq!(page.contains("Through the index <b>due</b>"), [0, 1, 3].contains(&number), "{path}: {page}");
    }
    let jobs = browser.get("/console/jobs").body;
    let of_dead = &jobs[jobs.find(">dead</a>").unwrap()..];
    assert!(of_dead.split("</tr>").next().unwrap().contains("<td class=\"num\">–</td>"), "{of_dead}");
    // From the page of a stuck job: the time of the queue moves, and the attempt stays.
    let send = |browser: &mut Browser, path: &str, index: &str, key: &str, to: &str, after: &str| {
        let page = browser.get(path).body;
        let shown = values_of(&page, "shown").remove(0);
        let form = format!("action=requeue&index={index}&queue=due&key={}&shown={shown}", key.replace(':', "%253A"));
        assert_eq!(browser.post("/console/jobs/record", &format!("{form}&to={to}&after={after}")).status, 303);
        browser.get(path).body
    };
    let before = client.run("HGETALL job:1").to_string();
    for (to, after) in [
        ("pending", "10m"),
        ("pending", "1.5"),
        ("pending", "x"),
        ("pending", "-5"),
        ("pending", "1e30"),
        ("pending", ""),
        ("pending", "99999999999"),
        ("", "0"),
        ("dead", "0"),
        ("nothing", "0"),
    ] {
        let told = send(&mut browser, pages[0], "open", "job:1", to, after);
        assert!(told.contains("nothing was changed"), "{to} {after}: {told}");
        assert_eq!(client.run("HGETALL job:1").to_string(), before, "{to} {after}");
    }
    let told = send(&mut browser, pages[0], "open", "job:1", "pending", "0");
    assert!(told.contains("is queued again"), "{told}");
    assert_eq!(client.run("HGET job:1 state").text(), "pending");
    assert_eq!(client.run("HGET job:1 attempt").text(), "3");
    assert_ne!(client.run("HGET job:1 run_at").text(), "1700000000000");
    // From that of a dead letter: its attempts begin anew.
    assert!(browser.get(pages[1]).body.contains("begin anew"));
    let told = send(&mut browser, pages[1], "dead", "job:2", "pending", "0");
    assert!(told.contains("is queued again"), "{told}");
    assert_eq!(client.run("HGET job:2 attempt").text(), "0");
    let claim =
        "CLAIM 1 due MAX NOW WHERE attempt 1 0 SET 1 state running COUNTER attempt UPTO 3 ELSE 1 state dead KEYS";
    assert!(client.run(claim).to_string().contains("job:2"));
}

#[test]
fn large_records_leave_the_pages_of_use() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, DUE);
    let large = vec![b'x'; 3 << 20];
    for number in 0..4 {
        let (dead, open) = (format!("job:dead:{number}"), format!("job:open:{number}"));
        for (key, state) in [(dead, "dead"), (open, "pending")] {
            run(
                &mut client,
                &[b"HSET", key.as_bytes(), b"run_at", b"1700000000000", b"state", state.as_bytes(), b"body", &large],
            );
        }
    }
    client.run("HSET job:open:small run_at 1700000000000 state pending note readable");
    for path in [
        "/console/jobs/index?index=due",
        "/console/jobs/dead?index=due",
        "/console/jobs/record?index=due&key=job:open:1",
    ] {
        let response = browser.get(path);
        assert_eq!(response.status, 200, "{path}");
        assert!(response.body.contains("too large to show here") && response.body.len() < 1 << 20, "{path}");
        assert!(!response.body.contains("class=\"notice bad\""), "{path}");
    }
    assert!(browser.get("/console/jobs/index?index=due").body.contains("readable"));
    let page = browser.get("/console/jobs/dead?index=due").body;
    assert!(page.contains("class=\"search\""), "{page}");
    browser.post("/console/jobs/dead", &bulk(&page, "delete", ""));
    assert_eq!(client.run("DBSIZE").integer(), 5);
    // A field of the index that is too long to be compared: shown, but not changed.
    run(&mut client, &[b"HSET", b"job:odd", b"run_at", b"1700000000000", b"state", &large]);
    let page = browser.get("/console/jobs/record?index=due&key=job:odd");
    assert!(page.status == 200 && page.body.contains("cannot be changed here"), "{}", page.body);
}

#[test]
fn small_things_are_checked() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, "SET a 1");
    client.run("SESSION.OPEN ID session:1 TTL 7200000");
    for seconds in ["0", "-1", "", "x", "1.5"] {
        assert_eq!(browser.post("/console/keys/key", &format!("action=expire&key=a&seconds={seconds}")).status, 303);
        let page = browser.get("/console/keys/key?key=a").body;
        assert!(page.contains("Seconds to live must be") && page.contains("never expires"), "{seconds}: {page}");
    }
    browser.post("/console/keys/key", "action=expire&key=a&seconds=3600");
    assert!(client.run("TTL a").integer() > 3500);
    // What is left of a session's life is less than the whole of it.
    for path in ["/console/sessions", "/console/sessions/session?sid=session:1"] {
        let page = browser.get(path).body;
        assert!(page.contains("1 h 59 min"), "{path}: {page}");
    }
    let gone = browser.get("/console/sessions/session?sid=gone").body;
    assert!(gone.contains("There is no such session") && !gone.contains("1970"), "{gone}");
    for db in ["99", "16", "x", "-1"] {
        let page = browser.get(&format!("/console/keys/key?key=a&db={db}"));
        assert!(page.status == 404 && page.body.contains("no such database"), "{db}: {}", page.body);
        assert_eq!(browser.post("/console/keys/key", &format!("action=delete&key=a&db={db}")).status, 404);
    }
    assert_eq!(client.run("EXISTS a").integer(), 1);
}
