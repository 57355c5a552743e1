//! CELL.LIST: names of cells, some at a time.

use crate::shared::listing::{Among, ListOptions};
use crate::shared::options::unknown_option;
use execution::context::ReadCx;
use execution::error::CommandResult;
use keyspace::ValueType;
use keyspace::types::cell;

pub(super) fn list(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut options = ListOptions::default();
    while let Some(word) = cx.args.try_next() {
        if !options.take(word, &mut cx.args)? {
            return Err(unknown_option(&cx.args));
        }
    }
    options.reply(cx, Among::AllKeys, |entry| ValueType::of(entry).is(&cell::TYPE));
    Ok(())
}
