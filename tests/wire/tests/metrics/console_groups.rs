//! The console's page of groups: what it shows, who may change limits, and that a form changes what was changed in it.

use crate::console::{Browser, console, encoded};
use crate::console_jobs::values_of;
use crate::http::Watched;
use crate::support::ok;

const TASKS: &str =
    "IDX.CREATE tasks PREFIX 1 task: FIELD run_at ONLY state 2 pending running GROUP tenant HELD state 1 running";
const PAGE: &str = "/console/jobs/groups?index=tasks";
const PATH: &str = "/console/jobs/groups";

/// A name for a hidden field, which is encoded once more than others.
fn packed(bytes: &[u8]) -> String {
    encoded(encoded(bytes).as_bytes())
}

/// A form of the page for one group.
fn form(action: &str, group: &str, was: &str, rest: &str) -> String {
    let (group, was) = (packed(group.as_bytes()), packed(was.as_bytes()));
    format!("action={action}&index=tasks&scope=group&group={group}&cursor=0&was={was}&{rest}")
}

/// What the page says of a group, from its name to the end of the row.
#[track_caller]
fn row_of<'p>(page: &'p str, name: &str) -> &'p str {
    let begin = format!("<td data-label=\"Group\"><div>{name}</div></td>");
    let at = page.find(&begin).unwrap_or_else(|| panic!("{name} is not in {page}"));
    page[at..].split("</tr>").next().unwrap()
}

#[test]
fn a_group_is_paused_and_resumed() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, TASKS);
    for (number, tenant) in [(1, "acme"), (2, "acme"), (3, "bolt")] {
        client.run(&format!("HSET task:{number} run_at 170000000000{number} state pending tenant {tenant}"));
    }
    let index = browser.get("/console/jobs/index?index=tasks").body;
    assert!(index.contains(&format!("href=\"{PAGE}\"")), "{index}");
    assert!(browser.get("/console/jobs").body.contains(&format!("<a href=\"{PAGE}\">2</a>")));
    let page = browser.get(PAGE).body;
    let acme = row_of(&page, "acme");
    assert!(acme.contains("class=\"num\">2</td>") && acme.contains(">now<") && acme.contains(" ago</td>"), "{acme}");
    assert!(acme.contains("Yes, Pause") && !acme.contains("Resume"), "{acme}");
    assert_eq!(browser.post(PATH, &form("pause", "acme", "", "")).status, 303);
    let page = browser.get(PAGE).body;
    assert!(page.contains("The group acme: paused: nothing is taken."), "{page}");
    let acme = row_of(&page, "acme");
    assert!(acme.contains("no: paused") && acme.contains("Yes, Resume") && !acme.contains("Yes, Pause"), "{acme}");
    assert!(row_of(&page, "bolt").contains(">now<"), "{page}");
    let claim = "CLAIM 1 tasks MAX NOW COUNT 9 SET 2 state running run_at NOW+30000 KEYS";
    assert_eq!(client.run(claim).to_string(), "[\"task:3\"]");
    assert_eq!(browser.post(PATH, &form("resume", "acme", "", "")).status, 303);
    assert_eq!(client.run(claim).to_string(), "[\"task:1\", \"task:2\"]");
    let acme = browser.get(PAGE).body;
    assert!(row_of(&acme, "acme").contains("Held\" class=\"num\">2</td>"), "{acme}");
}

#[test]
fn limits_are_set_and_taken_back() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, TASKS);
    client.run("HSET task:1 run_at 1700000000000 state pending tenant acme");
    let limits = |client: &mut wire::Connection| client.run("IDX.LIMIT tasks").to_string();
    let set = |browser: &mut Browser, was: &str, held: &str, rate: [&str; 3], weight: &str| {
        let [takes, per, burst] = rate;
        let rest = format!("do=set&held={held}&takes={takes}&per={per}&burst={burst}&weight={weight}");
        assert_eq!(browser.post(PATH, &form("limits", "acme", was, &rest)).status, 303);
        browser.get(PAGE).body
    };
    let page = set(&mut browser, "||||1", "2", ["5", "1000", ""], "2.5");
    assert!(page.contains("The group acme: the limits are set."), "{page}");
    let expected =
        "[[\"scope\", \"group\", \"group\", \"acme\", \"held\", :2, \"rate\", [:5, :1000, :5], \"weight\", \"2.5\"]]";
    assert_eq!(limits(&mut client), expected);
    // The form has what applies.
    let acme = row_of(&page, "acme");
    for (name, value) in [("held", "2"), ("takes", "5"), ("per", "1000"), ("burst", "5"), ("weight", "2.5")] {
        assert_eq!(values_of(acme, name), [encoded(value.as_bytes())], "{name}");
    }
    let was = "2|5|1000|5|2.5";
    assert_eq!(values_of(acme, "was")[0], encoded(b"2%7C5%7C1000%7C5%7C2.5"));
    // Another operator has changed the rate meanwhile: what this form leaves alone stays.
    ok(&mut client, "IDX.LIMIT tasks GROUP acme RATE NONE");
    set(&mut browser, was, "NONE", ["5", "1000", "5"], "2.5");
    let expected =
        "[[\"scope\", \"group\", \"group\", \"acme\", \"held\", \"none\", \"rate\", \"none\", \"weight\", \"2.5\"]]";
    assert_eq!(limits(&mut client), expected);
    // What the server refuses, or makes no sense, changes nothing.
    for (held, rate, weight, told) in [
        ("many", ["5", "1000", "5"], "2.5", "HELD"),
        ("2", ["5", "1000", "5"], "5000", "WEIGHT must be a number"),
        ("2", ["5", "", ""], "2.5", "milliseconds of the rate are missing"),
        ("", ["5", "1000", "5"], "2.5", "type a number or none"),
        ("2", ["5", "1000", "5"], "2.5", "another one than before"),
    ] {
        let page = set(&mut browser, was, held, rate, weight);
        assert!(page.contains("notice bad") && page.contains(told), "{told}: {page}");
        assert_eq!(limits(&mut client), expected);
    }
    assert_eq!(browser.post(PATH, &form("limits", "acme", was, "do=reset")).status, 303);
    assert_eq!(limits(&mut client), "[]");
    // For each group, and for all together.
    let whole = |scope: &str, rest: &str| {
        format!("action=limits&index=tasks&scope={scope}&group=&cursor=&was={}&{rest}", packed(b"||||"))
    };
    browser.post(PATH, &whole("each", "do=set&held=7&takes=&per=&burst=&weight=3"));
    browser.post(PATH, &whole("all", "do=set&held=9&takes=1&per=2000&burst="));
    browser.post(PATH, &whole("all", "").replace("action=limits", "action=pause"));
    let expected = "[[\"scope\", \"all\", \"held\", :9, \"rate\", [:1, :2000, :1], \"pause\", \"yes\"], \
                    [\"scope\", \"each\", \"held\", :7, \"weight\", \"3\"]]";
    assert_eq!(limits(&mut client), expected);
    let page = browser.get(PAGE).body;
    assert!(row_of(&page, "acme").contains("no: a limit for all"), "{page}");
    let all = &page[page.find("<h2>Limits for all</h2>").unwrap()..];
    assert!(all.contains("all groups together") && all.contains("Yes, Resume") && all.contains("2.0 s"), "{all}");
    for odd in ["scope=none", "scope="] {
        assert_eq!(browser.post(PATH, &format!("action=pause&index=tasks&{odd}")).status, 404, "{odd}");
    }
}

#[test]
fn only_users_that_may_set_limits_are_offered_it() {
    let Some((server, mut client)) = Watched::start_with_client(&["--console", "yes", "--requirepass", "pass"]) else {
        return;
    };
    ok(&mut client, "AUTH pass");
    ok(&mut client, TASKS);
    ok(&mut client, "IDX.LIMIT tasks EACH HELD 5");
    client.run("HSET task:1 run_at 1700000000000 state pending tenant acme");
    ok(&mut client, "ACL SETUSER watcher on >see ~* +@all -@dangerous");
    ok(&mut client, "ACL SETUSER stranger on >see ~other:* +@all -@dangerous");
    let mut watcher = Browser::signed_in(server.admin, "watcher", "see");
    let page = watcher.get(PAGE).body;
    assert!(row_of(&page, "acme").contains("at most</i> 5"), "{page}");
    for offered in ["Yes, Pause", "Limits…", "Limits for all", "NOPERM", "notice bad"] {
        assert!(!page.contains(offered), "{offered}: {page}");
    }
    watcher.post(PATH, &form("pause", "acme", "", ""));
    assert!(watcher.get(PAGE).body.contains("NOPERM"));
    assert!(!client.run("IDX.LIMIT tasks").to_string().contains("pause"));
    let mut stranger = Browser::signed_in(server.admin, "stranger", "see");
    let page = stranger.get(PAGE).body;
    assert!(page.contains("NOPERM") && !page.contains("acme"), "{page}");
}

#[test]
fn groups_come_in_pages() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, TASKS);
    for number in 0..120 {
        client.run(&format!("HSET task:{number} run_at 1700000000000 state pending tenant tenant:{number}"));
    }
    let (mut path, mut seen, mut pages) = (PAGE.to_owned(), Vec::new(), 0);
    loop {
        let page = browser.get(&path).body;
        let rows = page.split("<td data-label=\"Group\"><div>").skip(1);
        seen.extend(rows.map(|row| row.split('<').next().unwrap().to_owned()));
        pages += 1;
        let Some(more) = page.split("<a class=\"next\" href=\"").nth(1) else { break };
        path = more.split('"').next().unwrap().replace("&amp;", "&");
    }
    assert_eq!((seen.len(), pages), (120, 3));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 120);
    let last = browser.get(&path).body;
    let cursor = path.split("cursor=").nth(1).expect("it is not the first");
    assert!(last.contains(&format!("name=\"cursor\" value=\"{cursor}\"")), "{last}");
    let answer =
        browser.post(PATH, &form("pause", "tenant:7", "", "").replace("cursor=0", &format!("cursor={cursor}")));
    assert_eq!(answer.header("location"), path);
}

/// A group has any name that a user gives to it, and the form of its row is for that one.
#[test]
fn names_of_groups_do_no_harm() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, TASKS);
    let long = [b'%'; 1024];
    let names: [&[u8]; 6] =
        [b"", b"<script>alert(1)</script>", b"\"><img src=x onerror=alert(1)>", b"\xff\xfe\0\r\n", b"a|b%41+&=", &long];
    for name in names {
        client.run_args(&[&b"HSET"[..], b"task:1", b"run_at", b"1", b"state", b"pending", b"tenant", name]);
        let page = browser.get(PAGE).body;
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "{page}");
        let row = page.split("<td data-label=\"Group\"><div>").nth(1).expect("it has a row");
        let pause = &row[row.find("value=\"pause\"").expect("it may be paused")..];
        let hidden: String = ["index", "scope", "group", "cursor", "was"]
            .map(|field| format!("&{field}={}", values_of(pause, field)[0]))
            .concat();
        assert_eq!(browser.post(PATH, &format!("action=pause{hidden}")).status, 303);
        let set = client.run("IDX.LIMIT tasks");
        let [only] = set.items() else { panic!("{set}") };
        assert_eq!((only.items()[1].text(), only.items()[3].bytes()), ("group", name));
        ok(&mut client, "IDX.LIMIT tasks RESET");
    }
}

#[test]
fn an_index_without_groups_has_limits_for_all() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, "IDX.CREATE tasks PREFIX 1 task: FIELD run_at");
    let page = browser.get(PAGE).body;
    assert!(page.contains("The index has no groups") && page.contains("all groups together"), "{page}");
    assert!(
        !page.contains("each group") && !page.contains("name=\"held\"") && !page.contains("name=\"weight\""),
        "{page}"
    );
    ok(&mut client, "IDX.CREATE held PREFIX 1 task: FIELD run_at HELD state 1 running");
    let page = browser.get("/console/jobs/groups?index=held").body;
    assert!(page.contains("<dt>Held</dt><dd>0</dd>") && page.contains("name=\"held\""), "{page}");
    (0..3).for_each(|number| drop(client.run(&format!("HSET task:{number} state running"))));
    let page = browser.get("/console/jobs/groups?index=held").body;
    assert!(page.contains("<dt>Held</dt><dd>3</dd>"), "{page}");
    let index = browser.get("/console/jobs/groups?index=none").body;
    assert!(index.contains("there is no index"), "{index}");
}
