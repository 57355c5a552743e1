//! Users that certificates name (`tls-auth-clients-user`).

use crate::server::TlsServer;
use crate::support::ok;

const NOAUTH: &str = "-NOAUTH Authentication required.";

#[test]
fn a_certificate_authenticates_as_the_user_that_it_names() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "optional"]) else { return };
    let mut control = server.connect();
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
