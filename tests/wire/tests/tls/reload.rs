//! New certificates for a running server, and a new process in the place of the old.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use wire::Server;

use crate::certificates::{Authority, Files};
use crate::client::Client;
use crate::server::{TlsServer, flags};
use crate::support::{Dir, can_start_holdfast, eventually, ok};
use wire::free_address;

#[test]
fn new_certificates_are_for_new_clients_and_drop_none() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let address = server.tls_address;
    let old = server.client();
    let mut before = old.connect(address).unwrap();
    let next = Authority::new("the next authority");
    let new = Client::trusting(&next);
    server.files.replace(&next.issue("server"));
    assert!(old.connect(address).is_ok() && new.connect(address).is_err(), "nothing was read yet");
    // The same names: the files are read again.
    ok(&mut server.connect(), &format!("CONFIG SET tls-cert-file {}", server.files.certificate.display()));
    assert!(old.connect(address).is_err() && new.connect(address).is_ok());
    assert_eq!(before.run("SET a 1").to_string(), "+OK");

    server.files.replace(&server.authority.issue("server"));
    server.signal("HUP");
    eventually("the first authority's certificate is back", || old.connect(address).is_ok());
    assert!(new.connect(address).is_err());
    assert_eq!(before.run("GET a").text(), "1", "the first client is still there");
}

#[test]
fn files_that_do_not_fit_together_change_nothing() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let client = server.client();
    let mut control = server.connect();
    let other = server.authority.issue("other");
    let key = server.files.key.with_extension("other");
    std::fs::write(&key, &other.key).unwrap();
    let refused = |name: &str| {
        format!(
            "-ERR CONFIG SET failed (possibly related to argument '{name}') - Unable to update TLS configuration. Check \
             server logs."
        )
    };
    let set = format!("CONFIG SET timeout 7 tls-key-file {}", key.display());
    assert_eq!(control.run(&set).to_string(), refused("tls-key-file"));
    assert_eq!(control.run("CONFIG GET timeout").items()[1].text(), "0");
    assert_eq!(control.run("CONFIG GET tls-key-file").items()[1].text(), server.files.key.to_str().unwrap());
    assert!(client.connect(server.tls_address).is_ok());
    // By a signal too.
    std::fs::write(&server.files.certificate, &other.certificate).unwrap();
    server.signal("HUP");
    eventually("it says so", || server.stderr().contains("the configuration of TLS is unchanged"));
    assert!(client.connect(server.tls_address).is_ok());
    // Both at once fit.
    let certificate = server.files.certificate.display();
    ok(&mut control, &format!("CONFIG SET tls-cert-file {certificate} tls-key-file {}", key.display()));
    assert!(client.connect(server.tls_address).is_ok());
}

#[test]
fn a_hang_up_signal_does_not_end_a_server_without_tls() {
    let Some(server) = crate::support::Holdfast::start(&[]) else { return };
    let mut client = server.connect();
    server.signal("HUP");
    eventually("it has been noticed", || server.stderr().contains("SIGHUP"));
    assert_eq!(client.run("PING").to_string(), "+PONG");
}

#[test]
fn an_upgrade_keeps_the_ports() {
    if !can_start_holdfast() {
        return;
    }
    let (dir, data) = (Dir::fresh(), Dir::fresh());
    let authority = Authority::new("authority");
    let files = Files::write(dir.path(), &authority.issue("server"), &authority);
    let tls_address = free_address();
    let flags = [flags(&files, tls_address), ["--tls-auth-clients", "no"].map(String::from).to_vec()].concat();
    let mut server = Server::start_with(data.path(), |command| {
        command.args(&flags).stderr(Stdio::null());
    });
    let (address, client) = (server.address(), Client::trusting(&authority));
    assert_eq!(client.connect(tls_address).unwrap().run("SET a 1").to_string(), "+OK");
    // The ports are those of the old process, whatever the flags of the new one say.
    let mut next = Command::new(wire::binary());
    next.args(["upgrade", "--dir"]).arg(data.path()).args(&flags).args(["--tls-port", "1"]);
    let mut next = next.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(next.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(&format!("listens on {address}, {tls_address} (TLS)")), "{line}");
    assert_eq!(server.wait_for_end().code(), Some(0));
    let server = Server::adopt(next, address);
    assert_eq!(
        client.connect(tls_address).unwrap().run("GET a").to_string(),
        server.connect().run("GET a").to_string()
    );
    assert_eq!(
        server.connect().run("CONFIG GET tls-port").items()[1].text(),
        tls_address.port().to_string(),
        "it knows the port that it has taken over"
    );
}

/// A device never ends, and a pipe never begins.
#[test]
fn only_files_are_read_as_certificates() {
    let Some((server, mut control)) = TlsServer::start_with_control(&["--tls-auth-clients", "optional"]) else {
        return;
    };
    let pipe = server.files.certificate.with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    for path in ["/dev/zero", "/dev/stdin", pipe.to_str().expect("a plain path")] {
        for setting in ["tls-cert-file", "tls-key-file", "tls-ca-cert-file"] {
            let reply = control.run(&format!("CONFIG SET {setting} {path}")).to_string();
            assert!(reply.starts_with("-ERR CONFIG SET failed"), "{setting} {path}: {reply}");
        }
    }
    assert!(server.client().connect(server.tls_address).is_ok());
}
