//! The gates: checks that every command passes before it runs, and the conditions that restrict them. Knows reasons to
//! refuse; refuses to know what a command does.

use crate::error::{CommandError, CommandResult};
use crate::execution::client::Client;
use crate::execution::command::{Command, CommandRow, Flags};
use crate::execution::engine::Engine;
use crate::execution::scripts::ProgramKind;
use crate::execution::worker::Worker;
use bitflags::bitflags;
use resp::Request;
use std::sync::atomic::Ordering::Relaxed;

bitflags! {
    /// Conditions that restrict which commands pass.
    #[derive(Clone, Copy)]
    struct Restrictions: u8 {
        /// The data is loading: only commands that do not need it pass.
        const LOADING = 1;
        /// A change could not be persisted.
        const NO_WRITES = 1 << 1;
        /// A script has been running for long.
        const BUSY = 1 << 2;
        /// What is here follows another server: only what that one has recorded changes it.
        const FOLLOWING = 1 << 3;
    }
}

impl Engine {
    /// While the data is loading, only commands that do not need it pass.
    pub fn set_loading(&self, loading: bool) {
        self.restrict(Restrictions::LOADING, loading);
    }

    /// Refuses writes with this error text, or lets them pass again.
    pub fn refuse_writes(&self, reason: Option<String>) {
        let is_refused = reason.is_some();
        if let Some(reason) = reason {
            *self.refusal.lock() = reason;
        }
        self.restrict(Restrictions::NO_WRITES, is_refused);
    }

    /// True while writes are refused.
    pub fn refuses_writes(&self) -> bool {
        self.restrictions().contains(Restrictions::NO_WRITES)
    }

    /// Starts to follow another server. A follower answers reads, and changes nothing by itself: expired keys
    /// read as absent and stay until the other server records their removal; it may have extended their deadlines
    /// before.
    pub(crate) fn begin_following(&self) {
        self.restrict(Restrictions::FOLLOWING, true);
    }

    /// Stops following: this server takes the other's place. No batch of the other is applied any more. What its forks have
    /// made that were not complete is removed, and what its restores have left is done, as after a start; takers that were
    /// already waiting are served. `worker` serves nothing else meanwhile. Returns how many keys were removed and set so.
    pub fn end_following(&self, worker: &mut Worker) -> u64 {
        // IMPORTANT: while writes are still refused; otherwise a client could write names that are about to be removed.
        let changed = if self.is_following() { self.undo_forks(worker) + self.finish_restores(worker) } else { 0 };
        self.restrict(Restrictions::FOLLOWING, false);
        self.defer_all_waiters();
        changed
    }

    /// True while it follows another server.
    pub(crate) fn is_following(&self) -> bool {
        self.restrictions().contains(Restrictions::FOLLOWING)
    }

    /// Sets whether a script has run for long: commands that need its locks then fail with -BUSY instead of waiting.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.restrict(Restrictions::BUSY, busy);
        self.keyspace.set_busy(busy);
    }

    /// Adds or takes away a reason.
    fn restrict(&self, restriction: Restrictions, is_on: bool) {
        match is_on {
            true => self.restrictions.fetch_or(restriction.bits(), Relaxed),
            false => self.restrictions.fetch_and(!restriction.bits(), Relaxed),
        };
    }

    fn restrictions(&self) -> Restrictions {
        Restrictions::from_bits_retain(self.restrictions.load(Relaxed))
    }

    /// The error for commands that cannot run while a script or function does.
    #[cold]
    pub(crate) fn busy(&self) -> CommandError {
        match self.script_thread.running() {
            Some(ProgramKind::Function) => CommandError::BusyFunction,
            _ => CommandError::Busy,
        }
    }

    /// Refuses writes while they could not be persisted.
    pub(crate) fn pass_write_restrictions(&self) -> CommandResult {
        let restrictions = self.restrictions();
        if restrictions.contains(Restrictions::FOLLOWING) {
            return Err(CommandError::fixed("READONLY You can't write against a read only replica."));
        }
        if restrictions.contains(Restrictions::NO_WRITES) { Err(self.refusal()) } else { Ok(()) }
    }

    /// Refuses what a client wants to write if that needs replicas: there are none.
    pub(crate) fn pass_replicas(&self) -> CommandResult {
        match self.settings.writes_need_replicas() {
            true => Err(CommandError::fixed("NOREPLICAS Not enough good replicas to write.")),
            false => Ok(()),
        }
    }

    /// True while any restriction is in force.
    pub(crate) fn is_restricted(&self) -> bool {
        self.restrictions.load(Relaxed) != 0
    }

    /// Checks all gates for a command.
    #[inline]
    pub(crate) fn gates(&self, client: &Client, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
        let flags = row.command.flags;
        if !client.authenticated && !flags.has(Flags::NO_AUTH) && self.settings.requires_password() {
            return Err(CommandError::NoAuth);
        }
        if client.is_only_listening() && !flags.has(Flags::WHILE_SUBSCRIBED) {
            return Err(CommandError::said(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
                 context",
                row.full_name
            )));
        }
        if self.is_restricted() || flags.has(Flags::WRITE) && self.settings.writes_need_replicas() {
            self.pass_restrictions(flags)?;
        }
        if flags.has(Flags::DENYOOM) {
            self.pass_memory_limit().or_else(|error| if row.only_removes(request) { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    /// True when expired keys may be removed. While writes are refused or clients are paused, they read as absent but
    /// stay.
    #[inline]
    pub(crate) fn may_expire(&self) -> bool {
        let is_paused = || self.pause.is_set() && self.pause.is_on(self.clock.monotonic_ms());
        !self.is_restricted() && !is_paused()
    }

    /// True when a request may write, as far as is known before it runs: CLIENT PAUSE WRITE holds it back.
    #[cold]
    pub(crate) fn may_write(&self, client: &Client, row: &'static CommandRow, request: Request<'_>) -> bool {
        if let Some(interactive) = &client.interactive
            && row.command.flags.has(Flags::ENDS_TXN)
        {
            return interactive.has_written() && self.may_write_alone(row, request);
        }
        match &client.transaction {
            Some(transaction) if row.command.flags.has(Flags::ENDS_QUEUE) => {
                transaction.commands().any(|(row, request)| self.may_write_alone(row, request))
            }
            _ => self.may_write_alone(row, request),
        }
    }

    fn may_write_alone(&self, row: &'static CommandRow, request: Request<'_>) -> bool {
        let Command { flags, declared, .. } = row.command;
        let promises_not_to = || declared.and_then(|of| of(self, request.arg(1))).is_some_and(|flags| flags.no_writes);
        flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE) && !promises_not_to()
    }

    /// Refuses commands that need more memory when more than `maxmemory` is in use, and no key can be removed.
    #[inline]
    pub(crate) fn pass_memory_limit(&self) -> CommandResult {
        match self.settings.maxmemory() != 0 && self.is_out_of_memory() {
            true => Err(CommandError::OutOfMemory),
            false => Ok(()),
        }
    }

    #[cold]
    fn pass_restrictions(&self, flags: Flags) -> CommandResult {
        let restrictions = self.restrictions();
        if restrictions.contains(Restrictions::LOADING) && !flags.has(Flags::LOADING) {
            return Err(CommandError::Loading);
        }
        if restrictions.contains(Restrictions::BUSY) && !flags.has(Flags::ALLOW_BUSY) {
            return Err(self.busy());
        }
        if flags.has(Flags::WRITE) {
            self.pass_write_restrictions()?;
            self.pass_replicas()?;
        }
        Ok(())
    }

    pub(crate) fn refusal(&self) -> CommandError {
        CommandError::said(format!("MISCONF {}", self.refusal.lock()))
    }
}
