//! The console: a stranger gets nothing, forms need their session and their site, users see and do what they may, and hostile
//! keys, forms and addresses do no harm.

use std::net::SocketAddr;

use wire::{Connection, Random, free_address};

use crate::http::{Response, Watched, request, send};
use crate::process::{can_start_holdfast, fail_to_start};
use crate::support::{eventually, ok};

/// A browser, as far as these tests need one: a cookie and the token of forms.
pub(super) struct Browser {
    address: SocketAddr,
    cookies: Vec<String>,
    token: String,
}

impl Browser {
    fn new(address: SocketAddr) -> Browser {
        Browser { address, cookies: Vec::new(), token: String::new() }
    }

    pub(super) fn signed_in(address: SocketAddr, user: &str, password: &str) -> Browser {
        let mut browser = Browser::new(address);
        let response = browser.sign_in(user, password);
        assert_eq!(response.status, 303, "{}", response.body);
        let page = browser.get("/console/prompt");
        browser.token = token_of(&page.body);
        browser
    }

    fn sign_in(&mut self, user: &str, password: &str) -> Response {
        let page = self.get("/console/sign-in");
        let form = format!("token={}&user={user}&password={password}", token_of(&page.body));
        self.post_form("/console/sign-in", &form)
    }

    pub(super) fn get(&mut self, path: &str) -> Response {
        let cookie = format!("Cookie: {}", self.cookies.join("; "));
        let response = request(self.address, "GET", path, &[&cookie]);
        self.keep_cookies(&response);
        response
    }

    /// Sends a form with the token, as a page of the console does.
    pub(super) fn post(&mut self, path: &str, form: &str) -> Response {
        let form = format!("token={}&{form}", self.token);
        self.post_form(path, &form)
    }

    fn post_form(&mut self, path: &str, form: &str) -> Response {
        let origin = format!("Origin: http://{}", self.address);
        self.post_with(path, form, &[&origin, "Sec-Fetch-Site: same-origin"])
    }

    fn post_with(&mut self, path: &str, form: &str, lines: &[&str]) -> Response {
        let cookie = format!("Cookie: {}", self.cookies.join("; "));
        let len = format!("Content-Length: {}", form.len());
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let all = [&[cookie.as_str(), len.as_str(), kind], lines].concat();
        let response = request_with_body(self.address, path, &all, form);
        self.keep_cookies(&response);
        response
    }

    fn keep_cookies(&mut self, response: &Response) {
        if !response.has_header("set-cookie") {
            return;
        }
        let line = response.header("set-cookie");
        let pair = line.split(';').next().unwrap().to_owned();
        let name = pair.split('=').next().unwrap();
        self.cookies.retain(|known| known.split('=').next() != Some(name));
        self.cookies.push(pair);
    }

    /// Runs a command at the prompt; the page.
    fn run(&mut self, command: &str) -> String {
        let response = self.post("/console/prompt", &format!("db=0&commands={}", encoded(command.as_bytes())));
        assert_eq!(response.status, 200, "{}", response.body);
        response.body
    }
}

fn request_with_body(address: SocketAddr, path: &str, lines: &[&str], body: &str) -> Response {
    let more: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let text = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n{body}");
    Response::parse(&send(address, text.as_bytes()).expect("the port answers"))
}

/// A server with its console, a client, and a browser of the default user.
pub(super) fn console() -> Option<(Watched, Connection, Browser)> {
    let (server, client) = Watched::start_with_client(&["--console", "yes"])?;
    let browser = Browser::signed_in(server.admin, "default", "");
    Some((server, client, browser))
}

/// The first token of a page.
fn token_of(page: &str) -> String {
    let at = page.find("name=\"token\" value=\"").expect("the page has a form") + "name=\"token\" value=\"".len();
    page[at..].split('"').next().unwrap().to_owned()
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

pub(super) fn run(client: &mut Connection, words: &[&[u8]]) {
    client.run_args(words);
}

const PAGES: &[&str] = &[
    "/console",
    "/console/jobs",
    "/console/jobs/index?index=due",
    "/console/jobs/groups?index=due",
    "/console/jobs/record?index=due&key=job:1",
    "/console/jobs/dead?index=due&state=pending",
    "/console/runs",
    "/console/runs/run?run=run:1",
    "/console/cells",
    "/console/cells/cell?cell=cell:1&from=0&to=1",
    "/console/registers",
    "/console/sessions",
    "/console/sessions/session?sid=session:1",
    "/console/keys",
    "/console/keys/key?key=job:1",
    "/console/slowlog",
    "/console/latency",
    "/console/clients",
    "/console/configuration",
    "/console/users",
    "/console/memory",
    "/console/cluster",
    "/console/prompt",
    "/console/prompt/help?part=1&typed=get",
];

#[test]
fn a_stranger_gets_nothing() {
    let Some(server) = Watched::start(&["--console", "yes", "--requirepass", "pass"]) else { return };
    ok(&mut server.connect(), "AUTH pass");
    let mut stranger = Browser::new(server.admin);
    for path in PAGES.iter().copied().chain(["/console/nothing", "/", "/console/../metrics"]) {
        let response = stranger.get(path);
        assert!(matches!(response.status, 303 | 401), "{path}: {} {}", response.status, response.body);
        assert!(!response.body.contains("job:"), "{path}");
    }
    for (cookie, path) in [("a=b", "/console"), ("holdfast_x=1", "/console/keys"), ("=;;=", "/console")] {
        stranger.cookies = vec![cookie.to_owned()];
        assert_eq!(stranger.get(path).status, 303, "{cookie}");
    }
    stranger.cookies.clear();
    let response = stranger.post("/console/prompt", "commands=FLUSHALL");
    assert_eq!(response.status, 401, "{}", response.body);
    // A wrong password is no way in, and is noted.
    for (user, password) in [("default", "wrong"), ("nobody", "pass"), ("default", "")] {
        let mut guest = Browser::new(server.admin);
        assert_eq!(guest.sign_in(user, password).status, 403);
        assert_eq!(guest.get("/console").status, 303);
    }
    let mut client = server.connect();
    ok(&mut client, "AUTH pass");
    assert!(client.run("ACL LOG").to_string().contains("nobody"));
    // Without the setting there is no console at all.
    let Some(server) = Watched::start(&[]) else { return };
    assert_eq!(Browser::new(server.admin).get("/console").status, 404);
}

#[test]
fn every_page_is_shown_and_can_run_nothing_from_elsewhere() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    ok(&mut client, "IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running");
    client.run("HSET job:1 run_at 4000000000000 state pending");
    client.run("RUN.APPEND run:1 a RunStarted {}");
    client.run("CELL.SET cell:1 value");
    client.run("REG.PUT register:1 1 value");
    client.run("SESSION.OPEN ID session:1");
    for path in PAGES {
        let response = browser.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        assert!(!response.body.contains("class=\"notice bad\""), "{path}: {}", response.body);
        let policy = response.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("cache-control"), "no-store");
        for inline in ["<style", "style=", " onclick", "javascript:", "http-equiv"] {
            assert!(!response.body.contains(inline), "{path} has {inline}");
        }
        assert_eq!(response.body.matches("<script").count(), response.body.matches("<script src=").count(), "{path}");
    }
    assert_eq!(browser.get("/console/nothing").status, 404);
    for (path, kind) in [("style.css", "text/css"), ("script.js", "text/javascript"), ("icon.svg", "image/svg+xml")] {
        let response = browser.get(&format!("/console/{path}"));
        assert!(response.status == 200 && response.header("content-type").starts_with(kind), "{path}");
    }
}

#[test]
fn forms_of_other_sites_and_sessions_are_refused() {
    let Some((server, mut client)) = Watched::start_with_client(&["--console", "yes", "--requirepass", "pass"]) else {
        return;
    };
    ok(&mut client, "AUTH pass");
    let mut browser = Browser::signed_in(server.admin, "default", "pass");
    let own = format!("Origin: http://{}", server.admin);
    let token = browser.token.clone();
    let mut other = Browser::signed_in(server.admin, "default", "pass");
    let form = |token: &str| format!("token={token}&db=0&commands=SET+stolen+1");
    for (form, lines) in [
        (form(&token), vec!["Origin: http://evil.example"]),
        (form(&token), vec!["Origin: null"]),
        (form(&token), vec![]),
        (form(&token), vec![own.as_str(), "Sec-Fetch-Site: cross-site"]),
        (form(&token), vec![own.as_str(), "Origin: http://evil.example"]),
        (form(""), vec![own.as_str()]),
        (form(&token[1..]), vec![own.as_str()]),
        (form(&other.token), vec![own.as_str()]),
        ("db=0&commands=SET+stolen+1".to_owned(), vec![own.as_str()]),
    ] {
        let response = browser.post_with("/console/prompt", &form, &lines);
        assert_eq!(response.status, 403, "{lines:?}: {}", response.body);
    }
    assert_eq!(client.run("EXISTS stolen").integer(), 0);
    assert_eq!(browser.post_with("/console/prompt", &form(&token), &[&own]).status, 200);
    assert_eq!(client.run("EXISTS stolen").integer(), 1);
    // The cookie is not for scripts, and not for other sites.
    let mut fresh = Browser::new(server.admin);
    let signed_in = fresh.sign_in("default", "pass");
    let cookie = signed_in.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("Secure"),
        "{cookie}"
    );
    // Signed out is signed out, for that session alone.
    assert_eq!(browser.post("/console/sign-out", "").status, 303);
    assert_eq!(browser.post("/console/prompt", "commands=PING").status, 401);
    assert!(other.run("PING").contains("PONG"));
    // So is a session whose user has another password.
    ok(&mut client, "CONFIG SET requirepass other");
    assert_eq!(other.get("/console").status, 303);
}

#[test]
fn users_see_and_do_what_they_may() {
    let Some((server, mut client)) = Watched::start_with_client(&["--console", "yes", "--requirepass", "pass"]) else {
        return;
    };
    ok(&mut client, "AUTH pass");
    ok(&mut client, "IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running");
    client.run("HSET job:1 run_at 1700000000000 state running");
    ok(&mut client, "SET secret treasure");
    ok(&mut client, "ACL SETUSER watcher on >see %R~job:* %R~due +@read +@connection -scan");
    ok(&mut client, "ACL SETUSER worker on >do ~job:* ~due +@read +hcas +idx.info +idx.list -scan");
    let mut watcher = Browser::signed_in(server.admin, "watcher", "see");
    let page = watcher.get("/console/prompt").body;
    for hidden in ["/console/configuration", "/console/users", "/console/slowlog", "/console/keys"] {
        assert!(!page.contains(&format!("href=\"{hidden}\"")), "{hidden} is offered");
    }
    for path in ["/console/configuration", "/console/users", "/console", "/console/keys"] {
        assert!(watcher.get(path).body.contains("NOPERM"), "{path}");
    }
    assert!(!watcher.get("/console/keys/key?key=secret").body.contains("treasure"));
    assert!(watcher.run("GET secret").contains("NOPERM"));
    assert!(watcher.run("HSET job:1 state done").contains("NOPERM"));
    let overview = watcher.get("/console?part=1").body;
    assert!(!overview.contains("<svg"), "the plots are for users that may run INFO");
    let record = "/console/jobs/record?index=due&key=job:1";
    let mut worker = Browser::signed_in(server.admin, "worker", "do");
    assert!(worker.get(record).body.contains("value=\"requeue\""), "{}", worker.get(record).body);
    // What is not offered is refused as well.
    let form = &requeue("job:1", &[("state", "running"), ("run_at", "1700000000000")], &["attempt"]);
    watcher.post("/console/jobs/record", form);
    assert_eq!(client.run("HGET job:1 state").text(), "running");
    // Somebody else is faster: told, and nothing changed.
    client.run("HSET job:1 state pending");
    assert_eq!(worker.post("/console/jobs/record", form).status, 303);
    assert!(worker.get(record).body.contains("another client has changed the record"));
    client.run("HSET job:1 state running");
    assert_eq!(worker.post("/console/jobs/record", form).status, 303);
    assert!(worker.get(record).body.contains("is queued again"));
    assert_eq!(client.run("HGET job:1 state").text(), "pending");
    assert_ne!(client.run("HGET job:1 run_at").text(), "1700000000000");
    let time = client.run("HGET job:1 run_at").text().to_owned();
    let delete = form_of("delete", "job:1", &[("state", "pending"), ("run_at", &time)], &["attempt"]);
    worker.post("/console/jobs/record", &delete);
    assert_eq!(client.run("EXISTS job:1").integer(), 0);
    // Rights are looked at for each request, and a user that is gone is out.
    ok(&mut client, "ACL SETUSER worker -@all +ping");
    assert!(worker.run("HGET job:1 state").contains("NOPERM"));
    client.run("ACL DELUSER worker");
    assert_eq!(worker.get("/console").status, 303);
}

/// What a page has shown of a record, as its forms carry it.
pub(super) fn shown(key: &str, held: &[(&str, &str)], absent: &[&str]) -> String {
    let held: String = held.iter().map(|(name, value)| format!("&is-{name}={}", encoded(value.as_bytes()))).collect();
    let absent: String = absent.iter().map(|name| format!("&no-{name}")).collect();
    encoded(format!("key={}{held}{absent}", encoded(key.as_bytes())).as_bytes())
}

pub(super) fn form_of(action: &str, key: &str, held: &[(&str, &str)], absent: &[&str]) -> String {
    let name = encoded(encoded(key.as_bytes()).as_bytes());
    format!("action={action}&index=due&queue=due&key={name}&shown={}", shown(key, held, absent))
}

pub(super) fn requeue(key: &str, held: &[(&str, &str)], absent: &[&str]) -> String {
    format!("{}&to=pending&after=0", form_of("requeue", key, held, absent))
}

#[test]
fn hostile_keys_and_values_are_shown_as_text() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    let hostile: [&[u8]; 5] = [
        b"<script>alert(1)</script>",
        b"\"><img src=x onerror=alert(1)>",
        b"'--></pre>",
        b"\xff\xfe\0\r\n",
        "\u{202e}{}".as_bytes(),
    ];
    for (number, text) in hostile.into_iter().enumerate() {
        let (cell, user) = (format!("cell:{number}"), format!("<b>{number}"));
        let (string, name) = ([b"s", text].concat(), [b"run:", text].concat());
        run(&mut client, &["HSET".as_bytes(), text, text, text]);
        run(&mut client, &["SET".as_bytes(), &string, text]);
        run(&mut client, &["CELL.SET".as_bytes(), cell.as_bytes(), text]);
        run(&mut client, &["RUN.APPEND".as_bytes(), &name, b"a", b"RunStarted", text]);
        run(&mut client, &["ACL".as_bytes(), b"SETUSER", user.as_bytes()]);
    }
    let mut pages: Vec<String> = PAGES.iter().map(|path| (*path).to_owned()).collect();
    for text in hostile {
        let text = encoded(text);
        pages.push(format!("/console/keys/key?key={text}"));
        pages.push(format!("/console/keys/key?key=s{text}"));
        pages.push(format!("/console/runs/run?run=run:{text}"));
        pages.push(format!("/console/keys?pattern={text}&type={text}&cursor={text}"));
        pages.push(format!("/console/jobs/index?index={text}&state={text}&op={text}&field={text}&late={text}"));
        pages.push(format!("/console/prompt?commands={text}"));
        pages.push(format!("/console/prompt/help?part=1&typed={text}"));
        pages.push(format!("/console/configuration?filter={text}"));
        pages.push(format!("/console/clients?filter={text}"));
    }
    for path in pages {
        let body = browser.get(&path).body;
        for bad in ["<script>", "<img", "'-->", "</pre>'", "<b>0"] {
            assert!(!body.contains(bad), "{path} has {bad}: {body}");
        }
        // But for fields, whose content comes back.
        if !path.contains("pattern=")
            && !path.contains("filter=")
            && !path.contains("commands=")
            && !path.contains("state=")
        {
            assert!(!body.contains(['\0', '\u{202e}']), "{path}: {body}");
        }
    }
    let page = browser.run("ECHO \"<script>\\xff\"");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
}

#[test]
fn the_prompt_runs_commands_and_waits_for_none() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    assert!(browser.run("MULTI\nINCR counter\nEXEC").contains("EXEC"));
    assert_eq!(client.run("GET counter").text(), "1");
    for refused in
        ["BLPOP a 0", "SUBSCRIBE a", "MONITOR", "CLIENT REPLY OFF", "RESET", "HELLO 2", "XREAD BLOCK 0 STREAMS a $"]
    {
        let page = browser.run(&format!("INCR counter\n{refused}"));
        assert!(page.contains("Nothing was run"), "{refused}: {page}");
    }
    assert_eq!(client.run("GET counter").text(), "1");
    // A long reply is cut, and one that is too long is not read at all.
    client.run("SETRANGE long 100000000 x");
    assert!(browser.run("GET long").contains("longer than"));
    assert!(browser.get("/console/keys/key?key=long").body.contains("100000001 bytes"));
    // A script that runs on holds up neither the console nor others, and the console can end it.
    let page = browser.run("EVAL \"while true do end\" 0");
    assert!(page.contains("no reply within"), "{page}");
    eventually("the script is ended", || browser.run("SCRIPT KILL").contains("<code>OK</code>"));
    eventually("others go on", || client.run("SET a 1").to_string().contains("OK"));
    // Nothing is left of the connections.
    eventually("its clients are gone", || client.run("CLIENT LIST").text().lines().count() == 1);
}

#[test]
fn forms_are_limited_and_nonsense_is_refused() {
    let Some((server, mut client, mut browser)) = console() else { return };
    let origin = format!("Origin: http://{}", server.admin);
    let long = format!("token={}&commands={}", browser.token, "x".repeat(2 << 20));
    let sent = send(
        server.admin,
        format!(
            "POST /console/prompt HTTP/1.1\r\nHost: {}\r\n{origin}\r\nContent-Length: {}\r\n\r\n{long}",
            server.admin,
            long.len()
        )
        .as_bytes(),
    );
    // Refused with an answer, or in the middle of the form.
    assert!(sent.is_err() || sent.is_ok_and(|answer| answer.is_empty() || answer.starts_with(b"HTTP/1.1 4")));
    assert_eq!(browser.post("/console/prompt", &"a=b&".repeat(5000)).status, 400);
    assert_eq!(request(server.admin, "PUT", "/console", &[]).status, 405);
    let mut random = Random::from_env();
    for _ in 0..200 {
        let noise: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
        let page = PAGES[random.below(PAGES.len())].split('?').next().unwrap();
        let names =
            ["index", "key", "cursor", "from", "to", "run", "db", "limit", "late", "after", "cell", "before", "id"];
        let fields: Vec<String> =
            names.iter().filter(|_| random.below(3) == 0).map(|name| format!("{name}={}", encoded(&noise))).collect();
        let fields = fields.join("&");
        let shown = browser.get(&format!("{page}?{fields}"));
        assert!(matches!(shown.status, 200 | 404), "{page}?{fields}: {} {}", shown.status, shown.body);
        if page != "/console/prompt" && page != "/console/configuration" && page != "/console/users" {
            let done = browser.post(page, &format!("action={}&{fields}", encoded(&noise)));
            assert!(matches!(done.status, 200 | 303 | 404), "{page} {fields}: {} {}", done.status, done.body);
        }
    }
    ok(&mut client, "SET a 1");
}

#[test]
fn other_machines_need_an_explicit_word() {
    if !can_start_holdfast() {
        return;
    }
    let port = free_address().port().to_string();
    let far =
        ["--admin-port", &port, "--admin-bind", "-192.0.2.1 127.0.0.1", "--console", "yes", "--requirepass", "pass"];
    let failure = fail_to_start(&far, &[]);
    assert_eq!(failure.code, Some(1));
    assert!(failure.stderr.contains("opens the console to other machines"), "{}", failure.stderr);
    let Some(server) = Watched::start(&[&far[2..], &["--console-allow-remote", "yes"]].concat()) else { return };
    assert_eq!(Browser::signed_in(server.admin, "default", "pass").get("/console").status, 200);
    // A name could be that of an attacker's page: a user without a password signs in at an address.
    let Some(server) = Watched::start(&["--console", "yes"]) else { return };
    let mut browser = Browser::new(server.admin);
    let page = browser.get("/console/sign-in");
    let form = format!("token={}&user=default&password=", token_of(&page.body));
    let text = format!(
        "POST /console/sign-in HTTP/1.1\r\nHost: evil.example:{0}\r\nOrigin: http://evil.example:{0}\r\nCookie: {1}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {2}\r\n\r\n{form}",
        server.admin.port(),
        browser.cookies.join("; "),
        form.len()
    );
    let answer = Response::parse(&send(server.admin, text.as_bytes()).unwrap());
    assert!(answer.status == 403 && answer.body.contains("own machine"), "{} {}", answer.status, answer.body);
    // Behind a proxy with TLS: forms come from there, and cookies are for TLS alone.
    let Some(server) =
        Watched::start(&["--console", "yes", "--console-origin", "https://ops.example", "--requirepass", "pass"])
    else {
        return;
    };
    let mut browser = Browser::new(server.admin);
    assert_eq!(browser.sign_in("default", "pass").status, 403, "the form comes from elsewhere");
    let page = browser.get("/console/sign-in");
    assert!(page.header("set-cookie").contains("; Secure"));
    let form = format!("token={}&user=default&password=pass", token_of(&page.body));
    let response = browser.post_with("/console/sign-in", &form, &["Origin: https://ops.example"]);
    assert!(response.status == 303 && response.header("set-cookie").contains("; Secure"));
}

#[test]
fn the_overview_tells_of_late_records_and_dead_letters() {
    let Some((server, mut client, mut browser)) = console() else { return };
    let good = "Nothing wrong was found";
    ok(&mut client, "IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running");
    ok(&mut client, "IDX.CREATE over PREFIX 1 job: FIELD run_at ONLY state 1 done");
    ok(&mut client, "IDX.CREATE any PREFIX 1 job: FIELD run_at");
    client.run("HSET job:0 run_at 1700000000000 state done");
    let page = browser.get("/console?part=1").body;
    assert!(page.contains(good) && page.contains("Not looked at: the index any"), "{page}");
    client.run("HSET job:1 run_at 1700000000000 state pending");
    client.run("HSET job:2 run_at 9000000000000 state pending");
    let page = browser.get("/console?part=1").body;
    assert!(page.contains("1 records of the index due have been due") && !page.contains(good), "{page}");
    client.run("HSET job:1 state dead");
    assert!(browser.get("/console?part=1").body.contains(good));
    ok(&mut client, "IDX.CREATE dead PREFIX 1 job: FIELD run_at ONLY state 1 dead");
    eventually("the index is filled", || {
        browser.get("/console?part=1").body.contains("The index dead has 1 dead letters")
    });
    // A user that may not see indexes is told so.
    ok(&mut client, "ACL SETUSER watcher on >see +info");
    let page = Browser::signed_in(server.admin, "watcher", "see").get("/console?part=1").body;
    assert!(page.contains("Not looked at: late records (NOPERM"), "{page}");
}

#[test]
fn the_page_of_users_shows_selectors() {
    let Some((server, mut client)) = Watched::start_with_client(&["--console", "yes"]) else { return };
    ok(&mut client, "ACL SETUSER sneaky on >x -@all (+@all ~s:* &news.*)");
    let page = Browser::signed_in(server.admin, "default", "").get("/console/users").body;
    let row = page.split("<tr>").find(|row| row.contains("sneaky")).unwrap();
    for part in ["-@all", "or, selector 1", "+@all", "~s:*", "&amp;news.*"] {
        assert!(row.contains(part), "{part}: {row}");
    }
}

#[test]
fn prefixes_are_counted_only_on_request() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    client.run("MSET job:mail:1 a job:mail:2 b user:1 c");
    let page = browser.get("/console/memory").body;
    assert!(page.contains("name=\"depth\"") && !page.contains("job:"), "{page}");
    assert!(!client.run("INFO commandstats").text().contains("cmdstat_memory|prefixes"));
    let page = browser.get("/console/memory?depth=1").body;
    assert!(page.contains("<td>job:</td>") && page.contains("<td>user:</td>"), "{page}");
    assert!(browser.get("/console/memory?depth=2").body.contains("<td>job:mail:</td>"));
}

#[test]
fn a_failed_sign_in_keeps_the_name() {
    let Some(server) = Watched::start(&["--console", "yes", "--requirepass", "pass"]) else { return };
    let response = Browser::new(server.admin).sign_in("al%22ice", "wrong");
    assert!(response.status == 403 && response.body.contains("value=\"al&quot;ice\""), "{}", response.body);
}

#[test]
fn the_prompt_shows_what_came_before_a_failure() {
    let Some((_server, mut client, mut browser)) = console() else { return };
    client.run("SETRANGE long 100000000 x");
    let page = browser.run("ECHO before\nGET long\nPING");
    let parts: Vec<&str> = page.split("<section").skip(1).collect();
    assert!(parts[0].contains("<pre>before</pre>") && parts[1].contains("longer than"), "{page}");
    assert!(parts[2].contains("Not known"), "{page}");
    let page = browser.run("MULTI\nSET a 1");
    assert!(page.contains("QUEUED") && page.contains("MULTI without EXEC"), "{page}");
    assert_eq!(client.run("EXISTS a").integer(), 0);
    let page = browser.run("INFO server");
    assert!(page.contains("# Server") && !page.contains("\\r"), "{page}");
}
