//! The disk that journals are written to. Knows nothing of servers.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

#[derive(Serialize, Debug)]
pub(crate) struct Disk {
    pub(crate) path: String,
    pub(crate) filesystem: String,
    /// The median time until 4 KiB more are on the disk: what `always` has to wait for.
    pub(crate) sync_ms: f64,
}

impl Disk {
    /// The disk under a directory. Refuses memory that poses as one: syncing it costs nothing, and nothing would be
    /// measured.
    pub(crate) fn under(dir: &Path) -> Result<Disk> {
        let dir = dir.canonicalize().with_context(|| format!("no directory {}", dir.display()))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?;
        let filesystem = filesystem_of(&mounts, &dir).unwrap_or("an unknown file system");
        ensure!(
            !matches!(filesystem, "tmpfs" | "ramfs"),
            "{} is not on a disk ({filesystem}): set TMPDIR to a directory that is",
            dir.display()
        );
        let sync_ms = sync_ms(&dir).with_context(|| format!("cannot write to {}", dir.display()))?;
        Ok(Disk { path: dir.display().to_string(), filesystem: filesystem.to_string(), sync_ms })
    }
}

/// Waits until all that was written to the file system under a directory is on its disk.
pub(crate) fn flush_disk(dir: &Path) -> Result<()> {
    let status = Command::new("sync").arg("-f").arg(dir).status().context("cannot run sync")?;
    ensure!(status.success(), "`sync -f {}`: {status}", dir.display());
    Ok(())
}

/// Enough for a steady median, and less than a second even where a sync takes ten milliseconds.
const SYNCS: usize = 51;

fn sync_ms(dir: &Path) -> Result<f64> {
    let path = dir.join(format!("holdfast-bench-{}-sync", std::process::id()));
    let times = File::create_new(&path).and_then(|mut file| {
        let mut times = [0.0; SYNCS];
        for time in &mut times {
            file.write_all(&[0x5a; 4096])?;
            let started = Instant::now();
            file.sync_data()?;
            *time = started.elapsed().as_secs_f64() * 1e3;
        }
        Ok(times)
    });
    let _ = fs::remove_file(&path);
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS / 2])
}

/// The type of the file system that holds `path`, from lines such as
/// `27 1 254:0 / /mnt rw,relatime shared:1 - ext4 /dev/vda rw` (see proc_pid_mountinfo(5)).
fn filesystem_of<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, device) = line.split_once(" - ")?;
        Some((Path::new(mount.split(' ').nth(4)?), device.split(' ').next()?))
    });
    // Of two mounts on the same directory, the later one hides the earlier: `max_by_key` returns the last.
    let holding = mounts.filter(|(point, _)| path.starts_with(point));
    holding.max_by_key(|(point, _)| point.components().count()).map(|(_, filesystem)| filesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_latest_mount_holds_a_path() {
        let mounts = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 0:24 / /tmp rw,relatime shared:3 master:1 - xfs /dev/vdb rw
29 27 0:25 / /tmp rw,relatime - tmpfs tmpfs rw
30 27 0:26 / /tm rw,relatime - btrfs /dev/vdc rw
";
        assert_eq!(filesystem_of(mounts, Path::new("/tmp/bench")), Some("tmpfs"));
        assert_eq!(filesystem_of(mounts, Path::new("/var/tmp")), Some("ext4"));
        assert_eq!(filesystem_of(mounts, Path::new("/tm")), Some("btrfs"));
        assert_eq!(filesystem_of("", Path::new("/tmp")), None);
    }
}
