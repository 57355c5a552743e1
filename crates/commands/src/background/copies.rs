//! Commands that would visit many records of an index at once. They run on copies of the index, which are made in
//! slices, with only the locks of their other keys. Knows how an index is copied; refuses to know what a command does
//! with it.

use crate::shared::returned::Returned;
use execution::background_tasks::CommandOnCopy;
use execution::call::Call;
use execution::client::Client;
use execution::command::Flags;
use execution::conditions;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::handler;
use execution::indexes;
use execution::indexes::OnIndex;
use execution::metrics;
use execution::reply_limit;
use execution::slices::{RECORDS_PER_LOOK, TimeSlice};
use execution::waiting;
use execution::worker::Worker;
use keyspace::shard::Shard;
use keyspace::types::sorted_set::{self, Direction};
use keyspace::{Effect, Image, IndexRef, Key, Locked};
use resp::Reply;

/// A command that runs on copies of its indexes, and what is copied so far.
pub(super) struct CopyJob {
    command: CommandOnCopy,
    /// A separate client, like that of a script.
    client: Client,
    began_ns: u64,
    /// The indexes that are still to be copied, in reverse order.
    names: Vec<Vec<u8>>,
    copies: Shard,
    /// The index that is being copied.
    copied: Copied,
    returned: Returned,
    last: Option<(f64, Vec<u8>)>,
}

impl CopyJob {
    pub(super) fn new(engine: &Engine, command: CommandOnCopy) -> CopyJob {
        let mut client = Client::new(command.handle.clone(), true);
        client.db = command.db;
        client.protocol = command.protocol;
        client.output_bytes_max = command.output_bytes_max;
        client.reply_bytes_max = command.reply_bytes_max;
        client.no_touch = command.no_touch;
        client.tracker = command.tracker.clone();
        client.caching = command.caching;
        let request = command.request.as_request();
        let names = command.row.key_positions(request).map(|at| request.arg(at));
        let mut names: Vec<Vec<u8>> =
            names.filter(|name| engine.indexes.has_any_of([*name].into_iter())).map(<[u8]>::to_vec).collect();
        names.sort_unstable();
        names.dedup();
        CopyJob {
            command,
            client,
            began_ns: engine.clock.monotonic_ns(),
            names,
            copies: Shard::default(),
            copied: Copied::default(),
            returned: Returned::default(),
            last: None,
        }
    }
}

/// Copies some records of an index, or runs the command once everything is copied. Returns the rest of the work.
pub(super) fn run_on_copies(engine: &Engine, worker: &mut Worker, mut job: CopyJob) -> Option<CopyJob> {
    engine.begin(worker);
    let mut reply = Vec::new();
    let result = match copy_some(engine, worker, &mut job) {
        Ok(true) => run_on_copied(engine, worker, &mut job, &mut reply),
        Ok(false) => return Some(job),
        Err(error) => Err(error),
    };
    if result == Err(CommandError::AwaitsScript) {
        return Some(job);
    }
    let CopyJob { command, client, began_ns, .. } = job;
    let result = match result {
        Ok(()) if reply.len() > client.reply_bytes_max => {
            reply_limit::pass(worker, &client, command.row, command.request.as_request())
        }
        result => result,
    };
    if let Err(error) = result {
        let text = error.to_string();
        worker.metrics.stats.commands[command.row.index].failed.add(1);
        worker.metrics.stats.count_error(&text);
        reply.clear();
        Reply::new(&mut reply, client.protocol).error(&text);
    }
    // It was counted as a call when it was sent here.
    let took_ns = engine.clock.monotonic_ns().saturating_sub(began_ns);
    worker.metrics.stats.commands[command.row.index].ns.add(took_ns);
    metrics::record_slow(engine, worker, &client, command.row, command.request.as_request(), took_ns);
    let CommandOnCopy { ticket, handle, token, .. } = command;
    // IMPORTANT: before the client learns that its command has ended.
    drop(token);
    ticket.put(reply, client.depends_on, client.last_batch);
    handle.wake();
    // Clients may wait for its changes.
    if waiting::queueing::has_deferred(engine) {
        engine.begin(worker);
        waiting::serving::serve_deferred(engine, worker);
    }
    None
}

/// Runs the command, under the locks of its keys.
fn run_on_copied(engine: &Engine, worker: &mut Worker, job: &mut CopyJob, reply: &mut Vec<u8>) -> CommandResult {
    let CopyJob { command, client, copies, .. } = job;
    let (row, request) = (command.row, command.request.as_request());
    let mut locked =
        engine.keyspace.lock_keys_unless_busy(row.keys(request)).ok_or_else(|| conditions::busy(engine))?;
    // IMPORTANT: once more, under the locks: an index may have been created meanwhile, or writes refused.
    command.token.pass(&locked)?;
    indexes::pass_index_rules(engine, row, request)?;
    if row.command.flags.has(Flags::WRITE) {
        engine.restrictions.pass_write()?;
    }
    let reply = Reply::new(reply, client.protocol).limited(client.output_bytes_max);
    handler::run_under(
        engine,
        &mut Call::new(worker, client, row, request),
        reply,
        &mut locked,
        OnIndex::OnCopies(copies),
    )
}

/// Copies a slice of the next index, with the guarantee of a range: a record that is not written meanwhile is in the
/// copy, and no record is in it twice. True when all indexes are copied.
fn copy_some(engine: &Engine, worker: &mut Worker, job: &mut CopyJob) -> Result<bool, CommandError> {
    let Some(name) = job.names.last() else { return Ok(true) };
    let CopyJob { command, client, copied, returned, last, .. } = job;
    let Some(mut locked) = indexes::lock_for_index(engine, worker, client.db)? else { return Ok(false) };
    command.token.pass(&locked)?;
    indexes::expire_for_index(engine, worker, client.db, &mut locked);
    client.depends_on = client.depends_on.max(locked.changed_by());
    let slice = TimeSlice::begin(engine);
    let Some(index) = IndexRef::find(&locked, client.db, name) else {
        return Err(CommandError::fixed("ERR the index was dropped while it was read"));
    };
    // Added to the others afterwards: a long list takes long to grow.
    let mut some = Copied::default();
    let ended = returned.begin_slice(&index, Some(slice)) && {
        let (mut start, end) = index.whole();
        if let Some((score, name)) = &*last {
            start = index.up_to(*score, name);
        }
        let mut members = index.between(&start, &end, Direction::Ascending);
        let (mut looked_at, mut latest) = (0, None);
        let ended = loop {
            if looked_at % RECORDS_PER_LOOK == 0 && looked_at > 0 && slice.is_over() {
                break false;
            }
            let Some((_, entry, score)) = members.next_entry() else { break true };
            looked_at += 1;
            latest = Some((score, entry.name()));
            if !returned.contains(entry.name()) {
                some.push(score, entry.name());
            }
        };
        *last = latest.map(|(score, name)| (score, name.to_vec())).or(last.take());
        ended
    };
    locked.release_fairly();
    let names: Vec<&[u8]> = some.list().into_iter().map(|(_, name)| name).collect();
    returned.add(&names);
    copied.append(&some);
    if ended {
        keep_copy(engine, job);
    }
    Ok(job.names.is_empty())
}

/// Stores the copy of an index, which the command reads as a sorted set.
fn keep_copy(engine: &Engine, job: &mut CopyJob) {
    let name = job.names.pop().expect("one was just copied");
    let copied = std::mem::take(&mut job.copied);
    (job.returned, job.last) = (Returned::default(), None);
    if copied.ends.is_empty() {
        return;
    }
    let (members, thresholds, mut image) = (copied.list(), engine.thresholds(), Vec::new());
    sorted_set::put_image(&members, &thresholds.sorted_set, &mut image);
    let value = Image { value_type: &sorted_set::TYPE, bytes: &image };
    let effect = Effect::Put { key: Key::new(&name), value, deadline: None };
    Locked::alone(&mut job.copies).apply(0, &effect, &thresholds);
}

/// Records of an index, in their order.
#[derive(Default)]
struct Copied {
    /// Concatenated.
    names: Vec<u8>,
    /// The score of each, and where its name ends.
    ends: Vec<(f64, usize)>,
}

impl Copied {
    fn push(&mut self, score: f64, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.ends.push((score, self.names.len()));
    }

    fn append(&mut self, other: &Copied) {
        let before = self.names.len();
        self.names.extend_from_slice(&other.names);
        self.ends.extend(other.ends.iter().map(|(score, end)| (*score, before + end)));
    }

    fn list(&self) -> Vec<(f64, &[u8])> {
        let mut start = 0;
        let member = |(score, end): &(f64, usize)| (*score, &self.names[std::mem::replace(&mut start, *end)..*end]);
        self.ends.iter().map(member).collect()
    }
}
