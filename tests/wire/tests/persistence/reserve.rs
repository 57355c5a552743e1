//! Space that the journal takes ahead of its data: a disk that others fill up does not fail the writes under way.
//! Needs the right to mount a small file system.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::support::{End, Home, ok};

/// A disk of 48 MiB in place of a home's data directory.
struct Disk(Home);

impl Disk {
    /// `None`, with a note, where that is not allowed.
    fn mount() -> Option<Disk> {
        let home = Home::fresh()?;
        fs::create_dir_all(home.data()).expect("cannot create a directory");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(home.data()).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("left out: a small file system cannot be mounted here");
            return None;
        }
        Some(Disk(home))
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut ballast = fs::File::create(self.0.data().join("ballast")).expect("cannot create the ballast");
        while ballast.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.data()).status();
    }
}

#[test]
fn writes_go_on_though_others_fill_the_disk() {
    for policy in ["everysec", "always"] {
        let Some(disk) = Disk::mount() else { return };
        let server = disk.0.start(&["--appendfsync", policy]);
        let mut connection = server.connect();
        ok(&mut connection, "SET first 1");
        disk.fill();
        // What is reserved is written, and then writes are refused beforehand: none is lost under way.
        let value = vec![b'v'; 5_000];
        let mut taken = 0;
        loop {
            let reply = connection.run_with(&format!("SET key:{taken}"), &[&value]).to_string();
            if reply != "+OK" {
                assert!(reply.starts_with("-MISCONF ") && reply.contains("refused before they are made"), "{reply}");
                break;
            }
            taken += 1;
        }
        assert!(taken > 20, "{policy}: {taken}");
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
        server.kill();
        fs::remove_file(disk.0.data().join("ballast")).expect("cannot remove the ballast");
        let server = disk.0.start(&[]);
        assert_eq!(server.connect().run("DBSIZE").integer(), taken + 1, "{policy}");
    }
}

#[test]
fn a_server_that_has_stopped_takes_no_more_than_it_holds() {
    let Some(home) = Home::fresh() else { return };
    let taken = || -> u64 {
        let entries = fs::read_dir(home.data()).expect("cannot list the data directory");
        entries.map(|entry| entry.and_then(|entry| entry.metadata()).expect("cannot list").blocks() * 512).sum()
    };
    let server = home.start(&[]);
    ok(&mut server.connect(), "SET a 1");
    if taken() < 8 << 20 {
        return println!("left out: this file system cannot reserve");
    }
    // What one that was killed leaves is given back by the next.
    server.kill();
    let server = home.start(&[]);
    ok(&mut server.connect(), "SET b 1");
    assert!(taken() < 30 << 20, "{} bytes", taken());
    End::Term.of(server);
    assert!(taken() < 100_000, "{} bytes", taken());
}
