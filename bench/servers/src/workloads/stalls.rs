//! How long one large command keeps every other client waiting: a thread sends PING after PING while the command runs,
//! and the longest wait counts. Knows nothing of why a server makes them wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::data_sets::NOTHING;
use super::workload::{Driver, RowFigures, Workload};
use crate::load::Random;
use crate::measure::{Metric, Sample};
use crate::servers::{Connection, Persistence, Reply, Server, ServerSpec, info, info_field};

/// One command, or what else may stop a server for a while.
struct Row {
    about: &'static str,
    /// What must be there before it. Not measured.
    prepare: fn(&mut Bench) -> Result<()>,
    run: fn(&mut Bench) -> Result<Outcome>,
}

/// What came of a row.
#[derive(PartialEq)]
enum Outcome {
    Done,
    /// The server has no such command.
    Unknown,
}

/// The table, in the order in which it is measured: what only reads comes first.
const ROWS: &[Row] = &[
    row("nothing, for a second", ready, |_| {
        thread::sleep(Duration::from_secs(1));
        Ok(Outcome::Done)
    }),
    row("KEYS, no match", ready, |bench| bench.call(&["KEYS", "nothing:*"])),
    row("KEYS *", ready, |bench| bench.call(&["KEYS", "*"])),
    row("SCAN COUNT 1000000", ready, |bench| bench.call(&["SCAN", "0", "COUNT", "1000000"])),
    row("HGETALL", ready, |bench| bench.call(&["HGETALL", HASH])),
    row("HKEYS", ready, |bench| bench.call(&["HKEYS", HASH])),
    row("HSCAN COUNT 1000000", ready, |bench| bench.call(&["HSCAN", HASH, "0", "COUNT", "1000000"])),
    row("ZRANGE 0 -1", ready, |bench| bench.call(&["ZRANGE", SET, "0", "-1"])),
    row("DUMP, hash", ready, |bench| bench.call(&["DUMP", HASH])),
    row("DUMP, sorted set", ready, |bench| bench.call(&["DUMP", SET])),
    row("COPY, hash", ready, |bench| bench.call(&["COPY", HASH, "copy:hash"])),
    row("COPY, sorted set", ready, |bench| bench.call(&["COPY", SET, "copy:set"])),
    row("RENAME, hash", ready, |bench| bench.call(&["RENAME", "copy:hash", "renamed:hash"])),
    row("RENAME, sorted set", ready, |bench| bench.call(&["RENAME", "copy:set", "renamed:set"])),
    row("UNLINK, hash", ready, |bench| bench.call(&["UNLINK", "renamed:hash"])),
    row("UNLINK, sorted set", ready, |bench| bench.call(&["UNLINK", "renamed:set"])),
    row("DEL, hash", |bench| bench.must(&["COPY", HASH, "copy:hash"]), |bench| bench.call(&["DEL", "copy:hash"])),
    row("DEL, sorted set", |bench| bench.must(&["COPY", SET, "copy:set"]), |bench| bench.call(&["DEL", "copy:set"])),
    row("ZUNIONSTORE", ready, |bench| bench.call(&["ZUNIONSTORE", "union", "1", SET])),
    row("ZREMRANGEBYRANK 0 -1", ready, |bench| bench.call(&["ZREMRANGEBYRANK", "union", "0", "-1"])),
    row("ZRANGESTORE 0 -1", ready, |bench| bench.call(&["ZRANGESTORE", "range", SET, "0", "-1"])),
    row("SWAPDB", |bench| bench.must(&["DEL", "range"]), |bench| bench.call(&["SWAPDB", "0", "1"])),
    row(
        "EVAL, a loop of a second",
        |bench| bench.must(&["SWAPDB", "0", "1"]),
        |bench| bench.call(&["EVAL", LOOP_OF_A_SECOND, "0"]),
    ),
    row("FUNCTION LOAD, 1000 functions", ready, |bench| {
        let library = library();
        bench.call(&["FUNCTION", "LOAD", &library])
    }),
    row("CONFIG RESETSTAT", ready, |bench| bench.call(&["CONFIG", "RESETSTAT"])),
    row("BGSAVE", ready, |bench| bench.call_in_background("BGSAVE", "rdb_bgsave_in_progress")),
    row("SAVE", ready, |bench| bench.call(&["SAVE"])),
    row("BGREWRITEAOF", ready, |bench| bench.call_in_background("BGREWRITEAOF", "aof_rewrite_in_progress")),
    row("DEBUG RELOAD", ready, |bench| bench.call(&["DEBUG", "RELOAD"])),
    row("CLIENT KILL TYPE normal, 5000 clients", Bench::connect_many, |bench| {
        // The connection that asks is left; those that are pinged subscribe, and are of another type.
        bench.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
    }),
    row("5000 connections close", Bench::connect_many, Bench::close_many),
    row("SUBSCRIBE, a tenth as many channels", ready, Bench::subscribe_to_many),
    row("the subscriber closes", ready, Bench::close_many),
    row("IDX.CREATE", ready, |bench| {
        bench.call(&["IDX.CREATE", "idx:new", "PREFIX", "1", "rec:", "FIELD", "updated_at"])
    }),
    row("IDX.INFO", ready, |bench| bench.call(&["IDX.INFO", "idx:new"])),
    row("IDX.DROP", ready, |bench| bench.call(&["IDX.DROP", "idx:new"])),
    row("IDX.RANGE, FILTER without a match", ready, |bench| {
        bench.call(&["IDX.RANGE", INDEX, "-inf", "+inf", "FILTER", "state", "eq", "none"])
    }),
    row("IDX.RANGE, all records", ready, |bench| bench.call(&["IDX.RANGE", INDEX, "-inf", "+inf", "KEYS"])),
    row("CLAIM, no record qualifies", ready, |bench| {
        bench.call(&["CLAIM", "1", INDEX, "WHERE", "state", "1", "none", "SET", "1", "state", "claimed"])
    }),
    row("ZRANGE 0 -1, index", ready, |bench| bench.call_on_index(&["ZRANGE", INDEX, "0", "-1"])),
    row("ZUNION, index", ready, |bench| bench.call_on_index(&["ZUNION", "1", INDEX])),
    row("ZINTERCARD, index", ready, |bench| bench.call_on_index(&["ZINTERCARD", "2", INDEX, INDEX])),
    row("ZRANGESTORE 0 -1, index", ready, |bench| bench.call_on_index(&["ZRANGESTORE", "range", INDEX, "0", "-1"])),
    row(
        "ZUNIONSTORE, index",
        |bench| bench.must(&["DEL", "range"]),
        |bench| bench.call_on_index(&["ZUNIONSTORE", "union", "1", INDEX]),
    ),
    row(
        "HFIND, FILTER without a match, one page",
        |bench| bench.must(&["DEL", "union"]),
        |bench| bench.call(&["HFIND", "rec:", "FILTER", "state", "eq", "none"]),
    ),
    row("SWEEP LIMIT 1000000", ready, |bench| {
        bench.call(&["SWEEP", INDEX, "BEFORE", "9000000000000", "SET", "1", "state", "swept", "LIMIT", "1000000"])
    }),
    row("all records expire at once", Bench::expire_records_soon, Bench::wait_for_expiry),
    row("IDX.RANGE as all records expire", Bench::expire_records_soon, |bench| {
        sleep_until(bench.expiry_ms + 1);
        bench.call(&["IDX.RANGE", INDEX, "-inf", "+inf", "LIMIT", "10"])
    }),
    row("ZCARD, index, as all records expire", Bench::expire_records_soon, |bench| {
        sleep_until(bench.expiry_ms + 1);
        bench.call_on_index(&["ZCARD", INDEX])
    }),
    row("all keys expire at once", Bench::expire_all_soon, Bench::wait_for_expiry),
    row("FLUSHALL ASYNC", Bench::fill, |bench| bench.call(&["FLUSHALL", "ASYNC"])),
    row("FLUSHALL SYNC", Bench::fill, |bench| bench.call(&["FLUSHALL", "SYNC"])),
];

/// The rows about cells, of which the server has nothing else. Those with writers have a control that lasts as long as the fork
/// did: writers alone, on a machine whose cores they share with the pings, make a PING wait at times.
const CELL_ROWS: &[Row] = &[
    row("CELL.LIST, no match, one page", ready, |bench| bench.call(&["CELL.LIST", "PREFIX", "none"])),
    row("CELL.FORK", ready, Bench::fork_cells),
    row("CELL.DROP", ready, |bench| bench.call(&["CELL.DROP", "fork:"])),
    row("CELL.FORK while cells are written", Bench::start_cell_writers, Bench::fork_cells),
    row("CELL.DROP while cells are written", ready, |bench| bench.call(&["CELL.DROP", "fork:"])),
    row("cells are written, as long as in CELL.FORK", ready, Bench::write_as_long),
];

/// The rows about registers, of which the server has nothing else but a snapshot of them. The controls last as long as the restore
/// did.
const REGISTER_ROWS: &[Row] = &[
    row("REG.SNAPSHOT", ready, |bench| bench.call(&["REG.SNAPSHOT"])),
    row("REG.SNAPSHOT, stored", ready, |bench| bench.call(&["REG.SNAPSHOT", "STORE", SNAPSHOT])),
    row("REG.RESTORE", ready, Bench::restore_registers),
    row("nothing, as long as in REG.RESTORE", ready, |bench| {
        if !bench.server.knows("REG.RESTORE")? {
            return Ok(Outcome::Unknown);
        }
        thread::sleep(bench.command_took);
        Ok(Outcome::Done)
    }),
    row("REG.SNAPSHOT while registers are written", Bench::start_register_writers, |bench| {
        bench.call(&["REG.SNAPSHOT"])
    }),
    row("REG.RESTORE while registers are written", ready, Bench::restore_registers),
    row("registers are written, as long as in REG.RESTORE", ready, Bench::write_as_long),
];

/// The rows about lists, streams and sets: one large value of each, and copies of it for what changes or removes it.
const SEQUENCE_ROWS: &[Row] = &[
    row("nothing, for a second, beside lists", ready, |_| {
        thread::sleep(Duration::from_secs(1));
        Ok(Outcome::Done)
    }),
    row("LRANGE 0 -1", ready, |bench| bench.call(&["LRANGE", LIST, "0", "-1"])),
    row("LPOS, no match", ready, |bench| bench.call(&["LPOS", LIST, "none"])),
    row("LINDEX in the middle", ready, |bench| bench.call(&["LINDEX", LIST, &bench.middle()])),
    row("LSET in the middle", ready, |bench| bench.call(&["LSET", LIST, &bench.middle(), "another"])),
    row("LINSERT in the middle", ready, |bench| {
        bench.call(&["LINSERT", LIST, "BEFORE", &element((bench.keys / 2) | 1), "another"])
    }),
    row("LREM, no match", ready, |bench| bench.call(&["LREM", LIST, "0", "none"])),
    row("DUMP, list", ready, |bench| bench.call(&["DUMP", LIST])),
    row("COPY, list", ready, |bench| bench.call(&["COPY", LIST, "copy:list"])),
    row("LREM, every second element", ready, |bench| bench.call(&["LREM", "copy:list", "0", EVEN])),
    row("LTRIM, the middle stays", Bench::copy_list, |bench| {
        bench.call(&["LTRIM", "copy:list", &bench.middle(), &bench.middle()])
    }),
    row("LPOP, all elements", Bench::copy_list, |bench| bench.call(&["LPOP", "copy:list", &bench.keys.to_string()])),
    row("UNLINK, list", Bench::copy_list, |bench| bench.call(&["UNLINK", "copy:list"])),
    row("DEL, list", Bench::copy_list, |bench| bench.call(&["DEL", "copy:list"])),
    row("SORT LIMIT 0 10", ready, |bench| bench.call(&["SORT", NUMBERS, "LIMIT", "0", "10"])),
    row("SORT", ready, |bench| bench.call(&["SORT", NUMBERS])),
    row("SORT ALPHA STORE", ready, |bench| bench.call(&["SORT", NUMBERS, "ALPHA", "STORE", "sorted"])),
    row("XRANGE - +", |bench| bench.must(&["DEL", "sorted"]), |bench| bench.call(&["XRANGE", STREAM, "-", "+"])),
    row("XREAD, all entries", ready, |bench| bench.call(&["XREAD", "STREAMS", STREAM, "0"])),
    row("DUMP, stream", ready, |bench| bench.call(&["DUMP", STREAM])),
    row("COPY, stream", ready, |bench| bench.call(&["COPY", STREAM, "copy:stream"])),
    row("XTRIM MAXLEN, half", ready, |bench| bench.call(&["XTRIM", "copy:stream", "MAXLEN", &bench.middle()])),
    row("XTRIM MAXLEN 0", Bench::copy_stream, |bench| bench.call(&["XTRIM", "copy:stream", "MAXLEN", "0"])),
    row("UNLINK, stream", Bench::copy_stream, |bench| bench.call(&["UNLINK", "copy:stream"])),
    row("DEL, stream", Bench::copy_stream, |bench| bench.call(&["DEL", "copy:stream"])),
    row(
        "XREADGROUP, all entries",
        |bench| bench.must(&["XGROUP", "CREATE", STREAM, "group", "0"]),
        |bench| bench.call(&["XREADGROUP", "GROUP", "group", "consumer", "STREAMS", STREAM, ">"]),
    ),
    row("XPENDING, all entries", ready, |bench| bench.call(&["XPENDING", STREAM, "group"])),
    row("XAUTOCLAIM COUNT 1000000", ready, |bench| {
        bench.call(&["XAUTOCLAIM", STREAM, "group", "other", "0", "0", "COUNT", "1000000", "JUSTID"])
    }),
    row("XGROUP DESTROY, all entries pending", ready, |bench| bench.call(&["XGROUP", "DESTROY", STREAM, "group"])),
    row("SMEMBERS", ready, |bench| bench.call(&["SMEMBERS", MEMBERS])),
    row("SINTERSTORE", ready, |bench| bench.call(&["SINTERSTORE", "inter", MEMBERS, MEMBERS])),
    row("DEL, set", ready, |bench| bench.call(&["DEL", "inter"])),
];

const LIST: &str = "large:list";
const NUMBERS: &str = "large:numbers";
const STREAM: &str = "large:stream";
const MEMBERS: &str = "large:members";

/// Every second element of the list.
const EVEN: &str = "an element that is there often..";

/// An element of the list, of 32 bytes.
fn element(number: u64) -> String {
    if number.is_multiple_of(2) { EVEN.into() } else { format!("element:{number:024}") }
}

const SNAPSHOT: &str = "snapshot";

const fn row(
    about: &'static str,
    prepare: fn(&mut Bench) -> Result<()>,
    run: fn(&mut Bench) -> Result<Outcome>,
) -> Row {
    Row { about, prepare, run }
}

/// For rows that find all they need.
fn ready(_: &mut Bench) -> Result<()> {
    Ok(())
}

const HASH: &str = "large:hash";
const SET: &str = "large:set";
const INDEX: &str = "idx:updated_at";
const CLIENTS: usize = 5_000;

/// A second of the server's processor time: TIME stands still within a script.
const LOOP_OF_A_SECOND: &str =
    "local began = os.clock() repeat for i = 1, 10000 do end until os.clock() - began > 1 return 1";

fn library() -> String {
    let functions = (0..1_000).map(|i| format!("redis.register_function('f{i}', function(keys) return keys[1] end)\n"));
    format!("#!lua name=many\n{}", functions.collect::<String>())
}

/// Runs the rows on a server with all kinds of keys.
fn stalls(spec: &ServerSpec, keys: u64) -> Result<Vec<RowFigures>> {
    measured(spec, keys, ROWS, Bench::fill)
}

/// Runs the rows about cells on a server with cells alone.
fn cell_stalls(spec: &ServerSpec, cells: u64) -> Result<Vec<RowFigures>> {
    measured(spec, cells, CELL_ROWS, Bench::fill_cells)
}

/// Runs the rows about registers on a server with registers alone.
fn register_stalls(spec: &ServerSpec, registers: u64) -> Result<Vec<RowFigures>> {
    measured(spec, registers, REGISTER_ROWS, Bench::fill_registers)
}

/// Runs the rows about lists, streams and sets on a server with one large value of each.
fn sequence_stalls(spec: &ServerSpec, elements: u64) -> Result<Vec<RowFigures>> {
    measured(spec, elements, SEQUENCE_ROWS, Bench::fill_sequences)
}

/// Runs rows on a server of their own, and tells the figures of those that it knows.
fn measured(spec: &ServerSpec, keys: u64, rows: &[Row], fill: fn(&mut Bench) -> Result<()>) -> Result<Vec<RowFigures>> {
    // Redis and Holdfast alike refuse DEBUG unless they are configured to allow it.
    let spec = ServerSpec::new(&spec.name, &format!("{} --enable-debug-command yes", spec.command))?;
    let server = Server::start(&spec, Persistence::EverySecond)?;
    let mut bench = Bench {
        connection: server.connect()?,
        server,
        keys,
        crowd: Vec::new(),
        expiry_ms: 0,
        left_after: 0,
        writers: Vec::new(),
        command_took: Duration::ZERO,
    };
    fill(&mut bench)?;
    let mut figures = Vec::new();
    for row in rows {
        let sample = bench.measure(row).with_context(|| format!("`{}`", row.about))?;
        figures.push((row.about, sample));
    }
    Ok(figures)
}

struct Bench {
    server: Server,
    connection: Connection,
    /// Keys, and elements of the large values.
    keys: u64,
    /// Connections that do nothing.
    crowd: Vec<Connection>,
    /// When the keys with a deadline expire.
    expiry_ms: u64,
    /// How many keys are there then.
    left_after: i64,
    /// Clients that write.
    writers: Vec<Writer>,
    /// How long the command took for which the next control is.
    command_took: Duration,
}

impl Bench {
    fn measure(&mut self, row: &Row) -> Result<Option<Sample>> {
        (row.prepare)(self)?;
        thread::sleep(SETTLE);
        let pings = Pings::start(self.server.port)?;
        let started = Instant::now();
        let outcome = (row.run)(self)?;
        let took = started.elapsed();
        // What a command leaves to other threads may still be in the way.
        thread::sleep(SETTLE);
        let longest = pings.stop()?;
        if outcome == Outcome::Unknown {
            return Ok(None);
        }
        Ok(Some(Sample::from([
            (Metric::LatencyMax, longest.as_secs_f64() * 1e3),
            (Metric::CommandTime, took.as_secs_f64() * 1e3),
        ])))
    }

    /// Half of the keys records, half strings; and two large values.
    fn fill(&mut self) -> Result<()> {
        self.must(&["FLUSHALL"])?;
        for number in 0..self.keys / 2 {
            let (record, string, value) = (format!("rec:{number}"), format!("str:{number}"), format!("value {number}"));
            let updated_at = (1_700_000_000_000 + number).to_string();
            self.connection.push(&["HSET", &record, "state", "done", "updated_at", &updated_at, "worker", "w1"]);
            self.connection.push(&["SET", &string, &value]);
            self.exchange_if_full(2 * (number + 1))?;
        }
        for number in 0..self.keys {
            let (field, score) = (format!("field:{number}"), number.to_string());
            self.connection.push(&["HSET", HASH, &field, &score]);
            self.connection.push(&["ZADD", SET, &score, &field]);
            self.exchange_if_full(2 * (number + 1))?;
        }
        self.exchange(2 * self.keys % BATCH)
    }

    /// As many cells as there are keys, where the server has cells.
    fn fill_cells(&mut self) -> Result<()> {
        if !self.server.knows("CELL.SET")? {
            return Ok(());
        }
        for number in 0..self.keys {
            self.connection.push(&["CELL.SET", &format!("cell:{number}"), &format!("value {number}")]);
            self.exchange_if_full(number + 1)?;
        }
        self.exchange(self.keys % BATCH)
    }

    /// As many registers as there are keys, where the server has registers.
    fn fill_registers(&mut self) -> Result<()> {
        if !self.server.knows("REG.PUT")? {
            return Ok(());
        }
        for number in 0..self.keys {
            self.connection.push(&["REG.PUT", &format!("reg:{number}"), "1", &format!("value {number}")]);
            self.exchange_if_full(number + 1)?;
        }
        self.exchange(self.keys % BATCH)
    }

    /// Values with as many elements as there are keys elsewhere.
    fn fill_sequences(&mut self) -> Result<()> {
        let mut random = Random(1);
        for number in 0..self.keys {
            let (value, unsorted) = (format!("value {number}"), random.below(1 << 40).to_string());
            self.connection.push(&["RPUSH", LIST, &element(number)]);
            self.connection.push(&["RPUSH", NUMBERS, &unsorted]);
            self.connection
                .push(&["XADD", STREAM, "*", "state", "done", "worker", "w1", "attempt", "1", "text", &value]);
            self.connection.push(&["SADD", MEMBERS, &value]);
            if (number + 1).is_multiple_of(BATCH) {
                self.exchange(4 * BATCH)?;
            }
        }
        self.exchange(4 * (self.keys % BATCH))
    }

    fn middle(&self) -> String {
        (self.keys / 2).to_string()
    }

    fn copy_list(&mut self) -> Result<()> {
        self.must(&["COPY", LIST, "copy:list", "REPLACE"])
    }

    fn copy_stream(&mut self) -> Result<()> {
        self.must(&["COPY", STREAM, "copy:stream", "REPLACE"])
    }

    fn fork_cells(&mut self) -> Result<Outcome> {
        self.call_timed(&["CELL.FORK", "cell:", "fork:"])
    }

    fn restore_registers(&mut self) -> Result<Outcome> {
        self.call_timed(&["REG.RESTORE", "FROM", SNAPSHOT])
    }

    fn call_timed(&mut self, request: &[&str]) -> Result<Outcome> {
        let started = Instant::now();
        let outcome = self.call(request);
        self.command_took = started.elapsed();
        outcome
    }

    fn start_cell_writers(&mut self) -> Result<()> {
        self.start_writers("CELL.SET", |random, cells, connection| {
            connection.push(&["CELL.SET", &format!("cell:{}", random.below(cells)), "another value"]);
        })
    }

    /// A random version is newer or older than what is there.
    fn start_register_writers(&mut self) -> Result<()> {
        self.start_writers("REG.PUT", |random, registers, connection| {
            let (name, version) = (format!("reg:{}", random.below(registers)), random.below(1 << 40).to_string());
            connection.push(&["REG.PUT", &name, &version, "another value"]);
        })
    }

    /// Where the server has the command.
    fn start_writers(&mut self, command: &str, write: Write) -> Result<()> {
        if self.server.knows(command)? {
            let writer = |number| Writer::start(self.server.port, number, self.keys, write);
            self.writers = (0..WRITERS).map(writer).collect::<Result<_>>()?;
        }
        Ok(())
    }

    /// The control of a row with writers.
    fn write_as_long(&mut self) -> Result<Outcome> {
        if self.writers.is_empty() {
            return Ok(Outcome::Unknown);
        }
        thread::sleep(self.command_took);
        self.writers.drain(..).try_for_each(Writer::stop)?;
        Ok(Outcome::Done)
    }

    fn exchange_if_full(&mut self, sent: u64) -> Result<()> {
        if sent.is_multiple_of(BATCH) { self.exchange(BATCH) } else { Ok(()) }
    }

    fn exchange(&mut self, requests: u64) -> Result<()> {
        self.connection.flush()?;
        for _ in 0..requests {
            if let Reply::Error(error) = self.connection.read_reply()? {
                bail!("while loading: {error}");
            }
        }
        Ok(())
    }

    fn must(&mut self, request: &[&str]) -> Result<()> {
        match self.connection.call(request)? {
            Reply::Error(error) => bail!("{}: {error}", request.join(" ")),
            _ => Ok(()),
        }
    }

    /// Sends one request and reads its reply without keeping it: that would take longer than sending it takes the server.
    fn call(&mut self, request: &[&str]) -> Result<Outcome> {
        self.connection.push(request);
        self.connection.flush()?;
        match self.connection.skip_reply()? {
            None => Ok(Outcome::Done),
            Some(error) if error.starts_with("ERR unknown command") => Ok(Outcome::Unknown),
            Some(error) => bail!("{error}"),
        }
    }

    /// Sends a request about an index to a server that has one.
    fn call_on_index(&mut self, request: &[&str]) -> Result<Outcome> {
        match self.call(&["IDX.INFO", INDEX])? {
            Outcome::Unknown => Ok(Outcome::Unknown),
            Outcome::Done => self.call(request),
        }
    }

    /// Waits until INFO says that it is done.
    fn call_in_background(&mut self, command: &str, field: &str) -> Result<Outcome> {
        self.must(&[command])?;
        loop {
            thread::sleep(LOOK_AGAIN);
            let info = info(&mut self.connection, "persistence")?;
            if info_field(&info, field) == Some("0") {
                return Ok(Outcome::Done);
            }
        }
    }

    fn connect_many(&mut self) -> Result<()> {
        self.crowd.clear();
        for number in 0..CLIENTS {
            let connection = self.server.connect();
            self.crowd.push(connection.with_context(|| format!("connection {number} (is `ulimit -n` low?)"))?);
        }
        // The server has accepted the last of them when it replies.
        self.crowd.last_mut().map_or(Ok(()), |last| last.call(&["PING"]).map(drop))
    }

    fn close_many(&mut self) -> Result<Outcome> {
        self.crowd.clear();
        loop {
            let info = info(&mut self.connection, "clients")?;
            let clients: u64 = info_field(&info, "connected_clients").and_then(|count| count.parse().ok()).unwrap_or(0);
            // This connection and the one that is pinged.
            if clients <= 2 {
                return Ok(Outcome::Done);
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn subscribe_to_many(&mut self) -> Result<Outcome> {
        let mut subscriber = self.server.connect()?;
        let channels: Vec<_> = (0..self.keys / 10).map(|number| format!("channel:{number}")).collect();
        let request: Vec<_> = std::iter::once("SUBSCRIBE").chain(channels.iter().map(String::as_str)).collect();
        subscriber.push(&request);
        subscriber.flush()?;
        for _ in &channels {
            subscriber.skip_reply()?;
        }
        self.crowd = vec![subscriber];
        Ok(Outcome::Done)
    }

    fn expire_records_soon(&mut self) -> Result<()> {
        self.fill()?;
        let records = (0..self.keys / 2).map(|number| format!("rec:{number}"));
        self.expire_soon(records.collect())
    }

    fn expire_all_soon(&mut self) -> Result<()> {
        self.fill()?;
        let kinds = (0..self.keys / 2).flat_map(|number| [format!("rec:{number}"), format!("str:{number}")]);
        self.expire_soon(kinds.collect())
    }

    /// Gives all of these keys the same deadline.
    fn expire_soon(&mut self, keys: Vec<String>) -> Result<()> {
        // Long enough to tell the server of all.
        self.expiry_ms = now_ms() + 2_000 + keys.len() as u64 / 25;
        let deadline = self.expiry_ms.to_string();
        for keys in keys.chunks(BATCH as usize) {
            keys.iter().for_each(|key| self.connection.push(&["PEXPIREAT", key, &deadline]));
            self.exchange(keys.len() as u64)?;
        }
        ensure!(now_ms() < self.expiry_ms, "the keys expired before all of them had a deadline");
        self.left_after = self.size()? - keys.len() as i64;
        // The rest of the wait falls into what is measured.
        sleep_until(self.expiry_ms - 2 * SETTLE.as_millis() as u64);
        Ok(())
    }

    /// Until the server has removed what has expired.
    fn wait_for_expiry(&mut self) -> Result<Outcome> {
        sleep_until(self.expiry_ms + 1);
        let started = Instant::now();
        while self.size()? > self.left_after {
            ensure!(started.elapsed() < EXPIRY_MAX, "expired keys are still there after {EXPIRY_MAX:?}");
            thread::sleep(LOOK_AGAIN);
        }
        Ok(Outcome::Done)
    }

    fn size(&mut self) -> Result<i64> {
        match self.connection.call(&["DBSIZE"])? {
            Reply::Integer(size) => Ok(size),
            other => bail!("DBSIZE was answered with {other:?}"),
        }
    }
}

/// Requests that are sent before their replies are read.
const BATCH: u64 = 1_000;
/// Before and after each row.
const SETTLE: Duration = Duration::from_millis(250);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const EXPIRY_MAX: Duration = Duration::from_secs(120);

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

fn sleep_until(unix_ms: u64) {
    thread::sleep(Duration::from_millis(unix_ms.saturating_sub(now_ms())));
}

/// PING after PING on a connection of its own.
struct Pings {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<()>>,
}

#[derive(Default)]
struct Shared {
    stopped: AtomicBool,
    longest_ns: AtomicU64,
}

impl Pings {
    fn start(port: u16) -> Result<Pings> {
        let mut connection = Connection::open(port).context("cannot connect the one that is pinged")?;
        // A subscriber may PING, and is none of those that CLIENT KILL TYPE normal ends.
        connection.call(&["SUBSCRIBE", "nothing"])?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || ping(&mut connection, &of_thread));
        Ok(Pings { shared, thread })
    }

    /// The longest wait, the one that is still under way included.
    fn stop(self) -> Result<Duration> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(done) => done?,
            Err(_) => bail!("the thread that pings panicked"),
        }
        Ok(Duration::from_nanos(self.shared.longest_ns.load(Ordering::Relaxed)))
    }
}

fn ping(connection: &mut Connection, shared: &Shared) -> Result<()> {
    while !shared.stopped.load(Ordering::Relaxed) {
        let asked = Instant::now();
        // An error, such as that the server is loading, is no reply yet.
        while let Reply::Error(_) = connection.call(&["PING"])? {
            thread::sleep(Duration::from_millis(1));
        }
        shared.longest_ns.fetch_max(asked.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Sends one write to a random one of so many keys.
type Write = fn(&mut Random, u64, &mut Connection);

/// Writes to random keys, a pipeline after the other.
struct Writer {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Writer {
    fn start(port: u16, number: u64, keys: u64, write: Write) -> Result<Writer> {
        let mut connection = Connection::open(port).context("cannot connect a writer")?;
        let stopped = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stopped);
        let mut random = Random(number);
        let thread = thread::spawn(move || {
            while !of_thread.load(Ordering::Relaxed) {
                for _ in 0..WRITES_IN_FLIGHT {
                    write(&mut random, keys, &mut connection);
                }
                connection.flush()?;
                for _ in 0..WRITES_IN_FLIGHT {
                    if let Reply::Error(error) = connection.read_reply()? {
                        bail!("a write was refused: {error}");
                    }
                }
            }
            Ok(())
        });
        Ok(Writer { stopped, thread })
    }

    fn stop(self) -> Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| bail!("a thread that writes panicked"))
    }
}

const WRITERS: u64 = 2;
const WRITES_IN_FLIGHT: usize = 16;

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "stalls",
        about: "Large commands",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Rows { run: stalls, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[],
    },
    Workload {
        name: "stalls-cells",
        about: "Forks of cells",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Rows { run: cell_stalls, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[],
    },
    Workload {
        name: "stalls-registers",
        about: "Snapshots of registers",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Rows { run: register_stalls, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[],
    },
    Workload {
        name: "stalls-sequences",
        about: "Large lists, streams and sets",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Rows { run: sequence_stalls, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own() {
        let rows: Vec<_> = ROWS.iter().chain(CELL_ROWS).chain(REGISTER_ROWS).chain(SEQUENCE_ROWS).collect();
        for (i, row) in rows.iter().enumerate() {
            assert!(rows[..i].iter().all(|other| other.about != row.about), "{}", row.about);
        }
    }
}
