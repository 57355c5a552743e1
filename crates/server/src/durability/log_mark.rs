//! The file in which a server remembers how far it has read a log that others keep. Knows the file; refuses to know what is
//! done about a log that is shorter.

use super::cluster::Cluster;
use jetstream::Mark;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often it is written, while more is read.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// Where it is, in the data directory.
pub(super) fn path(directory: &str) -> PathBuf {
    Path::new(directory).join("log.mark")
}

/// What is remembered, if anything is.
pub(super) fn read(path: &Path) -> Option<Mark> {
    Mark::parse(&fs::read_to_string(path).ok()?)
}

/// Remembers how far a server is, until it ends.
pub(super) fn keep(cluster: &Arc<Cluster>, path: PathBuf) {
    let cluster = Arc::downgrade(cluster);
    let thread = std::thread::Builder::new().name("log-mark".into()).spawn(move || write_changes(&cluster, &path));
    thread.expect("a thread needs only memory");
}

fn write_changes(cluster: &Weak<Cluster>, path: &Path) {
    let (mut written, mut has_failed) = (read(path), false);
    while let Some(cluster) = cluster.upgrade() {
        let mark = cluster.mark();
        drop(cluster);
        if let Some(new) = mark.filter(|_| mark != written) {
            match write(path, &new) {
                Ok(()) => (written, has_failed) = (mark, false),
                Err(error) if !has_failed => {
                    has_failed = true;
                    tracing::warn!(%error, path = %path.display(), "what this server knows of the log cannot be remembered");
                }
                Err(_) => {}
            }
        }
        std::thread::sleep(WRITE_EVERY);
    }
}

/// The file has the old mark or the new one, as a whole.
fn write(path: &Path, mark: &Mark) -> io::Result<()> {
    let new = path.with_extension("mark.new");
    let mut file = File::create(&new)?;
    file.write_all(mark.line().as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
