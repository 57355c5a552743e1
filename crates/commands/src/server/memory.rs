//! MEMORY: what uses memory. Knows the texts of the report; the figures come from the host and the keyspace.

use execution::args::is_word;
use execution::context::WholeServer;
use execution::context::{ReadCx, ServerCx};
use execution::error::{CommandError, CommandResult};
use execution::host::MemoryUse;
use execution::upkeep;
use keyspace::DATABASES;
use keyspace::footprint;
use keyspace::storage::size_class::DEADLINE_BYTES;
use std::sync::atomic::Ordering::Relaxed;

/// The result of one pass over the shards for a database.
#[derive(Clone, Copy, Default)]
pub(super) struct DbSurvey {
    pub(super) keys: u64,
    pub(super) with_deadline: u64,
    pub(super) with_field_deadlines: u64,
    pub(super) table_bytes: u64,
    pub(super) deadline_bytes: u64,
    left_ms_sum: u128,
}

impl DbSurvey {
    /// The average time to live of keys with a deadline, from a sample.
    pub(super) fn left_ms(&self) -> u64 {
        (self.left_ms_sum / u128::from(self.with_deadline.max(1))) as u64
    }
}

/// Surveys all databases, one shard at a time.
pub(super) fn survey(cx: &ReadCx<'_>) -> [DbSurvey; DATABASES] {
    let mut dbs = [DbSurvey::default(); DATABASES];
    for shard in 0..cx.server().keyspace.shard_count() {
        cx.whole_shard(shard, |shard| {
            for (index, sum) in dbs.iter_mut().enumerate() {
                let db = shard.db(index);
                let deadlines = db.with_deadline() + db.with_field_deadlines();
                let deadline_bytes = deadlines * DEADLINE_BYTES;
                sum.keys += db.len() as u64;
                sum.with_deadline += db.with_deadline() as u64;
                sum.with_field_deadlines += db.with_field_deadlines() as u64;
                sum.table_bytes += (db.overhead_bytes() - deadline_bytes) as u64;
                sum.deadline_bytes += deadline_bytes as u64;
                sum.left_ms_sum += db.time_left_sum(cx.keys.now_ms);
            }
        });
    }
    for index in cx.server().indexes.list().iter() {
        for (db, sum) in dbs.iter_mut().enumerate() {
            sum.table_bytes += index.groups.heap_bytes(db) as u64;
        }
    }
    dbs
}

/// How much memory each part of the server uses.
pub(super) struct Account {
    pub(super) host: MemoryUse,
    pub(super) peak: u64,
    pub(super) startup: u64,
    /// All clients, mostly their buffers.
    pub(super) clients: u64,
    /// The journal's buffers.
    pub(super) journal: u64,
    pub(super) dbs: [DbSurvey; DATABASES],
    pub(super) keys: u64,
    /// Everything except keys and values.
    pub(super) overhead: u64,
    pub(super) dataset: u64,
}

impl Account {
    pub(super) fn new(cx: &ReadCx<'_>) -> Account {
        upkeep::sample(cx.server());
        let (host, dbs) = (cx.server().host.memory(), survey(cx));
        let startup = cx.server().statistics.startup_memory.load(Relaxed);
        let clients = cx.server().clients.all().iter().map(|handle| handle.memory_bytes() as u64).sum();
        let tables: u64 = dbs.iter().map(|db| db.table_bytes + db.deadline_bytes).sum();
        let journal = cx.server().persistence.buffer_bytes();
        let overhead = startup + clients + journal + tables;
        Account {
            peak: cx.server().statistics.peak_memory.load(Relaxed).max(host.used),
            startup,
            clients,
            journal,
            keys: dbs.iter().map(|db| db.keys).sum(),
            dbs,
            overhead,
            dataset: host.used.saturating_sub(overhead),
            host,
        }
    }

    /// The share of keys and values in the memory used since the start.
    pub(super) fn dataset_percent(&self) -> f64 {
        percent(self.dataset, self.host.used.saturating_sub(self.startup))
    }

    pub(super) fn peak_percent(&self) -> f64 {
        percent(self.host.used, self.peak)
    }

    pub(super) fn fragmentation(&self) -> f64 {
        ratio(self.host.resident, self.host.used)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    ratio(part, whole) * 100.0
}

/// `part` divided by `whole`; 0 when `whole` is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// By how much `part` exceeds `whole`.
pub(super) fn excess(part: u64, whole: u64) -> i64 {
    part as i64 - whole as i64
}

pub(super) fn usage(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    // Redis samples five elements by default; zero means all of them.
    let mut samples = 5;
    while let Some(word) = cx.args.try_next() {
        if !is_word(word, "SAMPLES") || cx.args.is_empty() {
            return Err(CommandError::Syntax);
        }
        samples = usize::try_from(cx.args.int()?).map_err(|_| CommandError::Syntax)?;
    }
    let samples = if samples == 0 { usize::MAX } else { samples };
    let bytes = match cx.keys.index_at(key) {
        Some(index) => Some(index.heap_bytes()),
        None => cx.keys.entry(key).map(|entry| footprint::bytes_of(entry, samples)),
    };
    match bytes {
        Some(bytes) => cx.reply.integer(bytes as i64),
        None => cx.reply.null(),
    }
    Ok(())
}

/// One line of MEMORY STATS.
enum Figure {
    Bytes(i64),
    Ratio(f64),
}

pub(super) fn stats(cx: &mut ReadCx<'_>) -> CommandResult {
    use Figure::{Bytes, Ratio};
    let account = Account::new(cx);
    let MemoryUse { used, resident, allocated, active, allocator_resident } = account.host;
    let bytes = |figure: u64| Bytes(figure as i64);
    let before: &[(&str, Figure)] = &[
        ("peak.allocated", bytes(account.peak)),
        ("total.allocated", bytes(used)),
        ("startup.allocated", bytes(account.startup)),
        ("replication.backlog", Bytes(0)),
        ("clients.slaves", Bytes(0)),
        ("clients.normal", bytes(account.clients)),
        ("cluster.links", Bytes(0)),
        ("aof.buffer", bytes(account.journal)),
        ("lua.caches", Bytes(lua::total_bytes() as i64)),
        ("functions.caches", Bytes(0)),
    ];
    let per_key = account.dataset.checked_div(account.keys).unwrap_or(0);
    let after: &[(&str, Figure)] = &[
        ("overhead.total", bytes(account.overhead)),
        ("keys.count", bytes(account.keys)),
        ("keys.bytes-per-key", bytes(per_key)),
        ("dataset.bytes", bytes(account.dataset)),
        ("dataset.percentage", Ratio(account.dataset_percent())),
        ("peak.percentage", Ratio(account.peak_percent())),
        ("allocator.allocated", bytes(allocated)),
        ("allocator.active", bytes(active)),
        ("allocator.resident", bytes(allocator_resident)),
        ("allocator-fragmentation.ratio", Ratio(ratio(active, allocated))),
        ("allocator-fragmentation.bytes", Bytes(excess(active, allocated))),
        ("allocator-rss.ratio", Ratio(ratio(allocator_resident, active))),
        ("allocator-rss.bytes", Bytes(excess(allocator_resident, active))),
        ("rss-overhead.ratio", Ratio(ratio(resident, allocator_resident))),
        ("rss-overhead.bytes", Bytes(excess(resident, allocator_resident))),
        ("fragmentation", Ratio(account.fragmentation())),
        ("fragmentation.bytes", Bytes(excess(resident, used))),
    ];
    let filled = || account.dbs.iter().enumerate().filter(|(_, db)| db.keys > 0);
    cx.reply.map(before.len() + filled().count() + after.len());
    before.iter().for_each(|line| reply_figure(cx, line));
    for (index, db) in filled() {
        cx.reply.bulk(format!("db.{index}").as_bytes());
        cx.reply.map(2);
        cx.reply.bulk(b"overhead.hashtable.main");
        cx.reply.integer(db.table_bytes as i64);
        cx.reply.bulk(b"overhead.hashtable.expires");
        cx.reply.integer(db.deadline_bytes as i64);
    }
    after.iter().for_each(|line| reply_figure(cx, line));
    Ok(())
}

fn reply_figure(cx: &mut ReadCx<'_>, (name, figure): &(&str, Figure)) {
    cx.reply.bulk(name.as_bytes());
    match figure {
        Figure::Bytes(bytes) => cx.reply.integer(*bytes),
        Figure::Ratio(ratio) => cx.reply.double(*ratio),
    }
}

/// With less memory in use than this, the doctor gives no advice.
const DOCTOR_BYTES_MIN: u64 = 5 << 20;

pub(super) fn doctor(cx: &mut ReadCx<'_>) -> CommandResult {
    let account = Account::new(cx);
    let clients = cx.server().clients.len().max(1) as u64;
    let mut findings = Vec::new();
    if account.host.used < DOCTOR_BYTES_MIN {
        findings.push("The server holds next to nothing. Ask again when there is data.".to_owned());
    } else {
        if ratio(account.peak, account.host.used) > 1.5 {
            findings.push(format!(
                "Peak: {} bytes were in use once, {:.1} times as many as now. The allocator may keep the difference; \
                 MEMORY PURGE asks it to give pages back.",
                account.peak,
                ratio(account.peak, account.host.used)
            ));
        }
        if account.fragmentation() > 1.4 && excess(account.host.resident, account.host.used) > 10 << 20 {
            findings.push(format!(
                "Fragmentation: {} bytes are resident for {} in use, {:.2} times as many.",
                account.host.resident,
                account.host.used,
                account.fragmentation()
            ));
        }
        if account.clients / clients > 200 << 10 {
            findings.push(format!(
                "Clients: their buffers take {} bytes on average. CLIENT LIST shows who does not read (omem) or sends \
                 large requests (qbuf).",
                account.clients / clients
            ));
        }
        if findings.is_empty() {
            findings.push("Nothing unusual was found.".to_owned());
        }
    }
    cx.reply.verbatim(&(findings.join("\n") + "\n"));
    Ok(())
}

pub(super) fn malloc_stats(cx: &mut ServerCx<'_>) -> CommandResult {
    let MemoryUse { used, resident, allocated, active, allocator_resident } = cx.engine.host.memory();
    cx.reply.verbatim(&format!(
        "jemalloc\nin use: {used}\nallocated: {allocated}\nactive: {active}\nresident: {allocator_resident}\n\
         process resident: {resident}\n"
    ));
    Ok(())
}

pub(super) fn purge(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.host.purge_memory();
    cx.reply.ok();
    Ok(())
}
