//! A NATS that asks for TLS, a certificate and a key, and gives no more rights than docs/cluster.md says.

use std::fs;

use crate::certificates::{Authority, Files};
use crate::nats::{Nats, role, same_digest};
use crate::process::{Holdfast, eventually, fail_to_start, ok};

/// A key that was made for these tests.
const SEED: &str = "SUAB764WZ4VKM2U7FM52LELGAHOVLEUTJP5LOSSWYWW6LJ37YU2ILTG7SQ";
const PUBLIC: &str = "UDA4ZJPCNRPWZL3F4VYHESBNVPZSTHHHZD6PXCWIAL32TGV5DMHDAUA3";

fn secured() -> Option<Nats> {
    Nats::start_secured(|dir| {
        let authority = Authority::new("the operators");
        let files = Files::write(dir.path(), &authority.issue("nats"), &authority);
        let client = authority.issue("holdfast");
        fs::write(dir.path().join("client.crt"), client.certificate).expect("a file");
        fs::write(dir.path().join("client.key"), client.key).expect("a file");
        fs::write(dir.path().join("stranger.crt"), Authority::new("somebody else").pem()).expect("a file");
        fs::write(dir.path().join("user.nk"), format!("{SEED}\n")).expect("a file");
        format!(
            "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}\n\
             authorization {{ users: [ {{ nkey: \"{PUBLIC}\", permissions: {{\n\
               publish: [\"holdfast.orders.>\", \"$JS.API.>\", \"$JS.FC.>\", \"$O.HOLDFAST_orders.>\", \"_INBOX.>\"],\n\
               subscribe: [\"holdfast.orders.>\", \"_INBOX.>\"] }} }} ] }}\n",
            files.certificate, files.key, files.authority
        )
    })
}

/// The flags of a server that has everything.
fn flags(nats: &Nats) -> Vec<(&'static str, String)> {
    vec![
        ("--log", nats.secured_url()),
        ("--log-monitoring", nats.monitoring()),
        ("--log-replicas", "1".to_owned()),
        ("--enable-debug-command", "yes".to_owned()),
        ("--log-nkey", nats.path("user.nk")),
        ("--log-tls-ca-cert-file", nats.path("ca.crt")),
        ("--log-tls-cert-file", nats.path("client.crt")),
        ("--log-tls-key-file", nats.path("client.key")),
    ]
}

fn words<'f>(flags: &'f [(&'static str, String)]) -> Vec<&'f str> {
    flags.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect()
}

#[test]
fn servers_share_a_log_over_tls_with_a_key() {
    let Some(nats) = secured() else { return };
    let flags = flags(&nats);
    let writer = Holdfast::start(&words(&flags)).expect("it was asked before");
    let mut at_writer = writer.connect();
    eventually("it writes", || role(&mut at_writer) == "master");
    ok(&mut at_writer, "SET a 1");
    ok(&mut at_writer, "SAVE");
    ok(&mut at_writer, "SET b 2");
    let follower = Holdfast::start(&words(&flags)).expect("it was asked before");
    let mut at_follower = follower.connect();
    same_digest(&mut at_writer, &mut at_follower);
    ok(&mut at_writer, "FAILOVER");
    eventually("the other writes", || role(&mut at_follower) == "master");
    assert_eq!(at_follower.run("MGET a b").to_string(), "[\"1\", \"2\"]");
}

/// Accounts that an operator has signed, and a user that an account has.
#[test]
fn servers_share_a_log_with_credentials() {
    let Some(nats) = Nats::start_secured(|dir| {
        fs::write(dir.path().join("user.creds"), include_str!("credentials/user.creds")).expect("a file");
        include_str!("credentials/accounts.conf").to_owned()
    }) else {
        return;
    };
    let (url, monitoring, credentials) = (nats.url(), nats.monitoring(), nats.path("user.creds"));
    let flags =
        ["--log", &url, "--log-monitoring", &monitoring, "--log-replicas", "1", "--enable-debug-command", "yes"];
    let refused = fail_to_start(&flags, &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("authorization violation"), "{}", refused.stderr);
    let flags = [&flags[..], &["--log-credentials", &credentials]].concat();
    let writer = Holdfast::start(&flags).expect("it was asked before");
    let mut at_writer = writer.connect();
    eventually("it writes", || role(&mut at_writer) == "master");
    ok(&mut at_writer, "SET a 1");
    ok(&mut at_writer, "SAVE");
    let follower = Holdfast::start(&flags).expect("it was asked before");
    same_digest(&mut at_writer, &mut follower.connect());
}

#[test]
fn who_may_not_is_refused_at_once() {
    let Some(nats) = secured() else { return };
    let change = |name: &str, value: Option<String>| {
        let mut flags = flags(&nats);
        match value {
            Some(value) => {
                flags.iter_mut().filter(|(known, _)| *known == name).for_each(|flag| flag.1.clone_from(&value))
            }
            None => flags.retain(|(known, _)| *known != name),
        }
        let failure = fail_to_start(&words(&flags), &[]);
        assert_eq!(failure.code, Some(1), "{}", failure.stderr);
        failure.stderr
    };
    let without_key = change("--log-nkey", None);
    assert!(without_key.contains("authorization violation"), "{without_key}");
    let stranger = change("--log-tls-ca-cert-file", Some(nats.path("stranger.crt")));
    assert!(stranger.contains("certificate"), "{stranger}");
    let no_file = change("--log-nkey", Some(nats.path("nowhere")));
    assert!(no_file.contains("nowhere"), "{no_file}");
    let url = nats.secured_url().replace("tls://", "tls://somebody:secret@");
    let mut named = flags(&nats);
    named.retain(|(name, _)| *name != "--log-nkey");
    named[0].1 = url;
    let named = fail_to_start(&words(&named), &[]).stderr;
    assert!(named.contains("authorization violation") && !named.contains("secret"), "{named}");
}
