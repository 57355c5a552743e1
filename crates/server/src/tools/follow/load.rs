//! All data of a source into a target: the items of an RDB file as requests. Knows how large a request may be; refuses to know
//! how the items come.

use super::limits::shown;
use super::position::{Reserved, is_reserved};
use super::target::Target;
use crate::tools::import::ImportReport;
use anyhow::{Context, Result};
use formats::rdb_file::{Item, KeyItem};
use formats::{Value, payload};

/// A larger value is built by commands: an argument has a limit.
const PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// Sends what is read from a file of the source.
pub(super) struct Loader {
    selected: Option<u64>,
    pub(super) items: u64,
}

impl Loader {
    pub(super) fn new() -> Loader {
        Loader { selected: None, items: 0 }
    }

    pub(super) fn item(&mut self, target: &mut Target, item: Item, report: &mut ImportReport) -> Result<()> {
        self.items += 1;
        match item {
            Item::Key(item) => self.key(target, &item, report),
            Item::Aside(kind) => {
                report.pass_over(kind);
                Ok(())
            }
            Item::Library(code) => {
                report.libraries += 1;
                target.load(&[b"FUNCTION", b"LOAD", b"REPLACE", &code], report)
            }
        }
    }

    fn key(&mut self, target: &mut Target, item: &KeyItem, report: &mut ImportReport) -> Result<()> {
        let place = || format!("the {} {} of database {}", item.value.noun().one(), shown(&item.key), item.db);
        self.send(target, item, report).with_context(place)
    }

    fn send(&mut self, target: &mut Target, item: &KeyItem, report: &mut ImportReport) -> Result<()> {
        if let Value::Unsupported(kind) = &item.value {
            report.pass_over(kind.clone());
            return Ok(());
        }
        if item.value.has_no_elements() {
            report.empty.count(&item.value);
            return Ok(());
        }
        if item.db >= target.databases {
            report.outside(item.db);
            return Ok(());
        }
        if is_reserved(&item.key) {
            return Err(Reserved(item.key.clone()).into());
        }
        if self.selected.replace(item.db) != Some(item.db) {
            target.load(&[b"SELECT", item.db.to_string().as_bytes()], report)?;
        }
        // Zero would be no deadline.
        let deadline = item.deadline.map(|ms| ms.max(1).to_string());
        let payload = payload::encode(&item.value, false);
        let ttl = deadline.as_deref().unwrap_or("0").as_bytes();
        let restore: [&[u8]; 6] = [b"RESTORE", &item.key, ttl, &payload, b"REPLACE", b"ABSTTL"];
        if payload.len() <= PAYLOAD_BYTES_MAX
            && target.limits.check(&restore).is_ok()
            && !unpacks_to_more(item, payload.len() as u64, target.limits.argument_bytes_max)
        {
            target.load(&restore, report)?;
        } else {
            drop(payload);
            let orphans = item.value.commands(&item.key, |words| target.load(words, report))?;
            if orphans > 0 {
                report.failed(b"RESTORE", "pending entries of deleted entries, in a stream that is too long");
            }
            if let Some(deadline) = deadline {
                target.load(&[b"PEXPIREAT", &item.key, deadline.as_bytes()], report)?;
            }
        }
        report.loaded.count(&item.value);
        Ok(())
    }
}

/// True when RESTORE would refuse a payload of so many bytes: what it decompresses to is limited like an argument.
fn unpacks_to_more(item: &KeyItem, payload_bytes: u64, bytes_max: u64) -> bool {
    /// LZF makes nothing smaller than that.
    const COMPRESSED_TIMES_MAX: u64 = 100;
    if payload_bytes.saturating_mul(COMPRESSED_TIMES_MAX) <= bytes_max {
        return false;
    }
    let mut bytes = 0;
    let counted = item.value.commands(&item.key, |words| {
        bytes += words.iter().map(|word| word.len() as u64).sum::<u64>();
        Ok::<(), std::convert::Infallible>(())
    });
    counted.is_ok() && bytes > bytes_max
}
