//! Who may ask: the users of the port for clients, with their passwords.

use std::net::SocketAddr;

use wire::{Reply, free_address};

use crate::group::{Group, Member, connect};
use crate::support::{eventually, ok};

#[test]
fn a_password_is_that_of_the_port_for_clients() {
    let Some(group) = Group::fresh() else { return };
    let sentinel: SocketAddr = free_address();
    let port = sentinel.port().to_string();
    let args = ["--sentinel-port", &port, "--requirepass", "secret"];
    let member = Member { server: group.home.launch(free_address(), &args), sentinel };
    let mut client = connect(member.server.address());
    eventually("it is up", || client.run("AUTH secret").to_string() == "+OK");
    let mut asks = member.ask();
    let mut says = |request: &str| asks.run(request).to_string();
    for refused in
        ["PING", "SENTINEL MASTERS", "SENTINEL FAILOVER holdfast", "SUBSCRIBE a", "INFO", "CLIENT ID", "COMMAND"]
    {
        assert_eq!(says(refused), "-NOAUTH Authentication required.", "{refused}");
    }
    assert!(says("HELLO 3").starts_with("-NOAUTH HELLO must be called with the client already authenticated"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(says("AUTH wrong"), wrong);
    assert_eq!(says("AUTH nobody secret"), wrong);
    assert_eq!(says("HELLO 3 AUTH default wrong"), wrong);
    assert_eq!(says("PING"), "-NOAUTH Authentication required.");
    assert!(client.run("ACL LOG").to_string().contains("cmd=sentinel"), "it is noted");
    assert!(says("HELLO 3 AUTH default secret").starts_with('{'));
    assert_eq!(says("PING"), "+PONG");
    assert_eq!(says("RESET"), "+RESET");
    assert_eq!(says("PING"), "-NOAUTH Authentication required.");
    // Large requests are for users.
    let mut stranger = member.ask();
    stranger.queue_raw(b"*20\r\n");
    assert_eq!(stranger.read().to_string(), "-ERR Protocol error: unauthenticated multibulk length");
    assert_eq!(stranger.read(), Reply::Closed);
    // Other users, with other rights.
    ok(&mut client, "ACL SETUSER reader on >words +get ~*");
    ok(&mut client, "ACL SETUSER boss on >words +@all ~*");
    let mut asks = member.ask();
    assert_eq!(asks.run("AUTH reader words").to_string(), "+OK");
    assert!(asks.run("SENTINEL GET-MASTER-ADDR-BY-NAME holdfast").to_string().contains("127.0.0.1"));
    for (request, right) in [("SENTINEL FAILOVER holdfast", "failover"), ("INFO", "info")] {
        let text = format!("-NOPERM User reader has no permissions to run the '{right}' command");
        assert_eq!(asks.run(request).to_string(), text, "{request}");
    }
    assert_eq!(client.run("ACL DELUSER reader").integer(), 1);
    assert_eq!(asks.run("PING").to_string(), "-NOAUTH Authentication required.");
    assert_eq!(asks.run("AUTH boss words").to_string(), "+OK");
    assert!(asks.run("SENTINEL FAILOVER holdfast").to_string().starts_with("-NOGOODSLAVE "));
}

#[test]
fn a_port_that_is_taken_is_an_error_at_the_start() {
    let Some(group) = Group::fresh() else { return };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let said = group.home.fail_to_start(&["--sentinel-port", &port]);
    assert!(said.contains("(sentinel-port)"), "{said}");
    let said = group.home.fail_to_start(&["--sentinel-master-name", "a b"]);
    assert!(said.contains("sentinel-master-name"), "{said}");
}
