//! `holdfast config convert`: prints a holdfast.toml made of a redis.conf.

use super::data_tools::LeftOut;
use crate::config::{self, Converted};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

pub(super) fn run(file: &Path) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Converted { text, converted, left_out } = config::convert(&bytes, &file.display().to_string());
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")?;
    if left_out > 0 {
        return Err(LeftOut::by_conversion(file, converted, left_out).into());
    }
    eprintln!("all {converted} directives of {} are converted", file.display());
    Ok(())
}
