//! The script thread, which runs scripts that may run long. Knows how one is run and what its client gets; the queue is
//! in `execution::scripts`.

use crate::execution::client::Client;
use crate::execution::command::registry;
use crate::execution::engine::Engine;
use crate::execution::scripts::Job;
use crate::execution::worker::Worker;
use resp::{OwnedRequest, Reply};
use std::sync::Arc;

impl Engine {
    /// Runs queued scripts for as long as the process lives. Called on a thread that does nothing else.
    pub fn serve_scripts(&self, mut worker: Worker) -> ! {
        self.script_thread.set_served();
        worker.is_script_thread = true;
        loop {
            let job = Arc::new(self.script_thread.next());
            self.begin(&mut worker);
            // A separate client: what a script does to its connection ends with the script.
            let mut client = Client::new(job.handle.clone(), true);
            client.db = job.db;
            client.protocol = job.protocol;
            client.tracker = job.tracker.clone();
            client.caching = job.caching;
            let began_ns = self.clock.monotonic_ns();
            self.script_thread.begin(&job, began_ns);
            let mut reply = Vec::new();
            let keys: Vec<&[u8]> = job.keys.iter().map(Vec::as_slice).collect();
            let args: Vec<&[u8]> = job.args.iter().map(Vec::as_slice).collect();
            // Nothing but this thread waits for it: an error is met again by the program itself.
            while self.may_read_index(&job.program, &keys)
                && !self.is_ready_for_index(&mut worker, job.db).unwrap_or(true)
            {
                std::thread::yield_now();
                self.begin(&mut worker);
            }
            worker.script_has_failed = false;
            let mut writer = Reply::new(&mut reply, job.protocol);
            let outcome = self.run_program(
                &mut worker,
                &mut client,
                &job.program,
                &keys,
                &args,
                job.read_only,
                &mut writer,
                None,
                None,
            );
            if let Err(error) = outcome {
                worker.script_has_failed = true;
                reply.clear();
                let text = error.to_string();
                worker.books.stats.count_error(&text);
                Reply::new(&mut reply, job.protocol).error(&text);
            }
            self.script_thread.end();
            self.set_busy(false);
            self.note_script_time(&worker, &client, &job, began_ns);
            job.ticket.put(reply, client.depends_on, client.last_batch);
            job.handle.wake();
            // Its changes may be what others wait for.
            if self.has_deferred() {
                self.begin(&mut worker);
                self.serve_deferred(&mut worker);
            }
        }
    }
}

impl Engine {
    /// Adds what a script took to the books of its command, which has been counted as a call when it was sent here.
    fn note_script_time(&self, worker: &Worker, client: &Client, job: &Job, began_ns: u64) {
        let Some(row) = registry().find(&job.command[0]) else { return };
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        worker.books.stats.commands[row.index].ns.add(took_ns);
        if worker.script_has_failed {
            worker.books.stats.commands[row.index].failed.add(1);
        }
        let count = job.keys.len().to_string().into_bytes();
        let words = job.command.iter().chain([&count]).chain(&job.keys).chain(&job.args);
        let request: OwnedRequest = words.map(Vec::as_slice).collect();
        self.note_slow(worker, client, row, request.as_request(), took_ns);
    }
}
