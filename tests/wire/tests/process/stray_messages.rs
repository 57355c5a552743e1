//! A client that has read the reply of RESET gets no message that belongs to the time before, even while other threads publish.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::support::Holdfast;

const ROUNDS: usize = 200;

#[test]
fn nothing_is_sent_after_reset_while_others_publish() {
    let Some(server) = Holdfast::start(&["--threads", "2", "--worker-balance", "spread"]) else { return };
    let done = AtomicBool::new(false);
    let strays: Vec<String> = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut publisher = server.connect();
                while !done.load(Relaxed) {
                    publisher.pipeline(&["PUBLISH channel text"; 5]);
                }
            });
        }
        let strays = ["SUBSCRIBE channel", "PSUBSCRIBE ch*", "MONITOR"].into_iter().flat_map(|begin| {
            let server = &server;
            (0..ROUNDS).filter_map(move |round| {
                let mut client = server.connect();
                client.run(if round % 2 == 0 { "HELLO 2" } else { "HELLO 3" });
                client.run(begin);
                // Others publish to it by now.
                (0..20).for_each(|_| drop(client.read()));
                client.queue_line("RESET");
                while client.read().to_string() != "+RESET" {}
                let next = client.run("ECHO next").to_string();
                (next != r#""next""#).then_some(format!("{begin}: {next}"))
            })
        });
        let strays = strays.collect();
        done.store(true, Relaxed);
        strays
    });
    assert!(strays.is_empty(), "{strays:?}");
}
