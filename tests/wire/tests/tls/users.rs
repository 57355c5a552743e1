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
    ok(&mut control, "CONFIG SET tls-auth-clients-user uri");
    assert_eq!(answers(), [NOAUTH, NOAUTH, "(nil)", NOAUTH]);
    ok(&mut control, "CONFIG SET tls-auth-clients-user off");
    assert_eq!(answers(), [NOAUTH; 4]);
    // A password is as good as ever.
    let mut client = server.client().connect(server.tls_address).unwrap();
    assert_eq!(client.run("AUTH secret").to_string(), "+OK");
}
