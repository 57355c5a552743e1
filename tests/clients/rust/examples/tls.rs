//! The redis crate over TLS, blocking and with tokio; tests/clients/tls.sh runs it. Panics if something is not as without TLS.

use redis::{AsyncCommands, Client, ClientTlsConfig, Commands, TlsCertificates};
use std::env;
use std::fs;

fn main() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let url = format!("rediss://localhost:{}", env::var("TLS_PORT").expect("TLS_PORT"));
    let read = |name: &str| fs::read(env::var(name).expect("a path")).expect("a file");
    let shown = ClientTlsConfig { client_cert: read("TLS_CERT"), client_key: read("TLS_KEY") };
    let open = |shown| {
        let certificates = TlsCertificates { client_tls: shown, root_cert: Some(read("TLS_CA")) };
        Client::build_with_tls(url.as_str(), certificates).expect("a client")
    };
    let client = open(Some(shown));
    let mut connection = client.get_connection().expect("connect");
    let large = vec![b'x'; 3_000_000];
    let _: () = connection.set("large", &large).expect("set");
    assert!(connection.get::<_, Vec<u8>>("large").expect("get") == large);
    let mut pipeline = redis::pipe();
    for number in 0..1000 {
        pipeline.cmd("ECHO").arg(number);
    }
    let replies: Vec<i64> = pipeline.query(&mut connection).expect("a pipeline");
    assert!(replies.into_iter().eq(0..1000));

    let mut subscribed = client.get_connection().expect("connect");
    let mut news = subscribed.as_pubsub();
    news.subscribe("rust-news").expect("subscribe");
    let _: () = connection.publish("rust-news", "today").expect("publish");
    assert_eq!(news.get_message().expect("a message").get_payload::<String>().expect("text"), "today");

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = client.get_multiplexed_async_connection().await.expect("connect");
        let _: () = connection.rpush("rust-jobs", 1).await.expect("push");
        let popped: (String, i64) = connection.blpop("rust-jobs", 10.0).await.expect("pop");
        assert_eq!(popped.1, 1);
    });

    let stranger = open(None).get_connection().and_then(|mut connection| connection.ping::<String>());
    assert!(stranger.is_err(), "a client without a certificate got in");
}
