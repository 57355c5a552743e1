//! What is wrong with the server, for the overview: fields of INFO, counters of the last minutes and the oldest due record of each
//! index. The thresholds are those of config/prometheus/alerts.yaml where it has one. Refuses to know how it is shown.

use super::info::{Info, part};
use crate::figures;
use crate::history::History;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::Visit;

/// The most indexes that are looked at.
const INDEXES_MAX: usize = 100;
/// A record is late that has been due for so long.
const LATE_MS: f64 = 60_000.0;
/// Scores from here on are times in unix milliseconds.
const TIME_MS_MIN: &[u8] = b"1000000000000";
/// States of records that nobody works on any more, as docs/jobs.md and most programs name them.
const FINAL: &[&str] =
    &["dead", "done", "completed", "complete", "finished", "succeeded", "cancelled", "canceled", "failed", "closed"];
const SNAPSHOT_AGE_MAX_MS: f64 = 86_400_000.0;
const LAG_MAX_S: f64 = 30.0;
const SILENT_MAX_MS: f64 = 15_000.0;

/// What was looked at.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) wrong: Vec<String>,
    /// How many indexes were looked at for late records.
    pub(super) indexes: usize,
    /// What could not be looked at, and why.
    pub(super) unseen: Vec<String>,
}

/// Looks at all that the user may see.
pub(super) async fn find(visit: &mut Visit<'_>, info: &Info) -> Result<Found, Trouble> {
    let mut found = Found { wrong: of_info(info, visit.now_ms()), ..Found::default() };
    found.wrong.extend(of_history(&visit.console.history()));
    of_indexes(visit, &mut found).await?;
    Ok(found)
}

fn of_info(info: &Info, now_ms: f64) -> Vec<String> {
    let mut wrong = Vec::new();
    if info.get("loading") == "1" {
        wrong.push("The data is being read: most commands answer -LOADING until it is there.".to_owned());
    }
    match info.get("journal_state") {
        "" | "sound" | "off" | "following" | "starting" => {}
        other => wrong.push(format!("The journal is {other}: {}.", info.get("journal_failure"))),
    }
    if info.get("journal_has_room") == "0" {
        wrong.push("The disk has no room for the journal, so writes are refused: make room.".to_owned());
    }
    if info.get("rdb_last_bgsave_status") == "err" || info.get("aof_last_bgrewrite_status") == "err" {
        wrong.push("The last snapshot has failed: see the server's log.".to_owned());
    }
    let snapshot_age_ms = now_ms - info.number("rdb_last_save_time") * 1000.0;
    if info.number("rdb_changes_since_last_save") > 0.0 && snapshot_age_ms > SNAPSHOT_AGE_MAX_MS {
        wrong.push(format!("The last snapshot is {} old: BGSAVE takes one.", figures::duration(snapshot_age_ms)));
    }
    let (used, max) = (info.number("used_memory"), info.number("maxmemory"));
    if max > 0.0 && used > max * 0.9 {
        wrong.push(format!("Memory is at {:.0} % of maxmemory.", used / max * 100.0));
    }
    if info.number("current_eviction_exceeded_time") > 0.0 {
        let ms = info.number("current_eviction_exceeded_time");
        wrong
            .push(format!("Memory has been above maxmemory for {}: eviction frees too little.", figures::duration(ms)));
    }
    let clients_max = info.number("maxclients");
    for (field, what) in [("connected_clients", "are connected"), ("blocked_clients", "wait in blocking commands")] {
        if clients_max > 0.0 && info.number(field) > clients_max * 0.9 {
            wrong.push(format!("{} of {} possible clients {what}.", info.get(field), info.get("maxclients")));
        }
    }
    of_sweepers(info, &mut wrong);
    of_followers(info, &mut wrong);
    of_log(info, &mut wrong);
    wrong
}

fn of_sweepers(info: &Info, wrong: &mut Vec<String>) {
    for (_, value) in info.with_prefix("sweeper").filter(|(number, _)| number.parse::<u32>().is_ok()) {
        if part(value, "status") == "failing" {
            let (index, error) = (part(value, "index"), part(value, "error"));
            wrong.push(format!("The sweeper of the index {index} fails: {error}"));
        }
    }
}

fn of_followers(info: &Info, wrong: &mut Vec<String>) {
    if info.get("master_link_status") == "down" {
        let seconds = info.number("master_link_down_since_seconds");
        wrong.push(format!("This follower has not heard from its writer for {}.", figures::duration(seconds * 1000.0)));
    }
    if info.number("lag_ms") > LAG_MAX_S * 1000.0 {
        wrong.push(format!("This follower is {} behind its writer.", figures::duration(info.number("lag_ms"))));
    }
    for (number, value) in info.with_prefix("slave").filter(|(number, _)| number.parse::<u32>().is_ok()) {
        let lag: f64 = part(value, "lag").parse().unwrap_or(0.0);
        if lag > LAG_MAX_S {
            wrong.push(format!("Follower {number} was not heard of for {}.", figures::duration(lag * 1000.0)));
        }
    }
}

/// A log that several machines share.
fn of_log(info: &Info, wrong: &mut Vec<String>) {
    if info.get("log").is_empty() {
        return;
    }
    if info.get("lease_ms_left") == "0" {
        wrong.push("This writer has no lease: NATS does not store its frames, and its replies wait.".to_owned());
    }
    if info.get("log_connected") == "0" {
        wrong.push("This server reaches no NATS server.".to_owned());
    }
    if info.number("log_silent_ms") > SILENT_MAX_MS {
        let silent = figures::duration(info.number("log_silent_ms"));
        wrong.push(format!("This server has heard nothing of its log for {silent}."));
    }
    if info.number("members") < 2.0 {
        wrong.push("This is the only server of its log: no other can take over.".to_owned());
    }
    if !matches!(info.get("log_findings"), "" | "none") {
        wrong.push(format!("NATS is not as it should be: {}.", info.get("log_findings")));
    }
}

fn of_history(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let rejected = history.rejected_lately();
    if rejected > 0 {
        wrong.push(format!("{rejected} connections were rejected within 5 minutes: maxclients is reached."));
    }
    let dead = history.dead_letters_lately();
    if dead > 0 {
        wrong.push(format!("{dead} records had no try left within 15 minutes: they are dead letters."));
    }
    wrong
}

/// What the records of an index are.
#[derive(Debug, PartialEq)]
enum Kind {
    /// Work that is due at its time.
    Queue,
    /// Dead letters.
    Dead,
    /// Records that are over, or whose numbers say when they were written.
    Other,
    /// It takes in every record: those that are over cannot be told from those that are due.
    All,
}

fn kind_of(info: &Reply) -> Kind {
    if !matches!(info.get("stamp").integer(), None | Some(0)) {
        return Kind::Other;
    }
    let texts = |reply: &Reply| reply.items().iter().map(Reply::text).collect::<Vec<_>>();
    let (only, exclude) = (texts(info.get("only")), texts(info.get("exclude")));
    // The first is the name of the field.
    let states = only.get(1..).unwrap_or_default();
    let is_final = |state: &String| FINAL.contains(&state.to_ascii_lowercase().as_str());
    match states {
        [state] if state.eq_ignore_ascii_case("dead") => Kind::Dead,
        [] if exclude.is_empty() => Kind::All,
        [] => Kind::Queue,
        states if states.iter().all(is_final) => Kind::Other,
        _ => Kind::Queue,
    }
}

async fn of_indexes(visit: &mut Visit<'_>, found: &mut Found) -> Result<(), Trouble> {
    let reply = visit.ask(&[b"IDX.LIST"]).await?;
    if let Some(error) = reply.error() {
        found.unseen.push(format!("late records ({})", String::from_utf8_lossy(error)));
        return Ok(());
    }
    let mut names: Vec<Vec<u8>> = reply.items().iter().map(|name| name.bytes().into_owned()).collect();
    names.sort();
    if names.len() > INDEXES_MAX {
        found.unseen.push(format!("{} more indexes", names.len() - INDEXES_MAX));
        names.truncate(INDEXES_MAX);
    }
    let now_ms = visit.now_ms();
    let late = format!("{}", now_ms - LATE_MS);
    let asked = names.iter().flat_map(|name| {
        [
            request(&[b"IDX.INFO", name]),
            request(&[b"ZRANGE", name, TIME_MS_MIN, late.as_bytes(), b"BYSCORE", b"LIMIT", b"0", b"1", b"WITHSCORES"]),
            request(&[b"ZCOUNT", name, TIME_MS_MIN, late.as_bytes()]),
            request(&[b"ZCARD", name]),
        ]
    });
    let replies = visit.ask_all(&asked.collect::<Vec<_>>()).await?;
    for (name, replies) in names.iter().zip(replies.chunks_exact(4)) {
        of_index(&String::from_utf8_lossy(name), replies, now_ms, found);
    }
    Ok(())
}

fn of_index(name: &str, replies: &[Reply], now_ms: f64, found: &mut Found) {
    let [info, oldest, late, all] = replies else { return };
    if let Some(error) = replies.iter().find_map(Reply::error) {
        return found.unseen.push(format!("the index {name} ({})", String::from_utf8_lossy(error)));
    }
    match kind_of(info) {
        Kind::Other => {}
        Kind::All => {
            found.unseen.push(format!("the index {name} (without ONLY or EXCLUDE it also has records that are over)"))
        }
        Kind::Dead => {
            found.indexes += 1;
            let count = all.integer().unwrap_or(0);
            if count > 0 {
                found.wrong.push(format!("The index {name} has {count} dead letters."));
            }
        }
        Kind::Queue => {
            found.indexes += 1;
            if let Some(score) = oldest.at(0).at(1).number() {
                let (count, age) = (late.integer().unwrap_or(1), figures::duration(now_ms - score));
                found.wrong.push(format!(
                    "{count} records of the index {name} have been due for more than a minute, the oldest for {age}."
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info::of(&Reply::Bulk(text.replace('\n', "\r\n").into_bytes()))
    }

    const SOUND: &str = "loading:0\njournal_state:sound\njournal_has_room:1\nrdb_last_bgsave_status:ok\nmaxclients:100\n\
        rdb_changes_since_last_save:5\nrdb_last_save_time:90000\nconnected_clients:3\nblocked_clients:1\nrole:master\n\
        slave0:ip=a,port=1,state=online,offset=5,lag=0\nsweeper0:index=due,db=0,status=ok,sweeps=5,failed=0\n\
        log:nats\nlease_ms_left:2900\nmembers:3\nlog_connected:1\nlog_silent_ms:200\nlog_findings:none\n\
        current_eviction_exceeded_time:0\nmaxmemory:0\nused_memory:5\n";

    #[test]
    fn fields_of_info_that_are_wrong_are_told() {
        let now_ms = 90_000_000.0;
        assert_eq!(of_info(&info(SOUND), now_ms), Vec::<String>::new());
        for (field, told) in [
            ("loading:1", "LOADING"),
            ("journal_state:failed\njournal_failure:no disk", "no disk"),
            ("journal_has_room:0", "no room"),
            ("rdb_last_bgsave_status:err", "snapshot has failed"),
            ("aof_last_bgrewrite_status:err", "snapshot has failed"),
            ("rdb_last_save_time:100", "1 d 0 h old"),
            ("maxmemory:5", "100 % of maxmemory"),
            ("current_eviction_exceeded_time:2500", "above maxmemory for 2.5 s"),
            ("connected_clients:95", "95 of 100 possible clients are connected"),
            ("blocked_clients:95", "95 of 100 possible clients wait"),
            ("sweeper1:index=other,db=0,status=failing,sweeps=5,failed=2,error=NOPERM no", "other fails: NOPERM no"),
            ("master_link_status:down\nmaster_link_down_since_seconds:70", "1 min 10 s"),
            ("lag_ms:31000", "31.0 s behind"),
            ("slave1:ip=a,port=2,state=online,offset=5,lag=40", "Follower 1"),
            ("lease_ms_left:0", "no lease"),
            ("log_connected:0", "no NATS server"),
            ("log_silent_ms:16000", "nothing of its log"),
            ("members:1", "only server"),
            ("log_findings:one replica", "one replica"),
        ] {
            let wrong = of_info(&info(&format!("{SOUND}{field}\n")), now_ms);
            assert!(wrong.len() == 1 && wrong[0].contains(told), "{field}: {wrong:?}");
        }
    }

    fn index(stamp: i64, only: &[&str], exclude: &[&str]) -> Reply {
        let bulk = |text: &&str| Reply::Bulk(text.as_bytes().to_vec());
        let list = |texts: &[&str]| Reply::List(texts.iter().map(bulk).collect());
        Reply::Map(vec![
            bulk(&"only"),
            list(only),
            bulk(&"exclude"),
            list(exclude),
            bulk(&"stamp"),
            Reply::Integer(stamp),
        ])
    }

    #[test]
    fn records_are_late_only_where_their_time_means_that() {
        let oldest =
            Reply::List(vec![Reply::List(vec![Reply::Bulk(b"job:1".to_vec()), Reply::Number(b"1000".to_vec())])]);
        for (kind, info) in [
            (Kind::Queue, index(0, &["state", "pending", "running"], &[])),
            (Kind::Queue, index(0, &[], &["state", "done", "dead"])),
            (Kind::Queue, index(0, &["state", "running", "dead"], &[])),
            (Kind::Dead, index(0, &["state", "dead"], &[])),
            (Kind::Other, index(0, &["state", "dead", "Done"], &[])),
            (Kind::Other, index(1, &[], &["state", "done"])),
            (Kind::All, index(0, &[], &[])),
        ] {
            assert_eq!(kind_of(&info), kind, "{info:?}");
            let mut found = Found::default();
            of_index("due", &[info, oldest.clone(), Reply::Integer(7), Reply::Integer(9)], 91_000.0, &mut found);
            match kind {
                Kind::Queue => {
                    assert!(found.wrong[0].starts_with("7 records") && found.wrong[0].contains("1 min 30 s"))
                }
                Kind::Dead => assert!(found.wrong[0].contains("9 dead letters")),
                Kind::Other => assert_eq!(found, Found::default()),
                Kind::All => assert!(found.wrong.is_empty() && found.unseen.len() == 1),
            }
        }
        let mut found = Found::default();
        let refused = Reply::Error(b"NOPERM no".to_vec());
        of_index("due", &[refused.clone(), refused.clone(), refused.clone(), refused], 0.0, &mut found);
        assert!(found.wrong.is_empty() && found.unseen[0].contains("NOPERM"), "{found:?}");
    }
}
