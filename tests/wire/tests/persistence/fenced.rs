//! A data directory that another writer has taken over, without a word and without the fence that a take-over raises: the
//! server that had it answers nothing any more from what it has in memory, and follows.
//!
//! The lock on the directory keeps a second server out. So the marks of a later writer are made in a copy of the directory and
//! put in place by hand, as a file system without locks would have it.

use std::fs;

use wire::Reply;

use crate::support::{End, Home, eventually, ok};

/// A directory with one key, and the file MARKS as a later writer would leave it.
fn taken_over() -> Option<(Home, Vec<u8>)> {
    let (home, copy) = (Home::fresh()?, Home::fresh()?);
    let server = home.start(&[]);
    ok(&mut server.connect(), "SET stored 1");
    End::Term.of(server);
    fs::create_dir_all(copy.data()).expect("cannot make a directory");
    for (name, bytes) in home.files() {
        fs::write(copy.data().join(name), bytes).expect("cannot copy a data file");
    }
    // Each start begins an epoch.
    for _ in 0..2 {
        End::Term.of(copy.start(&[]));
    }
    let marks = copy.files().remove("MARKS").expect("every directory has marks");
    Some((home, marks))
}

#[test]
fn a_fenced_server_answers_nothing_from_its_memory_and_follows() {
    for policy in ["everysec", "always"] {
        let Some((home, marks)) = taken_over() else { return };
        let mut server = home.start(&["--appendfsync", policy]);
        let (mut writer, mut reader, mut idle) = (server.connect(), server.connect(), server.connect());
        assert_eq!(reader.run("GET stored").text(), "1", "{policy}");
        ok(&mut idle, "CLIENT SETNAME idle");
        home.change("MARKS", |bytes| *bytes = marks);
        if policy == "always" {
            // The reply waits for the sync, after which the marks are looked at: it is never sent.
            let reply = writer.run("SET lost 1").to_string();
            assert!(reply.starts_with("-FENCED a writer of epoch 3 has taken the journal over"), "{reply}");
            assert_eq!(writer.read(), Reply::Closed);
        } else {
            // Written and answered; the sync within a second finds the marks.
            ok(&mut writer, "SET lost 1");
            eventually("the server is fenced", || {
                let reply = idle.run("PING");
                reply == Reply::Closed || reply.to_string().starts_with("-FENCED a writer of epoch 3")
            });
        }
        // Neither reads of what was stored, nor commands that depend on nothing.
        for (connection, line) in [(&mut reader, "GET stored"), (&mut idle, "PING")] {
            match connection.run(line) {
                Reply::Closed => {}
                reply => {
                    assert!(reply.to_string().starts_with("-FENCED "), "{policy}, {line}: {reply}");
                    assert_eq!(connection.read(), Reply::Closed, "{policy}, {line}");
                }
            }
        }
        // It follows whoever writes now.
        eventually(
            "it follows",
            || matches!(server.connect().run("ROLE"), Reply::Array(role) if role[0].text() == "slave"),
        );
        assert_eq!(
            server.connect().run("SET x 1").to_string(),
            "-READONLY You can't write against a read only replica."
        );
        server.signal("TERM");
        assert_eq!(server.wait_for_end().code(), Some(0), "{policy}");
    }
}
