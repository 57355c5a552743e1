//! Which log a server uses, by URL. The one place that knows which kinds of logs there are; everything else uses
//! `journal::LogPlace`.

use anyhow::{Context, Result, bail};
use journal::{Claim, DirectoryPlace, LogPlace};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogUrl {
    /// `file:DIR`: files in a data directory.
    Directory(PathBuf),
}

impl LogUrl {
    /// A URL, or the path of a data directory.
    pub(crate) fn parse(text: &str) -> Result<LogUrl> {
        match text.split_once(':') {
            Some(("file", "")) => bail!("{text} names no directory: give it as file:DIR"),
            Some(("file", path)) => Ok(LogUrl::Directory(path.strip_prefix("//").unwrap_or(path).into())),
            // A path may have a colon, too.
            Some((scheme, _)) if is_scheme(scheme) && !Path::new(text).exists() => {
                bail!("{text} is of a kind of log that is not known here: {scheme}. Known is file:DIR")
            }
            _ => Ok(LogUrl::Directory(text.into())),
        }
    }

    /// The log of a server that writes it. Makes the directory if there is none. An error if another server has it.
    pub(crate) fn own(&self) -> Result<Arc<dyn LogPlace>> {
        let LogUrl::Directory(path) = self;
        let place =
            DirectoryPlace::create(path).with_context(|| format!("cannot create the directory {}", path.display()))?;
        place.acquire(Claim::IfFree)?;
        Ok(Arc::new(place))
    }

    /// The log of another server.
    pub(crate) fn to_follow(&self) -> Result<Arc<dyn LogPlace>> {
        let LogUrl::Directory(path) = self;
        Ok(Arc::new(open(path)?))
    }

    /// The log of a server that does not run, for one that reads it beside others.
    pub(crate) fn shared(&self) -> Result<Arc<dyn LogPlace>> {
        let LogUrl::Directory(path) = self;
        let place = open(path)?;
        place.share()?;
        Ok(Arc::new(place))
    }
}

fn open(path: &Path) -> Result<DirectoryPlace> {
    DirectoryPlace::open(path).with_context(|| format!("cannot open the directory {}", path.display()))
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_or_a_path_names_a_log() {
        let directory = |path: &str| LogUrl::Directory(path.into());
        for (text, path) in [
            ("file:data", "data"),
            ("file:/var/lib/holdfast", "/var/lib/holdfast"),
            ("file:///var/lib/holdfast", "/var/lib/holdfast"),
            ("/var/lib/holdfast", "/var/lib/holdfast"),
            ("./a:b", "./a:b"),
            ("file:a:b", "a:b"),
        ] {
            assert_eq!(LogUrl::parse(text).unwrap(), directory(path), "{text}");
        }
        for wrong in ["file:", "nats://localhost/orders", "memory:"] {
            assert!(LogUrl::parse(wrong).is_err(), "{wrong}");
        }
    }
}
