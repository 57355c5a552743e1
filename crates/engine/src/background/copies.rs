//! Commands that would walk over many records of an index at once: they run on copies, which are made in slices, under
//! the locks of their other keys alone. Knows how an index is copied; refuses to know what a command does with it.

use crate::commands::shared::returned::Returned;
use crate::error::CommandError;
use crate::execution::background_tasks::CommandOnCopy;
use crate::execution::client::Client;
use crate::execution::command::Flags;
use crate::execution::engine::Engine;
use crate::execution::indexes::{OnIndex, RECORDS_PER_LOOK, SLICE_NS, Slice};
use crate::execution::worker::Worker;
use keyspace::shard::Shard;
use keyspace::types::sorted_set::{self, Direction};
use keyspace::{Effect, Image, IndexRef, Key, Locked};
use resp::Reply;
use std::time::Duration;

impl Engine {
    /// Runs a command whose client waits for the reply.
    pub(super) fn run_on_copies(&self, worker: &mut Worker, command: &CommandOnCopy) {
        // A separate client, as of a script.
        let mut client = Client::new(command.handle.clone(), true);
        client.db = command.db;
        client.protocol = command.protocol;
        client.output_bytes_max = command.output_bytes_max;
        client.no_touch = command.no_touch;
        client.tracker = command.tracker.clone();
        client.caching = command.caching;
        let (mut reply, began_ns) = (Vec::new(), self.clock.monotonic_ns());
        if let Err(error) = self.copy_and_run(worker, &mut client, command, &mut reply) {
            let text = error.to_string();
            worker.books.stats.commands[command.row.index].failed.add(1);
            worker.books.stats.count_error(&text);
            reply.clear();
            Reply::new(&mut reply, client.protocol).error(&text);
        }
        // It has been counted as a call when it was sent here.
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        worker.books.stats.commands[command.row.index].ns.add(took_ns);
        self.note_slow(worker, &client, command.row, command.request.as_request(), took_ns);
        command.ticket.put(reply, client.depends_on, client.last_batch);
        command.handle.wake();
        // Its changes may be what others wait for.
        if self.has_deferred() {
            self.begin(worker);
            self.serve_deferred(worker);
        }
    }

    fn copy_and_run(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        command: &CommandOnCopy,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let (row, request) = (command.row, command.request.as_request());
        let mut copies = Shard::default();
        let mut names: Vec<&[u8]> = row.key_positions(request).map(|at| request.arg(at)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| self.any_is_index([*name].into_iter())) {
            let members = self.copy_index(worker, client, name)?;
            if members.ends.is_empty() {
                continue;
            }
            let (members, thresholds, mut image) = (members.list(), self.thresholds(), Vec::new());
            sorted_set::put_image(&members, &thresholds.sorted_set, &mut image);
            let value = Image { value_type: &sorted_set::TYPE, bytes: &image };
            let effect = Effect::Put { key: Key::new(name), value, deadline: None };
            Locked::alone(&mut copies).apply(0, &effect, &thresholds);
        }
        self.begin(worker);
        let mut locked = self.keyspace.lock_keys_unless_busy(row.keys(request)).ok_or_else(|| self.busy())?;
        // IMPORTANT: once more, under the locks: an index may have been created meanwhile, or writes refused.
        self.pass_index_rules(row, request)?;
        if row.command.flags.has(Flags::WRITE) {
            self.pass_write_restrictions()?;
        }
        let reply = Reply::new(reply, client.protocol).limited(client.output_bytes_max);
        self.run_under(worker, client, row, request, reply, &mut locked, None, OnIndex::OnCopies(&copies))
    }

    /// Copies an index in slices, with the guarantee of a range: a record that is not written meanwhile is in the copy,
    /// and none is in it twice.
    fn copy_index(&self, worker: &mut Worker, client: &mut Client, name: &[u8]) -> Result<Copied, CommandError> {
        let (mut copied, mut returned, mut last) = (Copied::default(), Returned::default(), None::<(f64, Vec<u8>)>);
        loop {
            self.begin(worker);
            let Some(mut locked) = self.lock_for_index(worker, client.db)? else {
                std::thread::sleep(PAUSE);
                continue;
            };
            self.expire_for_index(worker, client.db, &mut locked);
            client.depends_on = client.depends_on.max(locked.changed_by());
            let slice = Slice::begin(self);
            let Some(index) = IndexRef::find(&locked, client.db, name) else {
                return Err(CommandError::fixed("ERR the index was dropped while it was read"));
            };
            // Added to the others later: a long list takes long to grow.
            let mut some = Copied::default();
            let ended = returned.begin_slice(&index, Some(slice)) && {
                let (mut start, end) = index.whole();
                if let Some((score, name)) = &last {
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
                last = latest.map(|(score, name)| (score, name.to_vec())).or(last.take());
                ended
            };
            locked.release_fairly();
            let names: Vec<&[u8]> = some.list().into_iter().map(|(_, name)| name).collect();
            returned.add(&names);
            copied.append(&some);
            if ended {
                return Ok(copied);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Between two slices, so that others have as much time as the copy.
const PAUSE: Duration = Duration::from_nanos(SLICE_NS);

/// Records of an index, in their order.
#[derive(Default)]
struct Copied {
    /// One behind the other.
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
