//! Users that certificates name (`tls-auth-clients-user`).

use crate::server::TlsServer;
use crate::support::{eventually, ok};

const NOAUTH: &str = "-NOAUTH Authentication required.";

#[test]
fn a_certificate_authenticates_as_the_user_that_it_names() {
    let Some((server, mut control)) = TlsServer::start_with_control(&["--tls-auth-clients", "optional"]) else {
        return;
    };
    ok(&mut control, "CONFIG SET requirepass secret");
    let (default, other) = (server.authority.issue("default"), server.authority.issue("somebody"));
    let uri = server.authority.issue_uri("somebody", "default");
    let answers = || {
        [Some(&default), Some(&other), Some(&uri), None].map(|shown| {
            let client = shown.into_iter().fold(server.client(), |client, shown| client.showing(shown));
            client.connect(server.tls_address).unwrap().run("GET a").to_string()
        })
    };
    assert_eq!(answers(), [NOAUTH; 4]);
    ok(&mut control, "CONFIG SET tls-auth-clients-user CN");
    assert_eq!(answers(), ["(nil)", NOAUTH, NOAUTH, NOAUTH]);
    // Who is named and cannot be: counted and logged.
    let log = control.run("ACL LOG");
    assert_eq!(log.items().len(), 1, "{log}");
    let entry: Vec<String> = log.items()[0].items()[..10].iter().map(ToString::to_string).collect();
    let expected = [":2", "\"tls-cert\"", "\"toplevel\"", "\"\"", "\"somebody\""];
    assert_eq!(entry.iter().skip(1).step_by(2).collect::<Vec<_>>(), expected, "{log}");
    assert!(control.run("INFO stats").text().contains("acl_access_denied_tls_cert:2"));
    ok(&mut control, "ACL SETUSER somebody off");
    assert_eq!(answers(), ["(nil)", NOAUTH, NOAUTH, NOAUTH], "a user that is off is none");
    assert!(control.run("INFO stats").text().contains("acl_access_denied_tls_cert:4"));
    ok(&mut control, "CONFIG SET tls-auth-clients-user uri");
    assert_eq!(answers(), [NOAUTH, NOAUTH, "(nil)", NOAUTH]);
    ok(&mut control, "CONFIG SET tls-auth-clients-user off");
    assert_eq!(answers(), [NOAUTH; 4]);
    // A password is as good as ever.
    let mut client = server.client().connect(server.tls_address).unwrap();
    assert_eq!(client.run("AUTH secret").to_string(), "+OK");
}

#[test]
fn a_certificate_counts_for_the_clients_of_its_user() {
    const FULL: &str = "-LIMIT max number of clients of this user reached";
    let arguments = ["--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN"];
    let Some((server, mut control)) = TlsServer::start_with_control(&arguments) else { return };
    ok(&mut control, "ACL SETUSER bob on ~* +@all limit:clients=1");
    ok(&mut control, "ACL SETUSER default limit:clients=2");
    let (bob, other) = (server.authority.issue("bob"), server.authority.issue("somebody"));
    // What a new connection hears first. One that is refused may find that the server has closed already.
    let greeting = |shown| {
        let greeted = server.client().showing(shown).connect(server.tls_address);
        greeted.map_or_else(|_| FULL.to_owned(), |connection| connection.greeting.to_string())
    };
    let mut first = server.client().showing(&bob).connect(server.tls_address).unwrap();
    assert_eq!(first.run("ACL WHOAMI").text(), "bob");
    assert_eq!(greeting(&bob), FULL);
    // One whose certificate names no user is the default user, of which there may be one more.
    let mut third = server.client().showing(&other).connect(server.tls_address).unwrap();
    assert_eq!(third.run("ACL WHOAMI").text(), "default");
    assert_eq!(greeting(&other), FULL);
    let refused = control.run("ACL USAGE bob default").to_string();
    assert_eq!(refused.matches("\"refused\", [\"clients\", :1,").count(), 2, "{refused}");
    // A place is free when its connection ends.
    drop(first);
    eventually("the place is free", || greeting(&bob) == "+PONG");
}

/// Whoever a certificate makes a user owes what that user owes, from the first request on.
#[test]
fn a_certificate_does_not_escape_the_rate_of_its_user() {
    let arguments = ["--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN"];
    let Some((server, mut control)) = TlsServer::start_with_control(&arguments) else { return };
    ok(&mut control, "ACL SETUSER bob on ~* +@all");
    let bob = server.authority.issue("bob");
    let mut first = server.client().showing(&bob).connect(server.tls_address).unwrap();
    let mut second = server.client().showing(&bob).connect(server.tls_address).unwrap();
    ok(&mut control, "ACL SETUSER bob limit:ops=1 limit:reply=1kb");
    first.request_args(&[
        "EVAL",
        "for i = 1, 50000 do redis.call('GET', 'none') end return string.rep('x', 2000)",
        "0",
    ]);
    assert!(first.read().to_string().starts_with("-LIMIT the reply is longer"));
    second.request("SET a 1");
    // The first request of a new one is the PING of the tests.
    let tls_address = server.tls_address;
    let client = server.client().showing(&bob);
    let third = std::thread::spawn(move || client.connect(tls_address).unwrap().greeting.to_string());
    eventually("both are delayed", || control.run("ACL USAGE bob").to_string().contains("\"delayed\", :2,"));
    assert_eq!(control.run("EXISTS a").integer(), 0);
    ok(&mut control, "ACL SETUSER bob resetlimits");
    assert_eq!((second.read().to_string(), third.join().unwrap()), ("+OK".to_owned(), "+PONG".to_owned()));
}
