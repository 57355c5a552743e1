//! Disks that fail: one that is small and fills up, and one whose system calls return errors. Knows mount and strace; where
//! those are missing or not permitted a test is skipped.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wire::{Server, skip};

use crate::support::{Home, eventually};

/// A small file system in place of a home's data directory.
pub(crate) struct SmallDisk {
    pub(crate) home: Home,
    ballast: PathBuf,
}

impl SmallDisk {
    /// `None`, and the test is skipped, where that is not permitted.
    pub(crate) fn mount(mebibytes: usize) -> Option<SmallDisk> {
        let home = Home::fresh()?;
        fs::create_dir_all(home.data()).expect("cannot create a directory");
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(home.data()).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip("mount is not permitted");
            return None;
        }
        Some(SmallDisk { ballast: home.data().join("ballast"), home })
    }

    /// Takes this much space.
    pub(crate) fn take_room(&self, bytes: usize) {
        fs::write(&self.ballast, vec![1; bytes]).expect("cannot write the ballast");
    }

    /// Takes all the space that is left.
    pub(crate) fn fill(&self) {
        let mut ballast = File::create(&self.ballast).expect("cannot create the ballast");
        while ballast.write_all(&[1; 4096]).is_ok() {}
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(&self.ballast).expect("cannot remove the ballast");
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.ballast.exists()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.home.data()).status();
    }
}

/// While this lives, system calls of a server behave as told.
pub(crate) struct Injected(Child);

impl Injected {
    /// `call` is a system call and `what` happens to it, in strace's words: `error=EIO`. `None`, and the test is skipped, where
    /// that cannot be done.
    pub(crate) fn into(home: &Home, server: &Server, call: &str, what: &str) -> Option<Injected> {
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{what}"));
        Injected::attach(home, server, &["-e", &trace, "-e", &inject, "-o", "/dev/null"])
    }

    /// Nothing happens to a system call, but all of them are listed in a file.
    pub(crate) fn listing(home: &Home, server: &Server, call: &str, to: &Path) -> Option<Injected> {
        Injected::attach(home, server, &["-e", &format!("trace={call}"), "-o", &to.display().to_string()])
    }

    fn attach(home: &Home, server: &Server, args: &[&str]) -> Option<Injected> {
        let said = home.data().with_file_name("strace");
        let mut strace = Command::new("strace");
        strace.arg("-f").args(args).args(["-p", &server.process_id().to_string()]).stdout(Stdio::null());
        let Ok(child) = strace.stderr(File::create(&said).expect("cannot create a file")).spawn() else {
            skip("there is no strace");
            return None;
        };
        let mut injected = Injected(child);
        let mut ended = false;
        eventually("strace is at work", || {
            ended = injected.0.try_wait().expect("cannot ask for the process").is_some();
            ended || fs::read_to_string(&said).is_ok_and(|said| said.contains("attached"))
        });
        if ended {
            skip("strace is not permitted");
            return None;
        }
        Some(injected)
    }

    /// Lets the server go.
    pub(crate) fn mend(mut self) {
        let asked = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        assert!(asked.is_ok_and(|status| status.success()), "cannot stop strace");
        self.0.wait().expect("cannot wait for strace");
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
