//! The directory of the data: on what kind of file system it is, how much room there is, who may write it, and how long a
//! sync takes. Knows file systems; refuses to know what the files in the directory are.

use super::findings::{Findings, bytes};
use anyhow::{Context, Result, ensure};
use engine::Settings;
use engine::settings::AppendFsync;
use rustix::fs::{StatVfs, statfs, statvfs};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Less room than this is none soon.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// With less than this share of the blocks or files free, file systems slow down.
const FREE_PERCENT_MIN: u64 = 5;
/// How many syncs are measured, each after so many bytes as a small batch has.
const SYNCS: usize = 25;
const SYNCED_BYTES: usize = 4096;
/// A slow disk is known after so long; the rest is not measured.
const MEASURES_WITHIN: Duration = Duration::from_secs(10);
/// With appendfsync always, each write waits for a sync.
const SYNC_ALWAYS_MAX: Duration = Duration::from_millis(10);
/// With everysec, one sync follows another in a second, and writes wait for one that takes longer.
const SYNC_EVERYSEC_MAX: Duration = Duration::from_millis(500);
/// No disk and no network does this: what was synced is in a cache, with or without a battery.
const SYNC_IN_CACHE: Duration = Duration::from_micros(15);

/// An error if there is no such directory.
pub(super) fn check(dir: &Path, settings: &Settings, findings: &mut Findings) -> Result<()> {
    let metadata = std::fs::metadata(dir).with_context(|| format!("{} cannot be looked at", dir.display()))?;
    ensure!(metadata.is_dir(), "{} is no directory", dir.display());
    check_rights(metadata.mode(), dir, findings);
    let kind = statfs(dir).with_context(|| format!("the file system of {}", dir.display()))?.f_type;
    // The type has another width and sign on other machines.
    #[allow(clippy::unnecessary_cast, reason = "needed where it is another type")]
    let kind = kind as u32;
    check_kind(kind, findings);
    let room = statvfs(dir).with_context(|| format!("the file system of {}", dir.display()))?;
    check_room(&room, settings, findings);
    match measure(dir) {
        Ok(took) => judge_syncs(took, kind, settings, findings),
        Err(error) => findings.unknown("sync-latency", format!("no file can be written to {}: {error}", dir.display())),
    }
    Ok(())
}

fn check_rights(mode: u32, dir: &Path, findings: &mut Findings) {
    let (check, shown) = ("directory-rights", format!("{} has the mode {:o}", dir.display(), mode & 0o7777));
    match mode & 0o007 {
        0 => findings.good(check, shown),
        // Sticky or not: a file of theirs could be taken for one of the server's.
        others if others & 0o002 != 0 => findings.act(
            check,
            format!("{shown}: every user of this machine may write there"),
            format!("chmod 750 {}", dir.display()),
        ),
        _ => findings.note(
            check,
            format!("{shown}: every user of this machine may list it"),
            format!("chmod 750 {}, if others are not to read the data", dir.display()),
        ),
    }
}

/// Kinds of file systems, by the numbers of Linux.
const KINDS: &[(u32, &str, Kind)] = &[
    (0xEF53, "ext4", Kind::Disk),
    (0x5846_5342, "XFS", Kind::Disk),
    (0xF2F5_2010, "F2FS", Kind::Disk),
    (0x9123_683E, "Btrfs", Kind::CopiesOnWrite),
    (0x2FC1_2FC1, "ZFS", Kind::CopiesOnWrite),
    (0x0102_1994, "tmpfs", Kind::Memory),
    (0x8584_58F6, "ramfs", Kind::Memory),
    (0x794C_7630, "overlayfs", Kind::Layer),
    (0x6969, "NFS", Kind::Network),
    (0xFF53_4D42, "CIFS", Kind::Network),
    (0xFE53_4D42, "SMB", Kind::Network),
    (0x00C3_6400, "Ceph", Kind::Network),
    (0x0102_1997, "9P", Kind::Network),
    (0x6573_5546, "FUSE", Kind::Network),
    (0x0BD0_0BD0, "Lustre", Kind::Network),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Disk,
    CopiesOnWrite,
    Memory,
    Layer,
    Network,
}

fn check_kind(number: u32, findings: &mut Findings) {
    let check = "file-system";
    let Some((_, name, kind)) = KINDS.iter().find(|(known, ..)| *known == number) else {
        return findings.note(check, format!("of a kind that is not known here ({number:#x})"), "");
    };
    match kind {
        Kind::Disk => findings.good(check, *name),
        Kind::CopiesOnWrite => findings.note(
            check,
            format!("{name} copies what is overwritten: the reserved space of the journal is of no use there, and syncs take longer"),
            "ext4 or XFS, or chattr +C for the directory while it is empty (Btrfs)",
        ),
        Kind::Memory => findings.act(
            check,
            format!("{name} is memory: nothing in it survives a restart of the machine"),
            "put the data on a disk (dir)",
        ),
        Kind::Layer => findings.act(
            check,
            format!("{name}: the data is in the container itself, and goes with it"),
            "mount a volume at dir",
        ),
        Kind::Network => findings.act(
            check,
            format!("{name} is a file system over a network or in a process: locks, syncs and fences may not do what they promise"),
            "put the data on a disk of this machine; for several machines there is a log on NATS (docs/cluster.md)",
        ),
    }
}

fn check_room(room: &StatVfs, settings: &Settings, findings: &mut Findings) {
    let check = "free-space";
    let (free, all) = (room.f_bavail.saturating_mul(room.f_frsize), room.f_blocks.saturating_mul(room.f_frsize));
    let shown = format!("{} of {} are free", bytes(free), bytes(all));
    // A snapshot is written beside the last one, and the journal grows meanwhile.
    let wanted = settings.maxmemory().saturating_mul(2);
    if free < FREE_BYTES_MIN || free < all / 100 * FREE_PERCENT_MIN {
        findings.act(check, shown, "make room: a full disk stops writes");
    } else if free < wanted {
        let advice = "give it twice the room of maxmemory, for two snapshots and the journal between them";
        findings.act(check, format!("{shown}, and maxmemory is {}", bytes(settings.maxmemory())), advice);
    } else {
        findings.good(check, shown);
    }
    // File systems that make them as they go have none.
    if room.f_files > 0 && room.f_favail < room.f_files / 100 * FREE_PERCENT_MIN {
        findings.act(
            "free-files",
            format!("{} more files can be made", room.f_favail),
            "remove files: each snapshot has some",
        );
    }
}

/// How long syncs took, in order.
fn measure(dir: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = nameless(dir)?;
    let (began, mut took) = (Instant::now(), Vec::new());
    while took.len() < SYNCS && (took.is_empty() || began.elapsed() < MEASURES_WITHIN) {
        file.write_all(&[0x5a; SYNCED_BYTES])?;
        let write = Instant::now();
        file.sync_data()?;
        took.push(write.elapsed());
    }
    took.sort();
    Ok(took)
}

/// A file without a name: it goes with this process, however that ends.
fn nameless(dir: &Path) -> std::io::Result<File> {
    let path = dir.join(format!(".doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn judge_syncs(took: Vec<Duration>, kind: u32, settings: &Settings, findings: &mut Findings) {
    let check = "sync-latency";
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let shown = format!("{} syncs took {} in the median, {} at most", took.len(), ms(median), ms(longest));
    let is_disk = KINDS.iter().any(|(known, _, of)| *known == kind && matches!(of, Kind::Disk | Kind::CopiesOnWrite));
    match settings.appendfsync() {
        _ if !settings.appendonly() => findings.good(check, format!("{shown}; there is no journal")),
        AppendFsync::Always if median > SYNC_ALWAYS_MAX => findings.act(
            check,
            format!("{shown}, and with appendfsync always each write waits for one"),
            "use a disk with a cache that survives a power failure, or appendfsync everysec",
        ),
        AppendFsync::Everysec if longest > SYNC_EVERYSEC_MAX => findings.act(
            check,
            format!("{shown}: writes may have to wait for the sync of each second"),
            "find out what else writes to this disk, or use a faster one",
        ),
        _ if is_disk && median < SYNC_IN_CACHE => findings.note(
            check,
            format!("{shown}: faster than any disk"),
            "make sure that the cache of this disk survives a power failure",
        ),
        _ => findings.good(check, shown),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let settings = Settings::new();
        pairs.iter().for_each(|(name, value)| settings.load(name.as_bytes(), value.as_bytes()).unwrap());
        settings
    }

    fn verdict(look: impl FnOnce(&mut Findings)) -> Verdict {
        let mut findings = Findings::default();
        look(&mut findings);
        let first = findings.of("sync-latency").into_iter().chain(findings.of("file-system"));
        let mut first = first.chain(findings.of("free-space")).chain(findings.of("directory-rights"));
        first.next().unwrap().0
    }

    #[test]
    fn a_directory_is_looked_at_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let mut findings = Findings::default();
        check(dir.path(), &settings(&[]), &mut findings).unwrap();
        for name in ["file-system", "free-space", "sync-latency", "directory-rights"] {
            assert_eq!(findings.of(name).len(), 1, "{name}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(check(&dir.path().join("none"), &settings(&[]), &mut findings).is_err());
    }

    #[test]
    fn data_belongs_on_a_disk() {
        let found = |number| verdict(|findings| check_kind(number, findings));
        assert_eq!(found(0xEF53), Verdict::Good);
        assert_eq!(found(0x9123_683E), Verdict::Note);
        for elsewhere in [0x0102_1994, 0x794C_7630, 0x6969, 0x6573_5546] {
            assert_eq!(found(elsewhere), Verdict::Act);
        }
        assert_eq!(found(1), Verdict::Note);
    }

    #[test]
    fn syncs_are_judged_by_who_waits_for_them() {
        let found = |times: &[u64], pairs: &[(&str, &str)]| {
            let took = times.iter().map(|micros| Duration::from_micros(*micros)).collect();
            verdict(|findings| judge_syncs(took, 0xEF53, &settings(pairs), findings))
        };
        assert_eq!(found(&[500, 700, 20_000], &[]), Verdict::Good);
        assert_eq!(found(&[500, 700, 600_000], &[]), Verdict::Act);
        assert_eq!(found(&[500, 700, 600_000], &[("appendonly", "no")]), Verdict::Good);
        assert_eq!(found(&[500, 700, 20_000], &[("appendfsync", "always")]), Verdict::Good);
        assert_eq!(found(&[500, 15_000, 20_000], &[("appendfsync", "always")]), Verdict::Act);
        assert_eq!(found(&[3, 4, 9], &[]), Verdict::Note);
    }

    #[test]
    fn only_the_server_writes_its_directory() {
        let found = |mode| verdict(|findings| check_rights(mode, Path::new("/data"), findings));
        assert_eq!([0o40750, 0o40755, 0o41777].map(found), [Verdict::Good, Verdict::Note, Verdict::Act]);
    }

    #[test]
    fn room_is_needed_for_two_snapshots() {
        let gigabytes = |free: u64, all: u64, pairs: &[(&str, &str)]| {
            let mut room = statvfs("/").unwrap();
            (room.f_frsize, room.f_bavail, room.f_blocks) = (1 << 30, free, all);
            verdict(|findings| check_room(&room, &settings(pairs), findings))
        };
        assert_eq!(gigabytes(50, 100, &[]), Verdict::Good);
        assert_eq!(gigabytes(0, 100, &[]), Verdict::Act);
        assert_eq!(gigabytes(4, 100, &[]), Verdict::Act);
        assert_eq!(gigabytes(50, 100, &[("maxmemory", "25gb")]), Verdict::Good);
        assert_eq!(gigabytes(50, 100, &[("maxmemory", "26gb")]), Verdict::Act);
    }
}
