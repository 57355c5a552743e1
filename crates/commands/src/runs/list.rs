//! RUN.LIST: names of runs, some at a time, optionally by status. Open runs are found without visiting the others.

use crate::shared::listing::{Among, ListOptions};
use crate::shared::options::{error, names, once, shown, unknown_option};
use execution::args::{Args, is_word};
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::ValueType;
use keyspace::types::run::{self, RunStatus, run};

pub(super) fn list(cx: &mut ReadCx<'_>) -> CommandResult {
    let (mut options, mut statuses) = (ListOptions::default(), None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "STATUS") {
            once(&mut statuses, Statuses::take(&mut cx.args)?, "STATUS")?;
        } else if !options.take(word, &mut cx.args)? {
            return Err(unknown_option(&cx.args));
        }
    }
    let statuses = statuses.unwrap_or(Statuses::ALL);
    let among = if statuses.are_open() { Among::OpenRuns } else { Among::AllKeys };
    options.reply(cx, among, |entry| ValueType::of(entry).is(&run::TYPE) && statuses.has(run(entry).status()));
    Ok(())
}

/// Some of the statuses of runs.
#[derive(Clone, Copy)]
struct Statuses([bool; RunStatus::ALL.len()]);

impl Statuses {
    const ALL: Statuses = Statuses([true; RunStatus::ALL.len()]);

    fn take(args: &mut Args<'_>) -> Result<Statuses, CommandError> {
        let mut statuses = Statuses([false; RunStatus::ALL.len()]);
        for name in names(args, "STATUS")? {
            let Some(status) = RunStatus::ALL.iter().find(|status| is_word(name, status.name())) else {
                let known = RunStatus::ALL.map(RunStatus::name).join(", ");
                return Err(error(format!("no run has the status {}: there are {known}", shown(name))));
            };
            statuses.0[*status as usize] = true;
        }
        Ok(statuses)
    }

    /// True when none of them is final.
    fn are_open(self) -> bool {
        !RunStatus::ALL.iter().any(|status| status.is_final() && self.has(*status))
    }

    fn has(self, status: RunStatus) -> bool {
        self.0[status as usize]
    }
}
