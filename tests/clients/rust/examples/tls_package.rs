//! The package of crates/client over TLS; tests/clients/tls.sh runs it. Panics if something is not as without TLS.

use holdfast_client::redis::{ClientTlsConfig, TlsCertificates};
use holdfast_client::{Config, Fields, Queue, QueueConfig, StateStore, Store};
use std::time::Duration;
use std::{env, fs};

#[tokio::main]
async fn main() {
    let read = |name: &str| fs::read(env::var(name).expect("a path")).expect("a file");
    let config = |shown, authority| {
        let mut config = Config::new(format!("rediss://localhost:{}", env::var("TLS_PORT").expect("TLS_PORT")));
        config.certificates = Some(TlsCertificates { client_tls: shown, root_cert: Some(read(authority)) });
        config.response_timeout = Duration::from_secs(5);
        config
    };
    let shown = || Some(ClientTlsConfig { client_cert: read("TLS_CERT"), client_key: read("TLS_KEY") });
    let store = Store::connect_with(&config(shown(), "TLS_CA")).await.expect("connect");
    assert!(store.is_holdfast());
    let picture = "x".repeat(1_000_000);
    let fields = Fields::new().with("name", "Ada").with("picture", picture.as_str());
    store.put(b"rust:user", &fields, None).await.expect("put");
    let record = store.get(b"rust:user").await.expect("get").expect("it was put");
    assert!(record.fields.text("name") == Some("Ada") && record.fields.text("picture") == Some(&picture));
    // A request that waits has a connection of its own, with TLS too.
    let queue = Queue::new(&store, QueueConfig::new(["rust:due"]));
    queue.create_index("rust:due", "rust:job:").await.expect("an index");
    let next = queue.next("w-1", Duration::from_secs(10));
    let image = Fields::new().with("image", "cat.png");
    let add = queue.add(b"rust:job:1", &image, Duration::ZERO);
    let (job, added) = tokio::join!(next, add);
    added.expect("add");
    job.expect("next").expect("a job").complete(&Fields::new()).await.expect("complete");

    // Without a certificate, and with an authority that has not signed the server's: the error says that it was the certificate.
    for wrong in [config(None, "TLS_CA"), config(shown(), "TLS_CERT")] {
        let error = Store::connect_with(&wrong).await.err().expect("a client without a good certificate is refused");
        assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
    }
}
