//! Any bytes as what a source sends to a replica, behind a handshake that is right and without: reading must not panic, must
//! find the same whatever the pieces in which the bytes come, and the offset must count every byte of the commands.

#![no_main]

mod pieces;

use formats::rdb_file::Item;
use formats::replication::{FileError, Next, ReplicationStream, SyncReply};
use libfuzzer_sys::fuzz_target;
use pieces::Pieces;
use std::io::Read;

/// What compressed parts of one value may become.
const BYTES_MAX: usize = 1 << 14;
const FULL: &[u8] = b"+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 7\r\n";
const PART: &[u8] = b"+CONTINUE\r\n";
const MARK: &[u8] = b"$EOF:0123456789abcdef0123456789abcdef01234567\r\nREDIS0012";

/// Everything that was read.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    reply: Option<SyncReply>,
    items: Vec<Item>,
    commands: Vec<(Vec<u8>, u64)>,
    error: Option<String>,
}

fuzz_target!(|body: &[u8]| {
    check(body);
    check(&[PART, body].concat());
    check(&[FULL, body].concat());
    check(&[FULL, MARK, body].concat());
});

fn check(bytes: &[u8]) {
    let heard = hear(bytes);
    assert_eq!(heard, hear(Pieces(bytes)));
    let counted: u64 = heard.commands.iter().map(|(_, bytes)| bytes).sum();
    assert!(counted <= bytes.len() as u64);
    for (command, length) in &heard.commands {
        assert!(command.len() as u64 <= *length + 16, "a command is not longer than its bytes");
    }
}

fn hear<R: Read>(read: R) -> Heard {
    let mut heard = Heard::default();
    heard.error = listen(&mut ReplicationStream::new(read, BYTES_MAX), &mut heard).err().map(|error| error.to_string());
    heard
}

fn listen<R: Read>(stream: &mut ReplicationStream<R>, heard: &mut Heard) -> Result<(), FileError> {
    let reply = stream.sync_reply()?;
    let is_full = matches!(reply, SyncReply::Full { .. });
    heard.reply = Some(reply);
    if is_full {
        stream.begin_payload()?;
        while let Some(item) = stream.item()? {
            heard.items.push(item);
        }
    }
    loop {
        match stream.advance()? {
            Next::Command { command, bytes } => heard.commands.push((command.as_request().encoded(), bytes)),
            Next::NotYet => unreachable!("these bytes do not time out"),
            Next::Ended => return Ok(()),
        }
    }
}
