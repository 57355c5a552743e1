//! The subcommands: check a data directory, import another server's files. Knows the command line; the work
//! is done by `durability`, `import` and the engine.

use super::import;
use super::next_step::with_next_step;
use crate::config::{ConfiguredIndexes, DataTool, Loaded};
use crate::durability::{self, Indexes, Keeper};
use crate::platform::clock::SystemClock;
use crate::platform::clock::unix_s;
use crate::platform::logging::{self, LogLevelHandle};
use crate::startup;
use anyhow::{Context, Result};
use engine::{Engine, Settings};
use journal::{LogPlace, Reading};
use keyspace::db::Db;
use keyspace::{DATABASES, Entry, ValueType};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Runs a tool.
pub(super) fn run(tool: DataTool, loaded: &Loaded) -> Result<()> {
    let log_level = logging::start(loaded.settings.loglevel(), loaded.settings.log_as_json());
    match tool {
        DataTool::Check { dir } => check(&dir, log_level).map_err(|error| with_next_step(error, &dir)),
        DataTool::Import { file, dir, skip_unsupported } => import_into(&file, &dir, skip_unsupported, log_level),
    }
}

/// A data directory in memory, with nothing that would change it.
pub(super) struct Opened {
    pub(super) engine: Arc<Engine>,
    history: Box<dyn Reading>,
    _place: Arc<dyn LogPlace>,
}

/// On how many threads the journal is read.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn open(dir: &Path, log_level: LogLevelHandle) -> Result<Opened> {
    let place = durability::shared_directory(dir)?;
    let (engine, _) = offline(dir, log_level)?;
    let mut history = place.read()?;
    durability::replay(&mut *history, &engine, threads(), |_| {})?;
    durability::undo_forks(&engine);
    durability::finish_restores(&engine);
    Ok(Opened { engine, history, _place: place })
}

/// An engine without workers.
fn offline(dir: &Path, log_level: LogLevelHandle) -> Result<(Arc<Engine>, Arc<Keeper>)> {
    let settings = Settings::new();
    let path = dir.to_str().context("the directory's name is not UTF-8")?;
    for (name, value) in [("dir", path), ("appendonly", "no"), ("save", "")] {
        settings.load(name.as_bytes(), value.as_bytes()).map_err(anyhow::Error::msg)?;
    }
    let settings = Arc::new(settings);
    let keeper = Arc::new(Keeper::new(settings.clone(), 1, unix_s()));
    let (stop, _) = tokio::sync::watch::channel(None);
    let clock = Arc::new(SystemClock::new());
    Ok((startup::engine((&settings, clock), (None, Vec::new()), 1, log_level, stop, &keeper, None), keeper))
}

/// Reads everything in a data directory, and says what it holds.
pub(super) fn check(dir: &Path, log_level: LogLevelHandle) -> Result<()> {
    durability::check_shared_files(dir)?;
    let Opened { engine, history, .. } = open(dir, log_level)?;
    let mut out = std::io::stdout().lock();
    match history.snapshot() {
        Some(snapshot) => writeln!(
            out,
            "snapshot {}: {} keys in {} parts, {} bytes, complete up to batch {} at least",
            snapshot.name, snapshot.entries, snapshot.parts, snapshot.bytes, snapshot.min
        )?,
        None => writeln!(out, "no snapshot")?,
    }
    let bytes = history.progress().bytes_total;
    writeln!(out, "{bytes} bytes to read at a start, up to batch {}", history.reached())?;
    for (db, kinds) in census(&engine) {
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(out, "database {db}: {}", kinds.join(", "))?;
    }
    for warning in history.warnings() {
        writeln!(out, "note: {warning}")?;
    }
    writeln!(out, "all of it is sound")?;
    Ok(())
}

/// How many keys of each type each database has.
fn census(engine: &Engine) -> BTreeMap<usize, BTreeMap<&'static str, u64>> {
    let mut census: BTreeMap<usize, BTreeMap<&'static str, u64>> = BTreeMap::new();
    walk(engine, |db, _, entry| {
        *census.entry(db).or_default().entry(ValueType::of(entry).name).or_default() += 1;
        Ok(())
    })
    .expect("counting does not fail");
    census
}

/// Calls `visit` with every key: the number of its database, its part of that, its entry.
pub(super) fn walk(engine: &Engine, mut visit: impl FnMut(usize, &Db, &Entry) -> Result<()>) -> Result<()> {
    let now_ms = engine.clock.unix_us() / 1000;
    let all = engine.keyspace.lock_all();
    for db in 0..DATABASES {
        for (_, shard) in all.shards() {
            let db_part = shard.db(db);
            for entry in db_part.iter(now_ms) {
                visit(db, db_part, entry)?;
            }
        }
    }
    Ok(())
}

/// An import or export that left something out. Its exit code says so to programs.
#[derive(Debug)]
pub(crate) struct LeftOut(String);

impl LeftOut {
    pub(crate) const EXIT_CODE: u8 = 3;

    fn by_import(file: &Path) -> LeftOut {
        LeftOut(format!(
            "not all of {} could be imported: see above for what was left out. The rest is in the data directory. If that is \
             as it should be, --skip-unsupported says so",
            file.display()
        ))
    }

    pub(super) fn by_following(source: &impl std::fmt::Display) -> LeftOut {
        LeftOut(format!(
            "not all of {source} could be brought in: see above for what was left out. The rest is there. If that is as it should \
             be, --skip-unsupported says so"
        ))
    }

    pub(super) fn by_conversion(file: &Path, converted: usize, left_out: usize) -> LeftOut {
        LeftOut(format!(
            "{left_out} directives of {} have no counterpart, or not wholly: the end of the output names them. {converted} are \
             converted",
            file.display()
        ))
    }

    pub(super) fn by_export(dir: &Path) -> LeftOut {
        LeftOut(format!("not all of {} could be exported: see above for what was left out", dir.display()))
    }
}

impl std::error::Error for LeftOut {}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a file of Redis's into a data directory, beside what that holds.
fn import_into(file: &Path, dir: &Path, skip_unsupported: bool, log_level: LogLevelHandle) -> Result<()> {
    let place = durability::own_directory(dir)?;
    let (engine, keeper) = offline(dir, log_level)?;
    let indexes = Indexes { configured: ConfiguredIndexes::none(), swept: Vec::new() };
    durability::load(&*place, &keeper, &engine, &indexes, threads())?;
    let report = import::with_progress_bar(&engine, file)?;
    keeper.snapshots.take_now().map_err(anyhow::Error::msg).context("what was read could not be written")?;
    keeper.close().map_err(anyhow::Error::msg)?;
    println!("{report}");
    if report.has_left_something_out() && !skip_unsupported {
        return Err(LeftOut::by_import(file).into());
    }
    Ok(())
}
