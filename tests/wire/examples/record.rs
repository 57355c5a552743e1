//! Writes transcripts: reads commands, one a line, from standard input, and prints them with the replies of the
//! server at `HOLDFAST_TEST_ADDR` (or of a fresh Holdfast). What it prints is what that server does, right or wrong.

use std::collections::BTreeMap;
use std::io;

use wire::{Connection, Session};

fn main() -> io::Result<()> {
    let session = Session::start();
    let mut connections: BTreeMap<&str, Connection> = BTreeMap::new();
    let input = io::read_to_string(io::stdin())?;
    for line in input.lines().map(str::trim) {
        println!("{line}");
        let Some((peer, command)) = line.split_once("> ").filter(|(peer, _)| peer.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        let connection = connections.entry(peer).or_insert_with(|| session.connect());
        println!("{}", connection.run(command));
    }
    Ok(())
}
