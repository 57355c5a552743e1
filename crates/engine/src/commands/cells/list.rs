//! CELL.LIST: names of cells, some at a time.

use crate::commands::shared::listing::{Among, ListOptions};
use crate::commands::shared::options::unknown_option;
use crate::error::CommandResult;
use crate::execution::context::ReadCx;
use keyspace::ValueType;
use keyspace::types::cell;

pub(super) fn list(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut options = ListOptions::default();
    while let Some(word) = cx.args.try_next() {
        if !options.take(word, &mut cx.args)? {
            return Err(unknown_option(word));
        }
    }
    options.reply(cx, Among::AllKeys, |entry| ValueType::of(entry).is(&cell::TYPE));
    Ok(())
}
