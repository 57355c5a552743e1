//! Whether the server's figures of memory agree with each other and with the process: CLIENT LIST, INFO, the resident size.
//! Compares differences, so that what the server needs for itself does not matter.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::full::setting;
use crate::session::{Attack, mix};
use crate::state::Info;
use crate::talk::{Talk, encode};

/// What clients hold in the server.
#[derive(Clone, Copy, Debug)]
enum Holding {
    /// A request whose last argument is not there yet.
    HalfArgument,
    /// A request of which many arguments are there.
    HalfRequest,
    /// Commands queued by MULTI.
    Queue,
    /// Replies that it does not read.
    Replies,
    /// Messages that it does not read.
    Messages,
}

const HOLDINGS: &[Holding] =
    &[Holding::HalfArgument, Holding::HalfRequest, Holding::Queue, Holding::Replies, Holding::Messages];

const CLIENTS: usize = 6;
/// What one client is to hold in the server's own memory. The kernel holds some megabytes of what is not read on top.
const HELD_BYTES: usize = 2 << 20;
const KERNEL_BYTES: usize = 7 << 20;
const PART_BYTES: usize = 100_000;
const STEADY_MAX: Duration = Duration::from_secs(10);

/// How far two figures of the same thing may be apart: a part of it, and a number of bytes.
struct Bound {
    percent: i64,
    bytes: i64,
}

/// The sum of CLIENT LIST and INFO's own sum.
const LISTED: Bound = Bound { percent: 5, bytes: 64 << 10 };
/// What clients are said to hold, and what the allocator gave meanwhile.
const ALLOCATED: Bound = Bound { percent: 15, bytes: 1 << 20 };
/// What the process grew by, above what the allocator gave. It may grow by less: freed pages are used again.
const RESIDENT: Bound = Bound { percent: 30, bytes: 24 << 20 };

impl Bound {
    fn slack(&self, figure: i64) -> i64 {
        figure.abs() * self.percent / 100 + self.bytes
    }
}

impl Attack<'_> {
    /// Compares the figures with idle clients, with clients that hold buffers, and after those have gone. Uses the first place
    /// in the record.
    pub(crate) fn run_accounts(&self) {
        if let Err(what) = self.accounts(self.process_id) {
            self.record.fail(format!("accounts: {what}"));
        }
    }

    fn accounts(&self, process_id: Option<u32>) -> Result<(), String> {
        let mut random = Random::new(mix(self.seed, 6_000_000, 0));
        let mut watch = self.connect()?;
        let limit = setting(&mut watch, "maxmemory")?;
        watch.must(&["CONFIG", "SET", "maxmemory", "0"])?;
        watch.must(&["FLUSHALL"])?;
        watch.must(&[b"SET".as_slice(), b"account:value", &vec![b'v'; PART_BYTES]])?;
        Figures::steady(&mut watch, process_id)?.check_sums("with idle clients")?;
        for holding in random_order(&mut random) {
            self.record.did(0, 0, &format!("{CLIENTS} clients hold {holding:?}"));
            let before = Figures::steady(&mut watch, process_id)?;
            let mut holders = Vec::new();
            for _ in 0..CLIENTS {
                holders.push(self.hold(holding, &mut watch)?);
            }
            let held = Figures::steady(&mut watch, process_id)?;
            let label = format!("with {CLIENTS} clients that hold {holding:?}");
            held.check_sums(&label)?;
            held.check_growth(&before, &label)?;
            drop(holders);
            Figures::wait_for(&mut watch, process_id, &before, &label)?;
        }
        watch.must(&["FLUSHALL"])?;
        // As the server was started.
        watch.must(&["CONFIG", "SET", "maxmemory", &limit]).map(drop)
    }

    fn connect(&self) -> Result<Talk, String> {
        Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"))
    }

    /// A client that holds something, for as long as it is kept.
    fn hold(&self, holding: Holding, watch: &mut Talk) -> Result<Talk, String> {
        let mut talk = self.connect()?;
        let part = vec![b'p'; PART_BYTES];
        let set: [&[u8]; 3] = [b"SET", b"account:key", &part];
        let mut send = |bytes: &[u8]| talk.send(bytes).map_err(|trouble| format!("{holding:?}: {trouble:?}"));
        match holding {
            Holding::HalfArgument => {
                send(format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${}\r\n", 2 * HELD_BYTES).as_bytes())?;
                send(&vec![b'p'; HELD_BYTES])?;
            }
            Holding::HalfRequest => {
                let count = HELD_BYTES / PART_BYTES;
                send(format!("*{}\r\n$4\r\nMSET\r\n", 10 * count).as_bytes())?;
                for _ in 0..count {
                    send(format!("${PART_BYTES}\r\n").as_bytes())?;
                    send(&part)?;
                    send(b"\r\n")?;
                }
            }
            Holding::Queue => {
                talk.must(&["MULTI"])?;
                for _ in 0..HELD_BYTES / PART_BYTES {
                    talk.must(&set)?;
                }
            }
            Holding::Replies => {
                let count = (HELD_BYTES + KERNEL_BYTES) / PART_BYTES;
                send(&encode(&vec![["GET", "account:value"]; count]))?;
            }
            Holding::Messages => {
                talk.must(&["SUBSCRIBE", "account:channel"])?;
                // Those who came before get them too.
                let count = (HELD_BYTES + KERNEL_BYTES) / PART_BYTES / 3;
                let publish: [&[u8]; 3] = [b"PUBLISH", b"account:channel", &part];
                for _ in 0..count {
                    watch.must(&publish)?;
                }
            }
        }
        Ok(talk)
    }
}

fn random_order(random: &mut Random) -> Vec<Holding> {
    let mut all = HOLDINGS.to_vec();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

/// All that is known of the server's memory at one moment.
#[derive(Clone, Copy)]
struct Figures {
    /// The sum of `tot-mem` in CLIENT LIST.
    listed: i64,
    /// `mem_clients_normal`.
    clients: i64,
    used: i64,
    /// `used_memory_rss`.
    told_resident: i64,
    /// As the kernel tells it, if the process is ours.
    resident: Option<i64>,
}

impl Figures {
    fn read(talk: &mut Talk, process_id: Option<u32>) -> Result<Figures, String> {
        let Reply::Bulk(list) = talk.must(&["CLIENT", "LIST"])? else { return Err("CLIENT LIST is no text".into()) };
        let list = String::from_utf8_lossy(&list).into_owned();
        let listed =
            list.split_whitespace().filter_map(|word| word.strip_prefix("tot-mem=")?.parse::<i64>().ok()).sum();
        let info = Info::read(talk)?;
        Ok(Figures {
            listed,
            clients: info.bytes("mem_clients_normal"),
            used: info.bytes("used_memory"),
            told_resident: info.bytes("used_memory_rss"),
            resident: process_id.and_then(resident),
        })
    }

    /// The figures, once they stay as they are.
    fn steady(talk: &mut Talk, process_id: Option<u32>) -> Result<Figures, String> {
        let began = Instant::now();
        let mut figures = Figures::read(talk, process_id)?;
        let mut times = 0;
        while times < 3 && began.elapsed() < STEADY_MAX {
            thread::sleep(Duration::from_millis(30));
            let next = Figures::read(talk, process_id)?;
            let apart = (next.used - figures.used).abs() + (next.listed - figures.listed).abs();
            times = if apart < 64 << 10 { times + 1 } else { 0 };
            figures = next;
        }
        Ok(figures)
    }

    /// What clients held is given back when they are gone.
    fn wait_for(talk: &mut Talk, process_id: Option<u32>, before: &Figures, label: &str) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let now = Figures::read(talk, process_id)?;
            let is_back = now.listed - before.listed < LISTED.bytes
                && now.clients - before.clients < LISTED.bytes
                && now.used - before.used < ALLOCATED.bytes;
            match is_back {
                true => return Ok(()),
                false if began.elapsed() > STEADY_MAX => {
                    return Err(format!(
                        "{label}, after they have gone: before {}, now {}",
                        before.describe(),
                        now.describe()
                    ));
                }
                false => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn check_sums(&self, label: &str) -> Result<(), String> {
        if (self.listed - self.clients).abs() > LISTED.slack(self.listed) {
            return Err(format!("{label}, CLIENT LIST and INFO differ: {}", self.describe()));
        }
        if self.used < self.clients {
            return Err(format!("{label}, clients hold more than is used: {}", self.describe()));
        }
        if let Some(resident) = self.resident {
            // Pages that were given and never written are not resident.
            if self.used > resident + RESIDENT.slack(resident) {
                return Err(format!("{label}, more is used than the process has: {}", self.describe()));
            }
            if (self.told_resident - resident).abs() > RESIDENT.slack(resident) {
                return Err(format!("{label}, INFO and the kernel differ: {}", self.describe()));
            }
        }
        Ok(())
    }

    fn check_growth(&self, before: &Figures, label: &str) -> Result<(), String> {
        let told = || format!("before {}, now {}", before.describe(), self.describe());
        let (listed, used) = (self.listed - before.listed, self.used - before.used);
        if (listed - used).abs() > ALLOCATED.slack(listed.max(used)) {
            return Err(format!("{label}, CLIENT LIST grew by {listed} and used memory by {used}: {}", told()));
        }
        if let (Some(now), Some(before)) = (self.resident, before.resident)
            && now - before > used + RESIDENT.slack(used)
        {
            return Err(format!("{label}, the process grew by {} and used memory by {used}: {}", now - before, told()));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let Figures { listed, clients, used, told_resident, resident } = self;
        format!(
            "CLIENT LIST {listed}, mem_clients_normal {clients}, used_memory {used}, used_memory_rss {told_resident}, \
             resident {}",
            resident.map_or("unknown".into(), |bytes| bytes.to_string())
        )
    }
}

/// The resident size of a process.
fn resident(process_id: u32) -> Option<i64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(listed: i64, clients: i64, used: i64) -> Figures {
        Figures { listed, clients, used, told_resident: 0, resident: None }
    }

    #[test]
    fn figures_that_do_not_agree_are_found() {
        const MB: i64 = 1 << 20;
        let before = figures(0, 0, 10 * MB);
        assert!(figures(66 * MB, 66 * MB, 78 * MB).check_growth(&before, "").is_ok());
        assert!(figures(66 * MB, 66 * MB, 144 * MB).check_growth(&before, "").is_err());
        assert!(figures(144 * MB, 144 * MB, 76 * MB).check_growth(&before, "").is_err());
        assert!(figures(66 * MB, 30 * MB, 76 * MB).check_sums("").is_err());
        assert!(figures(66 * MB, 66 * MB, 20 * MB).check_sums("").is_err());
    }

    #[test]
    fn a_process_has_a_resident_size() {
        assert!(resident(std::process::id()).is_some_and(|bytes| bytes > 100_000));
    }
}
