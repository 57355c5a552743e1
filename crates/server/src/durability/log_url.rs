//! Which log a server uses, by URL. The one place that knows which kinds of logs there are; everything else uses
//! `journal::LogPlace`.

use super::cluster::Cluster;
use super::log_mark;
use crate::platform::clock::SystemClock;
use anyhow::{Context, Result, anyhow, bail, ensure};
use engine::Settings;
use jetstream::NatsUrl;
use journal::{Claim, DirectoryPlace, LogPlace};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogUrl {
    /// `file:DIR`: files in a data directory.
    Directory(PathBuf),
    /// `nats://HOST:PORT,…/NAME`: a stream on NATS, which several servers share.
    Nats(NatsUrl),
}

/// A log, and the servers that share it, if it is one that several machines share.
pub(crate) struct OpenedPlace {
    pub(crate) place: Arc<dyn LogPlace>,
    pub(crate) cluster: Option<Arc<Cluster>>,
}

impl OpenedPlace {
    fn alone(place: Arc<dyn LogPlace>) -> OpenedPlace {
        OpenedPlace { place, cluster: None }
    }
}

impl LogUrl {
    /// A URL, or the path of a data directory.
    pub(crate) fn parse(text: &str) -> Result<LogUrl> {
        if let Some(url) = NatsUrl::parse(text) {
            return url.map(LogUrl::Nats).map_err(|reason| anyhow!(reason));
        }
        match text.split_once(':') {
            Some(("file", "")) => bail!("{text} names no directory: give it as file:DIR"),
            Some(("file", path)) => Ok(LogUrl::Directory(path.strip_prefix("//").unwrap_or(path).into())),
            // A path may have a colon, too.
            Some((scheme, rest)) if is_scheme(scheme) && !Path::new(text).exists() => bail!(
                "{scheme}:{} is of a kind of log that is not known here: {scheme}. Known are file:DIR and \
                 nats://HOST:PORT,HOST:PORT,HOST:PORT/NAME",
                // Without a password.
                rest.rsplit_once('@').map_or(rest, |(_, shown)| shown)
            ),
            _ => Ok(LogUrl::Directory(text.into())),
        }
    }

    /// The log of a server that writes it, or will when it is its turn. Makes it if there is none. An error if another
    /// server has the directory.
    pub(crate) fn own(&self, settings: &Settings, clock: &Arc<SystemClock>) -> Result<OpenedPlace> {
        match self {
            LogUrl::Directory(path) => Ok(OpenedPlace::alone(own_directory(path)?)),
            LogUrl::Nats(url) => {
                let cluster = Cluster::join(url, settings, clock)?;
                Ok(OpenedPlace { place: cluster.place(), cluster: Some(cluster) })
            }
        }
    }

    /// The log of another server.
    pub(crate) fn to_follow(&self) -> Result<OpenedPlace> {
        match self {
            LogUrl::Directory(path) => Ok(OpenedPlace::alone(Arc::new(open(path)?))),
            LogUrl::Nats(url) => {
                bail!("{url} is shared by all its servers: give it as log, and they decide who writes")
            }
        }
    }
}

/// The log in a directory, for the process that writes it.
pub(crate) fn own_directory(path: &Path) -> Result<Arc<dyn LogPlace>> {
    refuse_mark(path)?;
    let place =
        DirectoryPlace::create(path).with_context(|| format!("cannot create the directory {}", path.display()))?;
    place.acquire(Claim::IfFree)?;
    Ok(Arc::new(place))
}

/// A directory whose server does not run, for a process that repairs it.
pub(crate) fn directory_to_repair(path: &Path) -> Result<DirectoryPlace> {
    let place = open(path)?;
    place.check_regular()?;
    place.acquire(Claim::IfFree)?;
    Ok(place)
}

/// Looks at the files by which the processes of a directory agree on who writes. An error names one that cannot be used.
pub(crate) fn check_shared_files(path: &Path) -> Result<()> {
    Ok(open(path)?.check_shared_files()?)
}

/// The log in a directory whose server does not run, for a process that reads it beside others.
pub(crate) fn shared_directory(path: &Path) -> Result<Arc<dyn LogPlace>> {
    let place = open(path)?;
    place.share()?;
    Ok(Arc::new(place))
}

fn open(path: &Path) -> Result<DirectoryPlace> {
    refuse_mark(path)?;
    DirectoryPlace::open(path).with_context(|| format!("cannot open the directory {}", path.display()))
}

/// An error if the data is not in a directory but in a log that others keep. Without it, a server that is started without its
/// setting `log` would be empty, and a check would find nothing wrong.
fn refuse_mark(path: &Path) -> Result<()> {
    let mark = log_mark::path(path);
    ensure!(
        !mark.exists(),
        "{} is of a server that keeps its data in a log on NATS, and has none itself: give it its log, or take another directory (without log.mark)",
        path.display()
    );
    Ok(())
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
        assert!(matches!(LogUrl::parse("nats://localhost/orders").unwrap(), LogUrl::Nats(_)));
        for wrong in ["file:", "nats://localhost", "memory:"] {
            assert!(LogUrl::parse(wrong).is_err(), "{wrong}");
        }
    }
}
