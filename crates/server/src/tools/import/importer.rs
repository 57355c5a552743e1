//! Brings the keys of a Redis server in, out of its RDB or append-only files. Knows the order of the files and what to
//! do with each thing in them; refuses to know their bytes (`formats`), and what is done with the keyspace after.
//!
//! An append-only file tells what happened at a time that has passed, and so it has to be read: a key that was given
//! ten seconds, and ten more before they were over, is there. The engine sees the beginning of time until everything
//! has been read; then it is told the real time, and whatever is past its deadline goes.

use super::bar::Bar;
use super::progress::ImportProgress;
use super::report::ImportReport;
use super::source::{Source, SourceFile};
use anyhow::{Context, Result, bail};
use engine::acl::user::server_user;
use engine::command::{CommandRow, Flags, registry};
use engine::{Client, ClientHandle, Engine, Flow, Worker};
use formats::Value;
use formats::aof_file::{AofFile, Record};
use formats::rdb_file::{Item, KeyItem};
use resp::{OwnedRequest, Request};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// [`import`] with a progress bar on stderr.
pub(crate) fn with_progress_bar(engine: &Engine, path: &Path) -> Result<ImportReport> {
    let mut bar = Bar::new();
    let report = import(engine, path, &mut |progress| bar.show(progress));
    bar.finish();
    report
}

/// Reads an RDB file, an append-only file, or one of several parts (its manifest, or the directory with that) into an
/// engine that no worker serves yet. Keys that it has already are replaced. `progress` is called often, and at the end.
///
/// After an error the engine holds what was read until then.
pub(crate) fn import(engine: &Engine, path: &Path, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
    let source = Source::find(path)?;
    let bytes_total = source.files.iter().map(|file| file.bytes).sum();
    let mut import = Import {
        engine,
        worker: engine.worker(0),
        report: ImportReport::default(),
        progress: ImportProgress { bytes_total, ..ImportProgress::default() },
        tell: progress,
    };
    for (index, file) in source.files.iter().enumerate() {
        let is_last = index + 1 == source.files.len();
        import.file(file, is_last, source.history_follows).with_context(|| {
            let records = import.progress.records;
            format!("cannot import {}: stopped after {records} keys and commands", file.path.display())
        })?;
    }
    let (keys, fields) = engine::expire_after_import(engine, &mut import.worker);
    import.report.keys_expired += keys;
    import.report.fields_expired += fields;
    (import.tell)(import.progress);
    Ok(import.report)
}

/// The instant that commands out of a file see: before any deadline.
const BEGINNING_MS: u64 = 1;
/// Records between two looks at the progress.
const RECORDS_PER_LOOK: u64 = 256;
/// What one value may decompress to on a machine that does not say how much memory it has.
const VALUE_BYTES_MAX: usize = 4 << 30;

struct Import<'a> {
    engine: &'a Engine,
    worker: Worker,
    report: ImportReport,
    progress: ImportProgress,
    tell: &'a mut dyn FnMut(ImportProgress),
}

impl Import<'_> {
    /// Reads one file. Only the last one may be cut off.
    fn file(&mut self, file: &SourceFile, is_last: bool, history_follows: bool) -> Result<()> {
        let read = File::open(&file.path)?;
        let bytes_max = match self.engine.host.total_memory() {
            0 => VALUE_BYTES_MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        let mut records = AofFile::new(read, bytes_max);
        if !history_follows {
            records = records.rdb_only();
        }
        let bytes_before = self.progress.bytes;
        let mut player = Player::new(self.engine);
        while let Some(record) = records.next() {
            match record? {
                Record::Item(Item::Key(item)) => self.key(*item, history_follows),
                Record::Item(Item::Library(code)) => self.library(&code),
                Record::Item(Item::Aside(kind)) => self.report.pass_over(kind),
                Record::Command(command) => player.play(self, command.as_request())?,
            }
            self.progress.records += 1;
            if self.progress.records.is_multiple_of(RECORDS_PER_LOOK) {
                self.progress.bytes = bytes_before + records.offset();
                (self.tell)(self.progress);
            }
        }
        self.progress.bytes = bytes_before + file.bytes;
        if let Some(cut) = records.cut() {
            if !is_last {
                bail!(
                    "it ends in the middle of a command or transaction, at byte {}, and is not the last file",
                    cut.offset
                );
            }
            self.report.cut = Some(cut);
        }
        Ok(())
    }

    /// A library of functions, in place of one of the same name.
    fn library(&mut self, code: &[u8]) {
        let mut player = Player::new(self.engine);
        let mut request = OwnedRequest::default();
        [&b"FUNCTION"[..], b"LOAD", b"REPLACE", code].into_iter().for_each(|arg| request.push(arg));
        match player.execute(self, request.as_request()) {
            Ok(None) => self.report.libraries += 1,
            Ok(Some(error)) => self.report.failed(b"FUNCTION", &error),
            Err(error) => self.report.failed(b"FUNCTION", &error.to_string()),
        }
    }

    fn key(&mut self, item: KeyItem, history_follows: bool) {
        if let Value::Unsupported(kind) = &item.value {
            return self.report.pass_over(kind.clone());
        }
        if item.value.has_no_elements() {
            return self.report.empty.count(&item.value);
        }
        let now_ms = if history_follows { 0 } else { self.engine.clock.unix_us() / 1000 };
        self.worker.now_ms = BEGINNING_MS;
        match engine::restore(self.engine, &mut self.worker, item.db, &item.key, &item.value, item.deadline, now_ms) {
            Err(_) => self.report.outside(item.db),
            Ok(kept) if !kept.key => self.report.keys_expired += 1,
            Ok(kept) => {
                self.report.fields_expired += kept.elements_expired as u64;
                self.report.loaded.count(&item.value);
            }
        }
    }
}

/// The client that commands of one file come from.
pub(super) struct Player {
    pub(super) client: Client,
    out: Vec<u8>,
    /// A database that was selected and does not exist: what is meant for it must not end up in another.
    outside: Option<u64>,
}

impl Player {
    pub(super) fn new(engine: &Engine) -> Player {
        let (id, now_ms) = (engine.clients.next_id(), engine.clock.unix_us() / 1000);
        let handle = ClientHandle::new(id, "import".into(), String::new(), -1, now_ms, Box::new(|| {}));
        let mut client = Client::new(Arc::new(handle), true);
        client.user = Some(server_user());
        Player { client, out: Vec::new(), outside: None }
    }

    fn play(&mut self, import: &mut Import<'_>, request: Request<'_>) -> Result<()> {
        let is_select = request.arg(0).eq_ignore_ascii_case(b"select");
        if let Some(db) = self.outside.filter(|_| !is_select) {
            import.report.outside(db);
            return Ok(());
        }
        if let Some(why) = refusal(request) {
            import.report.failed(request.arg(0), why);
            return Ok(());
        }
        import.engine.begin(&mut import.worker);
        if !is_relative(request) {
            import.worker.now_ms = BEGINNING_MS;
        }
        let error = self.execute(import, request)?;
        if is_select {
            let db = request.iter().nth(1).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            self.outside = error.is_some().then(|| db.unwrap_or(u64::MAX));
            return Ok(());
        }
        match error {
            None => import.report.commands += 1,
            Some(error) => import.report.failed(request.arg(0), &error),
        }
        Ok(())
    }

    /// Executes a command; the text of its error, if it was refused.
    fn execute(&mut self, import: &mut Import<'_>, request: Request<'_>) -> Result<Option<String>> {
        self.out.clear();
        match engine::execute_to_end(import.engine, &mut import.worker, &mut self.client, request, &mut self.out) {
            Flow::Continue | Flow::Close => {}
            Flow::Block(_) => self.out.extend_from_slice(b"-ERR it waits for something\r\n"),
            Flow::Paused(_) | Flow::Again | Flow::AwaitScript => bail!("the server is paused"),
        }
        let error = self.out.strip_prefix(b"-").map(<[u8]>::trim_ascii_end);
        Ok(error.map(|error| String::from_utf8_lossy(error).into_owned()))
    }
}

/// Why a command is not for a file to give: Redis writes none that is about the server or a connection.
fn refusal(request: Request<'_>) -> Option<&'static str> {
    // The last is what all subcommands of CLIENT have in common.
    const ABOUT_THE_SERVER: Flags =
        Flags::ADMIN.union(Flags::NO_AUTH).union(Flags::PUBSUB).union(Flags::BLOCKING).union(Flags::KEEPS_CACHING);
    row(request)?.command.flags.has(ABOUT_THE_SERVER).then_some("not a command that changes keys")
}

fn row(request: Request<'_>) -> Option<&'static CommandRow> {
    let row = registry().find(request.arg(0))?;
    let name = request.iter().nth(1).unwrap_or_default();
    Some(row.subcommand(name).unwrap_or(row))
}

/// True when a command speaks of a time from now. Redis writes deadlines as instants only, but files made by others may
/// have these: for them, now is now.
fn is_relative(request: Request<'_>) -> bool {
    row(request).is_some_and(|row| row.is_relative(request))
}
