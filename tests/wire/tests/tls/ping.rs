//! `holdfast ping` over TLS: whom it trusts, and what it shows.

use std::process::{Command, Output};

use wire::binary;

use crate::server::TlsServer;

fn ping(args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(binary()).arg("ping").args(args).envs(variables.iter().copied()).output().expect("cannot start it")
}

#[test]
fn a_server_with_tls_is_asked_over_tls() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let (port, authority) = (server.tls_address.port().to_string(), server.files.authority.to_str().unwrap());
    let ca = ["--tls-ca-cert-file", authority];
    let pings = |args: &[&str], variables: &[(&str, &str)]| {
        let output = ping(&[args, &ca].concat(), variables);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "PONG\n", "{args:?}: {output:?}");
        assert_eq!(output.status.code(), Some(0));
    };
    pings(&["--tls", "-h", "localhost", "--tls-port", &port], &[]);
    pings(&[&format!("rediss://localhost:{port}")], &[]);
    pings(&[&format!("rediss://127.0.0.1:{port}"), "--sni", "localhost"], &[]);
    // The settings of a server that has no other port, as a health check beside it has them.
    pings(&["--sni", "localhost"], &[("HOLDFAST_PORT", "0"), ("HOLDFAST_TLS_PORT", &port)]);
    let fails = |args: &[&str], words: &str| {
        let output = ping(args, &[]);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    };
    let url = format!("rediss://127.0.0.1:{port}");
    fails(&[&url, ca[0], ca[1]], "certificate");
    fails(&[&format!("rediss://localhost:{port}")], "tls-ca-cert-file");
}

#[test]
fn a_certificate_is_shown_to_a_server_that_wants_one() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let url = format!("rediss://localhost:{}", server.tls_address.port());
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let ca = ["--tls-ca-cert-file".to_owned(), path(&server.files.authority)];
    let own = [
        "--tls-cert-file".to_owned(),
        path(&server.files.certificate),
        "--tls-key-file".to_owned(),
        path(&server.files.key),
    ];
    let words = |groups: &[&[String]]| -> Vec<String> { [vec![url.clone()], groups.concat()].concat() };
    let run = |args: Vec<String>| ping(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    assert_eq!(run(words(&[&ca, &own])).status.code(), Some(0));
    assert_eq!(run(words(&[&ca])).status.code(), Some(1));
}
