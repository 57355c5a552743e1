//! The commands of the binary beside the server itself: look at a data directory, write it out, bring another server's
//! data in. Knows the command line; the work is done by `load`, `import` and the engine.

use crate::config::{Loaded, Tool};
use crate::keeper::Keeper;
use crate::log::{self, LogLevelHandle};
use crate::tables::ConfiguredIndexes;
use crate::{import, load, server};
use anyhow::{Context, Result};
use engine::{Engine, Settings};
use journal::{Directory, DirectoryLock, Recovery};
use keyspace::db::Db;
use keyspace::{DATABASES, Entry, ValueType};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a tool.
pub(crate) fn run(tool: Tool, loaded: &Loaded) -> Result<()> {
    let log_level = log::start(loaded.settings.loglevel(), loaded.settings.log_as_json());
    match tool {
        Tool::Check { dir } => check(&dir, log_level),
        Tool::Export { dir, output } => export(&dir, output.as_deref(), log_level),
        Tool::Import { file, dir, skip_unsupported } => import_into(&file, &dir, skip_unsupported, log_level),
    }
}

/// A data directory in memory, with nothing that would change it.
struct Opened {
    engine: Arc<Engine>,
    recovery: Recovery,
    _lock: DirectoryLock,
}

fn open(dir: &Path, log_level: LogLevelHandle) -> Result<Opened> {
    let storage = Directory::open(dir).with_context(|| format!("cannot open the directory {}", dir.display()))?;
    // Shared, and so without a file of its own: the directory may be one that cannot be written.
    let lock = DirectoryLock::acquire_shared(dir)?;
    let (engine, keeper) = offline(dir, storage, log_level)?;
    let recovery = Recovery::open(keeper.storage.clone())?;
    let (recovery, _) = load::replay(recovery, &engine, |_| {})?;
    Ok(Opened { engine, recovery, _lock: lock })
}

/// An engine without workers.
fn offline(dir: &Path, storage: Directory, log_level: LogLevelHandle) -> Result<(Arc<Engine>, Arc<Keeper>)> {
    let settings = Settings::new();
    let path = dir.to_str().context("the directory's name is not UTF-8")?;
    for (name, value) in [("dir", path), ("appendonly", "no"), ("save", "")] {
        settings.load(name.as_bytes(), value.as_bytes()).map_err(anyhow::Error::msg)?;
    }
    let settings = Arc::new(settings);
    let keeper = Arc::new(Keeper::new(settings.clone(), Arc::new(storage), 1, server::unix_s()));
    let (stop, _) = tokio::sync::watch::channel(None);
    Ok((server::engine(&settings, (None, Vec::new()), 1, log_level, stop, &keeper, None), keeper))
}

/// Reads everything in a data directory, and says what it holds.
fn check(dir: &Path, log_level: LogLevelHandle) -> Result<()> {
    let Opened { engine, recovery, .. } = open(dir, log_level)?;
    let mut out = std::io::stdout().lock();
    match recovery.snapshot() {
        Some(snapshot) => writeln!(
            out,
            "snapshot {}: {} keys in {} parts, {} bytes, complete up to batch {} at least",
            snapshot.file, snapshot.entries, snapshot.parts, snapshot.bytes, snapshot.min
        )?,
        None => writeln!(out, "no snapshot")?,
    }
    let bytes = recovery.progress().bytes_total;
    writeln!(out, "{bytes} bytes to read at a start, up to batch {}", recovery.reached())?;
    for (db, kinds) in census(&engine) {
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(out, "database {db}: {}", kinds.join(", "))?;
    }
    for warning in recovery.warnings() {
        writeln!(out, "note: {warning}")?;
    }
    writeln!(out, "all of it is sound")?;
    Ok(())
}

/// How many keys of each type each database has.
fn census(engine: &Engine) -> BTreeMap<usize, BTreeMap<&'static str, u64>> {
    let mut census: BTreeMap<usize, BTreeMap<&'static str, u64>> = BTreeMap::new();
    walk(engine, now_ms(engine), |db, _, entry| {
        *census.entry(db).or_default().entry(ValueType::of(entry).name).or_default() += 1;
        Ok(())
    })
    .expect("counting does not fail");
    census
}

fn now_ms(engine: &Engine) -> u64 {
    engine.clock.unix_us() / 1000
}

/// Shows every key that has not expired to `visit`: the number of its database, where it is kept, and its entry.
fn walk(engine: &Engine, now_ms: u64, mut visit: impl FnMut(usize, &Db, &Entry) -> Result<()>) -> Result<()> {
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

/// Writes a data directory as requests that `redis-cli --pipe` can send to any server.
fn export(dir: &Path, output: Option<&Path>, log_level: LogLevelHandle) -> Result<()> {
    let Opened { engine, .. } = open(dir, log_level)?;
    let sink: Box<dyn Write> = match output {
        Some(path) => {
            Box::new(File::create(path).with_context(|| format!("cannot create the file {}", path.display()))?)
        }
        None => Box::new(std::io::stdout().lock()),
    };
    let mut out = BufWriter::with_capacity(1024 * 1024, sink);
    for library in engine.functions.catalogue().libraries() {
        request(&mut out, &[b"FUNCTION", b"LOAD", b"REPLACE", &library.code])?;
    }
    let (mut selected, now_ms) = (None, now_ms(&engine));
    walk(&engine, now_ms, |db, db_part, entry| {
        if selected.replace(db) != Some(db) {
            request(&mut out, &[b"SELECT", db.to_string().as_bytes()])?;
        }
        let (name, value) = (entry.name(), db_part.to_redis(entry, now_ms));
        formats::commands_for(name, &value, |args| request(&mut out, args))?;
        if let Some(deadline) = entry.deadline() {
            request(&mut out, &[b"PEXPIREAT", name, deadline.to_string().as_bytes()])?;
        }
        Ok(())
    })?;
    out.flush()?;
    Ok(())
}

fn request(out: &mut impl Write, args: &[&[u8]]) -> Result<()> {
    write!(out, "*{}\r\n", args.len())?;
    for arg in args {
        write!(out, "${}\r\n", arg.len())?;
        out.write_all(arg)?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// An import went well but for what it could not take. A program that calls it learns that from the exit code.
#[derive(Debug)]
pub(crate) struct LeftOut(PathBuf);

impl LeftOut {
    pub(crate) const EXIT_CODE: u8 = 3;
}

impl std::error::Error for LeftOut {}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.0.display();
        write!(
            f,
            "not all of {file} could be imported: see above for what was left out. The rest is in the data directory. If that is \
             as it should be, --skip-unsupported says so"
        )
    }
}

/// Reads a file of Redis's into a data directory, beside what that holds.
fn import_into(file: &Path, dir: &Path, skip_unsupported: bool, log_level: LogLevelHandle) -> Result<()> {
    let storage = Directory::create(dir).with_context(|| format!("cannot create the directory {}", dir.display()))?;
    let _lock = DirectoryLock::acquire(dir)?;
    let (engine, keeper) = offline(dir, storage, log_level)?;
    load::load(&keeper, &engine, &ConfiguredIndexes::none(), &[])?;
    let report = import::with_progress_bar(&engine, file)?;
    keeper.snapshots.take_now().map_err(anyhow::Error::msg).context("what was read could not be written")?;
    keeper.close().map_err(anyhow::Error::msg)?;
    println!("{report}");
    if report.has_left_something_out() && !skip_unsupported {
        return Err(LeftOut(file.to_owned()).into());
    }
    Ok(())
}
