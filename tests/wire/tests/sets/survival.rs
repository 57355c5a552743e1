//! Changes of sets survive a kill. The journal must have what SPOP chose, not that it chose.

use std::path::Path;

use wire::{Connection, Random, Server, fresh_dir};

use crate::commands::Commands;

#[test]
fn random_changes_survive_a_kill() {
    if std::env::var_os("HOLDFAST_TEST_ADDR").is_some() {
        return wire::skip("this test starts a server of its own");
    }
    let dir = fresh_dir();
    let mut commands = Commands::for_a_model(Random::from_env());
    let mut server = start(&dir);
    // A second kill comes after what the first start has read.
    for round in 0..2 {
        let mut connection = server.connect();
        for _ in 0..50 {
            let pipeline = commands.pipeline();
            connection.pipeline(&pipeline);
        }
        // Sets of both encodings: most, few, one and all of their members are popped.
        let members: String = (0..200).map(|i| format!(" {i}")).collect();
        for (key, last) in [("integers", ""), ("table", " x")] {
            connection.run(&format!("SADD {key}{members}{last}"));
            for command in ["SPOP # 150", "SPOP #", "SPOP # 3", "SUNIONSTORE copy-of-# #", "SPOP copy-of-# 1000"] {
                let reply = connection.run(&command.replace('#', key));
                assert!(!reply.is_error(), "{reply}");
            }
        }
        let expected = digest(&mut connection);
        server.kill();
        server = start(&dir);
        assert_eq!(digest(&mut server.connect()), expected, "after kill {round}");
    }
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}

fn start(dir: &Path) -> Server {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    Server::start(dir, &[&always[..], &["--enable-debug-command", "yes"]].concat())
}

/// The signature of everything, and a few plain numbers that make a failure readable.
fn digest(connection: &mut Connection) -> Vec<String> {
    let questions = ["DEBUG DIGEST", "DBSIZE", "SCARD integers", "SCARD table", "EXISTS copy-of-table"];
    questions.map(|question| connection.run(question).to_string()).to_vec()
}
