//! A running server: what INFO, CONFIG and ACL say of it. Knows their fields; refuses to know the machine that it runs on.

use super::configuration::{self, Users};
use super::findings::{Findings, bytes};
use crate::config::Asked;
use crate::tools::link::{Client, Refusal, Reply};
use crate::tools::ping;
use anyhow::{Context, Result, bail};
use engine::Settings;
use engine::settings::AppendFsync;
use std::collections::BTreeMap;
use std::time::Duration;

/// A follower that is further behind answers with old data.
const LAG_MS_MAX: u64 = 5000;
/// Above this share, memory and connections are nearly used up.
const NEARLY_ALL_PERCENT: u64 = 90;
/// A journal that is synced once a second has stored after so long what was written before.
const STORED_WITHIN: Duration = Duration::from_secs(3);

/// The fields of INFO.
type Fields = BTreeMap<String, String>;

/// An error if the server cannot be asked for INFO.
pub(super) fn check(asked: &Asked, settings: &Settings) -> Result<Findings> {
    let (url, way) = ping::find(asked, settings)?;
    let mut client = Client::connect(&url, &way)?;
    let fields = info(&mut client)?;
    let mut findings = Findings::default();
    let version = text(&fields, "holdfast_version").map(|version| format!("Holdfast {version}"));
    let version = version
        .or_else(|| text(&fields, "redis_version").map(|version| format!("a server that says it is Redis {version}")));
    findings.good(
        "server",
        format!("{} is {}", url.place, version.unwrap_or_else(|| "a server without a version".to_owned())),
    );
    check_memory(&fields, &mut findings);
    check_clients(&fields, &mut findings);
    check_storage(&fields, &mut findings);
    check_role(&fields, &mut findings);
    let users = users(&mut client, &mut findings)?;
    match may(client.must(&[b"CONFIG", b"GET", b"*"]))? {
        Some(reply) => {
            let running = running_settings(&reply);
            configuration::check(&running, users, &mut findings);
            check_syncs(&mut client, &fields, &running, &mut findings)?;
        }
        None => findings.unknown("configuration", "this user may not run CONFIG GET"),
    }
    Ok(findings)
}

/// The reply; `None` if this user may not ask.
fn may(reply: Result<Reply>) -> Result<Option<Reply>> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(_) => Ok(None),
            None => Err(error),
        },
    }
}

fn info(client: &mut Client) -> Result<Fields> {
    let info = client.must(&[b"INFO"])?.text().context("INFO is no text")?;
    let pairs = info.lines().filter_map(|line| line.trim().split_once(':'));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).map(String::as_str)
}

fn number(fields: &Fields, name: &str) -> Option<u64> {
    text(fields, name)?.parse().ok()
}

fn check_memory(fields: &Fields, findings: &mut Findings) {
    let (Some(used), Some(max)) = (number(fields, "used_memory"), number(fields, "maxmemory")) else {
        return findings.unknown("memory", "INFO does not say how much is used");
    };
    let machine = number(fields, "total_system_memory").filter(|memory| *memory > 0);
    let shown = format!("{} are used", bytes(used));
    match (max, machine) {
        (0, Some(machine)) if used > machine / 100 * NEARLY_ALL_PERCENT => findings.act(
            "memory",
            format!("{shown} of {} of the machine", bytes(machine)),
            "set maxmemory, and give the machine more memory",
        ),
        (0, _) => findings.note(
            "memory",
            format!("{shown}, and maxmemory is 0, no limit"),
            "set maxmemory to 80 % of the machine's memory or less",
        ),
        (max, Some(machine)) if max > machine => findings.act(
            "memory",
            format!("maxmemory is {}, and the machine has {}", bytes(max), bytes(machine)),
            "lower maxmemory",
        ),
        (max, _) if used > max / 100 * NEARLY_ALL_PERCENT => findings.act(
            "memory",
            format!("{shown} of maxmemory {}", bytes(max)),
            "raise maxmemory, or find what takes it: MEMORY PREFIXES",
        ),
        (max, _) => findings.good("memory", format!("{shown} of maxmemory {}", bytes(max))),
    }
    if let Some(evicted) = number(fields, "evicted_keys").filter(|evicted| *evicted > 0) {
        findings.note(
            "evicted-keys",
            format!("{evicted} keys were evicted since the start"),
            "raise maxmemory, if they were of use",
        );
    }
}

fn check_clients(fields: &Fields, findings: &mut Findings) {
    let (Some(clients), Some(max)) = (number(fields, "connected_clients"), number(fields, "maxclients")) else {
        return findings.unknown("clients", "INFO does not say how many there are");
    };
    let shown = format!("{clients} of {max}");
    let rejected = number(fields, "rejected_connections").unwrap_or(0);
    if clients > max / 100 * NEARLY_ALL_PERCENT && max >= 100 {
        findings.act("clients", shown, "raise maxclients, or close connections that are not used (timeout)");
    } else if rejected > 0 {
        let advice = "raise maxclients, or find who connects so often: CLIENT LIST";
        findings.act("clients", format!("{shown}, and {rejected} were refused since the start"), advice);
    } else {
        findings.good("clients", shown);
    }
}

fn check_storage(fields: &Fields, findings: &mut Findings) {
    let says = |name, bad: &str| text(fields, name).is_some_and(|value| value == bad);
    if says("loading", "1") {
        findings.note("loading", "the server reads its data", "look again when it has");
    }
    let journal = text(fields, "journal_state").unwrap_or("off");
    let is_whole = ["sound", "off", "starting", "restarting", "closing", "following"].contains(&journal);
    if !is_whole || says("aof_last_write_status", "err") {
        findings.act(
            "journal",
            format!("its state is {journal}, and the last write failed or was given up"),
            "see the log; is the disk full?",
        );
    } else if says("journal_has_room", "0") {
        findings.act("journal", "there is no more room on its disk", "make room");
    } else {
        findings.good("journal", journal);
    }
    match says("rdb_last_bgsave_status", "err") {
        true => findings.act("snapshots", "the last one failed", "see the log; is the disk full? Then BGSAVE"),
        false => findings.good("snapshots", "the last one did not fail"),
    }
}

fn check_role(fields: &Fields, findings: &mut Findings) {
    let check = "followers";
    match text(fields, "role") {
        Some("slave") => {
            let lag_ms = number(fields, "lag_ms").unwrap_or(0);
            if text(fields, "master_link_status") != Some("up") {
                findings.act(
                    check,
                    "it follows, and its writer does not answer",
                    "start the writer, or REPLICAOF NO ONE here",
                );
            } else if lag_ms > LAG_MS_MAX {
                let batches = number(fields, "lag_batches").unwrap_or(0);
                let found = format!("it follows, and is {batches} batches and {:.1} s behind", lag_ms as f64 / 1000.0);
                findings.act(check, found, "is this machine slower, or a script long? SLOWLOG GET");
            } else {
                findings.good(check, "it follows its writer closely");
            }
        }
        _ => {
            let written = number(fields, "master_repl_offset").unwrap_or(0);
            let count = number(fields, "connected_slaves").unwrap_or(0);
            let late: Vec<String> =
                (0..count).filter_map(|index| late(text(fields, &format!("slave{index}"))?)).collect();
            match late.is_empty() {
                true => findings.good(check, format!("it writes, {count} follow (batch {written})")),
                false => findings.act(
                    check,
                    format!("not heard of lately: {}", late.join(", ")),
                    "are these servers up, and is their disk fast enough?",
                ),
            }
        }
    }
}

/// The address of a follower that was silent for too long, from `ip=…,port=…,state=…,offset=…,lag=…`.
fn late(follower: &str) -> Option<String> {
    let field = |name: &str| follower.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let seconds: u64 = field("lag")?.parse().ok()?;
    (seconds * 1000 > LAG_MS_MAX)
        .then(|| format!("{}:{} for {seconds} s", field("ip").unwrap_or("?"), field("port").unwrap_or("?")))
}

/// What ACL says of the default user.
fn users(client: &mut Client, findings: &mut Findings) -> Result<Users> {
    let Some(reply) = may(client.must(&[b"ACL", b"GETUSER", b"default"]))? else {
        findings.unknown("default-user", "this user may not run ACL GETUSER");
        return Ok(Users::OfSettings);
    };
    let Reply::Array(fields) = &reply else { bail!("ACL GETUSER was answered with {reply:?}") };
    let flags = fields.chunks_exact(2).find(|pair| pair[0].text().as_deref() == Some("flags")).map(|pair| &pair[1]);
    let Some(Reply::Array(flags)) = flags else { bail!("ACL GETUSER was answered with {reply:?}") };
    let has = |flag: &str| flags.iter().any(|one| one.text().as_deref() == Some(flag));
    Ok(Users::Defined { default_needs_none: Some(has("on") && has("nopass")) })
}

/// What CONFIG GET says, as far as these settings are known here.
fn running_settings(reply: &Reply) -> Settings {
    let settings = Settings::new();
    if let Reply::Array(words) = reply {
        for pair in words.chunks_exact(2) {
            if let (Some(name), Some(value)) = (pair[0].text(), pair[1].text()) {
                // A server of another version may know others, or other values.
                let _ = settings.load(name.as_bytes(), value.as_bytes());
            }
        }
    }
    settings
}

/// Whether what is written is synced in time.
fn check_syncs(client: &mut Client, fields: &Fields, settings: &Settings, findings: &mut Findings) -> Result<()> {
    let sequences =
        |fields: &Fields| Some((number(fields, "journal_sequence")?, number(fields, "journal_durable_sequence")?));
    let is_synced = settings.appendonly() && settings.appendfsync() != AppendFsync::No;
    let Some((written, durable)) = sequences(fields).filter(|_| is_synced) else { return Ok(()) };
    if durable >= written {
        findings.good("syncs", "all that is written is on the disk");
        return Ok(());
    }
    std::thread::sleep(STORED_WITHIN);
    let (_, durable) = sequences(&info(client)?).context("INFO says nothing of the journal any more")?;
    match durable >= written {
        true => findings.good("syncs", "what is written is soon on the disk"),
        false => findings.act(
            "syncs",
            format!(
                "{} batches that were written {} s ago are not on the disk yet",
                written - durable,
                STORED_WITHIN.as_secs()
            ),
            "what else writes to this disk? holdfast doctor DIR measures its syncs",
        ),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::*;

    fn fields(lines: &str) -> Fields {
        lines
            .split_whitespace()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn found(check: &str, look: fn(&Fields, &mut Findings), lines: &str) -> Verdict {
        let mut findings = Findings::default();
        look(&fields(lines), &mut findings);
        findings.of(check)[0].0
    }

    #[test]
    fn memory_that_is_nearly_used_up_is_found() {
        let found = |lines| found("memory", check_memory, lines);
        assert_eq!(found("used_memory:50 maxmemory:100 total_system_memory:1000"), Verdict::Good);
        assert_eq!(found("used_memory:9500 maxmemory:10000 total_system_memory:100000"), Verdict::Act);
        assert_eq!(found("used_memory:50 maxmemory:2000 total_system_memory:1000"), Verdict::Act);
        assert_eq!(found("used_memory:50 maxmemory:0 total_system_memory:1000"), Verdict::Note);
        assert_eq!(found("used_memory:950 maxmemory:0 total_system_memory:1000"), Verdict::Act);
        assert_eq!(found("uptime:5"), Verdict::Unknown);
    }

    #[test]
    fn clients_that_were_refused_are_found() {
        let found = |lines| found("clients", check_clients, lines);
        assert_eq!(found("connected_clients:10 maxclients:1000 rejected_connections:0"), Verdict::Good);
        assert_eq!(found("connected_clients:10 maxclients:1000 rejected_connections:3"), Verdict::Act);
        assert_eq!(found("connected_clients:950 maxclients:1000"), Verdict::Act);
    }

    #[test]
    fn a_journal_or_snapshot_that_failed_is_found() {
        assert_eq!(found("journal", check_storage, "journal_state:sound journal_has_room:1"), Verdict::Good);
        assert_eq!(found("journal", check_storage, "journal_state:failed"), Verdict::Act);
        assert_eq!(found("journal", check_storage, "journal_state:sound aof_last_write_status:err"), Verdict::Act);
        assert_eq!(found("journal", check_storage, "journal_state:sound journal_has_room:0"), Verdict::Act);
        assert_eq!(found("snapshots", check_storage, "rdb_last_bgsave_status:err"), Verdict::Act);
        assert_eq!(found("snapshots", check_storage, "rdb_last_bgsave_status:ok"), Verdict::Good);
    }

    #[test]
    fn followers_that_are_behind_are_found() {
        let found = |lines| found("followers", check_role, lines);
        assert_eq!(found("role:slave master_link_status:up lag_ms:20"), Verdict::Good);
        assert_eq!(found("role:slave master_link_status:up lag_ms:20000"), Verdict::Act);
        assert_eq!(found("role:slave master_link_status:down"), Verdict::Act);
        assert_eq!(
            found("role:master connected_slaves:1 slave0:ip=h,port=7,state=online,offset=1,lag=0"),
            Verdict::Good
        );
        assert_eq!(
            found("role:master connected_slaves:1 slave0:ip=h,port=7,state=online,offset=1,lag=60"),
            Verdict::Act
        );
    }
}
