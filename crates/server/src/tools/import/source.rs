//! Which files an import reads, and in which order. Knows paths and Redis's names for its files.

use anyhow::{Context, Result, bail};
use formats::aof_file::{MANIFEST_BYTES_MAX, parse_manifest};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files that are read one after the other.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) files: Vec<SourceFile>,
    /// Commands may come after the values of an RDB file; false for such a file alone.
    pub(super) history_follows: bool,
}

#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// Redis's name for the directory with the parts of an append-only file.
const PARTS: &str = "appendonlydir";

impl Source {
    /// What `path` stands for: a file, a manifest, the directory that has one, or the one above that.
    pub(super) fn find(path: &Path) -> Result<Source> {
        let facts = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if facts.is_dir() {
            return Source::of_manifest(&manifest_in(path)?);
        }
        if has_extension(path, "manifest") {
            return Source::of_manifest(path);
        }
        let is_rdb = has_extension(path, "rdb");
        if is_rdb && facts.len() == 0 {
            bail!("{} is empty", path.display());
        }
        let file = SourceFile { path: path.to_path_buf(), bytes: facts.len() };
        Ok(Source { files: vec![file], history_follows: !is_rdb })
    }

    fn of_manifest(path: &Path) -> Result<Source> {
        let mut text = Vec::new();
        let read = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        read.take(MANIFEST_BYTES_MAX)
            .read_to_end(&mut text)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let names = parse_manifest(&text).with_context(|| format!("cannot read {}", path.display()))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let files = names.iter().map(|name| {
            let path = directory.join(name);
            let facts = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(SourceFile { path, bytes: facts.len() })
        });
        Ok(Source { files: files.collect::<Result<_>>()?, history_follows: true })
    }
}

fn manifest_in(directory: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        if has_extension(&path, "manifest") {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 if directory.join(PARTS).is_dir() => manifest_in(&directory.join(PARTS)),
        0 => bail!("{} has no *.manifest of an append-only file; name the file to import", directory.display()),
        _ => bail!("{} has several manifests; name the one to import", directory.display()),
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
