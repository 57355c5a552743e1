//! Who gets in: certificates, versions and ciphers.

use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ProtocolVersion};

use crate::certificates::{Authority, Files};
use crate::client::Client;
use crate::server::{TlsServer, flags};
use crate::support::{Dir, Holdfast, eventually, fail_to_start, info, ok};
use wire::{Connection, free_address};

#[test]
fn clients_without_a_certificate_are_refused_unless_the_setting_says_otherwise() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let (without, with) = (server.client(), server.client().showing(&server.authority.issue("client")));
    let stranger = Authority::new("authority of strangers");
    let (strange, expired) = (stranger.issue("client"), server.authority.issue_expired("client"));
    let (strange, expired) = (server.client().showing(&strange), server.client().showing(&expired));
    let mut control = server.connect();
    // Without, with a valid one, with one of another authority, with an expired one.
    for (setting, expected) in [
        ("yes", [false, true, false, false]),
        ("optional", [true, true, false, false]),
        ("no", [true, true, true, true]),
        ("yes", [false, true, false, false]),
    ] {
        ok(&mut control, &format!("CONFIG SET tls-auth-clients {setting}"));
        let gets_in = [&without, &with, &strange, &expired].map(|client| client.connect(server.tls_address).is_ok());
        assert_eq!(gets_in, expected, "{setting}");
    }
}

#[test]
fn authorities_may_be_in_a_directory() {
    let dir = Dir::fresh();
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    std::fs::write(dir.path().join("a.pem"), first.pem()).unwrap();
    std::fs::write(dir.path().join("b.pem"), second.pem()).unwrap();
    std::fs::write(dir.path().join("README"), "not a certificate").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let Some(server) = TlsServer::start(&["--tls-ca-cert-dir", &path]) else { return };
    let may =
        |authority: &Authority| server.client().showing(&authority.issue("c")).connect(server.tls_address).is_ok();
    assert!(may(&first) && may(&second) && may(&server.authority) && !may(&Authority::new("third")));
}

#[test]
fn a_client_refuses_a_server_that_it_does_not_trust() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let stranger = Authority::new("authority of strangers");
    assert!(Client::trusting(&stranger).connect(server.tls_address).is_err());
    server.files.replace(&server.authority.issue_expired("server"));
    let file = server.files.certificate.to_str().unwrap();
    // As in Redis, the server itself takes it.
    ok(&mut server.connect(), &format!("CONFIG SET tls-cert-file {file}"));
    assert!(server.client().connect(server.tls_address).is_err());
}

#[test]
fn versions_are_those_of_the_setting() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let (old, new) = (server.client().speaking(&TLS12), server.client().speaking(&TLS13));
    let mut control = server.connect();
    for (setting, expected) in
        [("TLSv1.2", [true, false]), ("TLSv1.3", [false, true]), ("TLSv1.1 TLSv1.2", [true, false]), ("", [true, true])]
    {
        ok(&mut control, &format!("CONFIG SET tls-protocols '{setting}'"));
        assert_eq!([&old, &new].map(|client| client.connect(server.tls_address).is_ok()), expected, "{setting}");
    }
    let version = |client: &Client| client.connect(server.tls_address).unwrap().session().protocol_version();
    assert_eq!((version(&old), version(&new)), (Some(ProtocolVersion::TLSv1_2), Some(ProtocolVersion::TLSv1_3)));
    for nonsense in ["TLSv1.1", "TLSv1.4", "SSLv3 TLSv1.2"] {
        assert_eq!(
            control.run(&format!("CONFIG SET tls-protocols '{nonsense}'")).to_string(),
            "-ERR CONFIG SET failed (possibly related to argument 'tls-protocols') - Unable to update TLS configuration. \
             Check server logs."
        );
    }
    assert_eq!(control.run("CONFIG GET tls-protocols").items()[1].text(), "");
    assert!(old.connect(server.tls_address).is_ok());
}

#[test]
fn ciphers_are_those_of_the_settings() {
    let Some((server, mut control)) = TlsServer::start_with_control(&["--tls-auth-clients", "no"]) else { return };
    ok(
        &mut control,
        "CONFIG SET tls-ciphersuites TLS_CHACHA20_POLY1305_SHA256 tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256",
    );
    for (suite, expected) in [
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, true),
        (CipherSuite::TLS13_AES_128_GCM_SHA256, false),
        (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true),
        (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, false),
    ] {
        let version = if format!("{suite:?}").starts_with("TLS13") { &TLS13 } else { &TLS12 };
        let client = server.client().with_cipher(suite).speaking(version);
        assert_eq!(client.connect(server.tls_address).is_ok(), expected, "{suite:?}");
    }
    for (name, nonsense) in [("tls-ciphers", "invalid"), ("tls-ciphersuites", "invalid")] {
        let reply = control.run(&format!("CONFIG SET {name} {nonsense}")).to_string();
        assert!(reply.ends_with("Unable to update TLS configuration. Check server logs."), "{reply}");
    }
    // The server prefers its own first cipher only if it is told to.
    ok(&mut control, "CONFIG SET tls-ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256 tls-ciphers ''");
    let mut suites = Vec::new();
    for setting in ["no", "yes"] {
        ok(&mut control, &format!("CONFIG SET tls-prefer-server-ciphers {setting}"));
        let connection = server.client().connect(server.tls_address).unwrap();
        suites.push(connection.session().negotiated_cipher_suite().unwrap().suite());
    }
    assert_eq!(suites[1], CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    assert_eq!(suites[0], CipherSuite::TLS13_AES_128_GCM_SHA256);
}

#[test]
fn a_client_that_comes_back_shortens_the_handshake() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let config = server.client().showing(&server.authority.issue("client")).config();
    let kinds = |control: &mut Connection, setting: &str| {
        ok(control, &format!("CONFIG SET tls-session-caching {setting}"));
        [(), ()].map(|()| {
            let mut connection = crate::client::TlsConnection::open(server.tls_address, config.clone()).unwrap();
            assert_eq!(connection.run("PING").to_string(), "+PONG");
            connection.session().handshake_kind().unwrap()
        })
    };
    let mut control = server.connect();
    assert_eq!(kinds(&mut control, "yes")[1], rustls::HandshakeKind::Resumed);
    let full = [rustls::HandshakeKind::Full; 2];
    assert_eq!(kinds(&mut control, "no"), full);
    // A change forgets all sessions: the certificate of one may not be valid any more.
    assert_eq!(kinds(&mut control, "yes")[0], rustls::HandshakeKind::Full);
}

#[test]
fn a_server_may_accept_tls_alone() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let plain = server.address();
    let mut tls = server.connect_tls();
    assert_eq!(tls.run("CONFIG SET port 0").to_string(), "+OK");
    assert!(Connection::open(plain).is_err());
    assert_eq!(server.connect_tls().run("PING").to_string(), "+PONG");
    let info = server.connect_tls().run("INFO server").text().to_owned();
    assert!(info.contains(&format!("tcp_port:{}\r\n", server.tls_address.port())), "{info}");
    assert!(info.contains(&format!("listener2:name=tls,bind=127.0.0.1,port={}\r\n", server.tls_address.port())));
    assert!(!info.contains("listener0"));
}

#[test]
fn a_server_can_start_with_tls_alone() {
    let authority = Authority::new("authority");
    let dir = Dir::fresh();
    let (files, address) = (Files::write(dir.path(), &authority.issue("server"), &authority), free_address());
    if !crate::support::can_start_holdfast() {
        return;
    }
    let server = wire::Server::launch(address, dir.path(), |command| {
        dir.keep_output(command.args(flags(&files, address)).args(["--port", "0", "--tls-auth-clients", "no"]));
    });
    let client = Client::trusting(&authority);
    eventually("it answers", || client.connect(address).is_ok());
    assert_eq!(client.connect(address).unwrap().run("CONFIG GET port").items()[1].text(), "0");
    let line = dir.read("stdout");
    assert!(line.contains(&format!("listens on {address} (TLS); talk to it with: redis-cli --tls -p ")), "{line}");
    drop(server);
}

/// A server that has the port for TLS alone is reached there, also by those who learn of it from another.
#[test]
fn a_follower_and_its_writer_name_the_port_for_tls_if_there_is_no_other() {
    let Some(server) = TlsServer::start(&["--appendonly", "yes"]) else { return };
    let mut writer = server.connect_tls();
    assert_eq!(writer.run("CONFIG SET port 0").to_string(), "+OK");
    let data = writer.run("CONFIG GET dir").items()[1].text().to_owned();
    let (dir, address) = (Dir::fresh(), free_address());
    let follower = wire::Server::launch(address, dir.path(), |command| {
        let flags = flags(&server.files, address);
        dir.keep_output(command.args(flags).args(["--port", "0", "--tls-auth-clients", "no", "--follow", &data]));
    });
    let of_follower = format!("slave0:ip=127.0.0.1,port={},state=online", address.port());
    eventually("the writer knows it", || writer.run("INFO replication").text().contains(&of_follower));
    assert_eq!(writer.run("ROLE").items()[2].items()[0].items()[1].text(), address.port().to_string());
    let client = server.client();
    let of_writer = format!("master_port:{}\r\n", server.tls_address.port());
    eventually("it knows the writer", || {
        let mut follower = client.connect(address).expect("it listens");
        follower.run("INFO replication").text().contains(&of_writer)
    });
    drop(follower);
}

#[test]
fn the_port_can_be_changed_while_running() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let (before, after) = (server.tls_address, free_address());
    let mut control = server.connect();
    ok(&mut control, &format!("CONFIG SET tls-port {}", after.port()));
    assert!(server.client().connect(after).is_ok() && server.client().connect(before).is_err());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(
        control.run(&format!("CONFIG SET tls-port {}", taken.local_addr().unwrap().port())).to_string(),
        "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check server logs."
    );
    assert!(server.client().connect(after).is_ok());
    // The two ports change places.
    let plain = server.address();
    ok(&mut control, &format!("CONFIG SET tls-port {} port {}", plain.port(), after.port()));
    assert!(server.client().connect(plain).is_ok());
    assert_eq!(Connection::open(after).unwrap().run("PING").to_string(), "+PONG");
    ok(&mut control, "CONFIG SET tls-port 0");
    assert!(server.client().connect(plain).is_err());
    assert_eq!(info::<String>(&mut Connection::open(after).unwrap(), "listener0").split(',').next(), Some("name=tcp"));
}

#[test]
fn a_server_without_valid_files_does_not_start() {
    let (port, dir) = (free_address().port().to_string(), Dir::fresh());
    let authority = Authority::new("authority");
    let (files, other) = (Files::write(dir.path(), &authority.issue("server"), &authority), authority.issue("other"));
    if !crate::support::can_start_holdfast() {
        return;
    }
    std::fs::write(dir.path().join("other.key"), &other.key).unwrap();
    let (certificate, key) = (files.certificate.to_str().unwrap(), files.key.to_str().unwrap());
    let (ca, strange) = (files.authority.to_str().unwrap(), dir.path().join("other.key"));
    let missing = dir.path().join("missing");
    let (strange, missing) = (strange.to_str().unwrap(), missing.to_str().unwrap());
    for (args, expected) in [
        (vec![], "No tls-cert-file configured!"),
        (vec!["--tls-cert-file", certificate], "No tls-key-file configured!"),
        (
            vec!["--tls-cert-file", certificate, "--tls-key-file", key],
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled!",
        ),
        (
            vec!["--tls-cert-file", missing, "--tls-key-file", key, "--tls-ca-cert-file", ca],
            "Failed to load certificate: ",
        ),
        (
            vec!["--tls-cert-file", certificate, "--tls-key-file", ca, "--tls-ca-cert-file", ca],
            "Failed to load private key: ",
        ),
        (
            vec!["--tls-cert-file", certificate, "--tls-key-file", strange, "--tls-ca-cert-file", ca],
            "do not fit together",
        ),
        (
            vec!["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", key],
            "Failed to configure CA",
        ),
    ] {
        let failure = fail_to_start(&[&["--tls-port", &port][..], &args].concat(), &[]);
        assert_eq!(failure.code, Some(1));
        assert!(
            failure.stderr.contains("Failed to configure TLS") && failure.stderr.contains(expected),
            "{}",
            failure.stderr
        );
    }
}

#[test]
fn files_may_be_wrong_while_tls_is_not_in_use() {
    let Some(server) = Holdfast::start(&["--tls-cert-file", "/nowhere"]) else { return };
    let mut control = server.connect();
    ok(&mut control, "CONFIG SET tls-key-file /nowhere/else tls-protocols nonsense");
    assert_eq!(
        control.run(&format!("CONFIG SET tls-port {}", free_address().port())).to_string(),
        "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to update TLS configuration. Check server \
         logs."
    );
    assert_eq!(control.run("CONFIG GET tls-port").items()[1].text(), "0");
}

#[test]
fn a_key_may_be_encrypted() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let key = &server.files.key;
    let encrypted = key.with_extension("encrypted");
    let made = std::process::Command::new("openssl")
        .args(["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "pass:sesame", "-in"])
        .arg(key)
        .arg("-out")
        .arg(&encrypted)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return wire::skip("there is no openssl to encrypt a key with");
    }
    let mut control = server.connect();
    let file = encrypted.to_str().unwrap();
    for pass in ["", "wrong"] {
        let reply = control.run(&format!("CONFIG SET tls-key-file {file} tls-key-file-pass '{pass}'")).to_string();
        assert!(reply.ends_with("Unable to update TLS configuration. Check server logs."), "{reply}");
    }
    ok(&mut control, &format!("CONFIG SET tls-key-file {file} tls-key-file-pass sesame"));
    assert!(server.client().connect(server.tls_address).is_ok());
    assert!(!server.stderr().contains("sesame"));
}

/// `holdfast handover --tls` shows its certificate and checks the server's. A server without followers refuses, which only a
/// client is told that got in.
#[test]
fn a_hand_over_is_asked_for_over_tls() {
    let Some(server) = TlsServer::start(&["--requirepass", ""]) else { return };
    let flags = flags(&server.files, server.tls_address);
    let port = server.tls_address.port().to_string();
    let ask = |host: &str, more: &[&str]| {
        let mut tool = std::process::Command::new(wire::binary());
        let tool = tool.args(["handover", "--tls", "-h", host, "-p", &port]).args(&flags).args(more);
        String::from_utf8(tool.output().expect("it can be started").stderr).expect("it is text")
    };
    let refused = ask("localhost", &[]);
    assert!(refused.contains("FAILOVER requires connected replicas"), "{refused}");
    let other_name = ask("127.0.0.1", &[]);
    assert!(other_name.contains("certificate"), "{other_name}");
    let dir = Dir::fresh();
    let stranger = dir.write("other.pem", Authority::new("authority of strangers").pem());
    let unknown = ask("localhost", &["--tls-ca-cert-file", &stranger]);
    assert!(unknown.contains("certificate"), "{unknown}");
    let unnamed = ask("localhost", &["--tls-ca-cert-file", ""]);
    assert!(unnamed.contains("tls-ca-cert-file"), "{unnamed}");
}

#[test]
fn a_handshake_that_fails_is_in_the_log_with_address_and_reason() {
    use std::io::{Read, Write};
    let Some(server) = TlsServer::start(&[]) else { return };
    for _ in 0..30 {
        let mut plain = std::net::TcpStream::connect(server.tls_address).expect("the port is open");
        plain.write_all(b"PING\r\n").expect("the server listens");
        let _ = plain.read_to_end(&mut Vec::new());
    }
    let lines = || {
        let log = server.stderr();
        log.lines().filter(|line| line.contains("a TLS handshake has failed")).map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("failures are in the log", || lines().len() >= 10);
    assert_eq!(lines().len(), 10, "no more in a minute");
    for line in lines() {
        assert!(line.contains("address") && line.contains("127.0.0.1:"), "{line}");
        assert!(line.contains("the client does not speak TLS"), "{line}");
    }
    assert_eq!(server.connect().run("PING").to_string(), "+PONG");
}
