//! The file in which a server remembers how far it has read a log that others keep. Knows the file; refuses to know what is
//! done about a log that is shorter.

use jetstream::Mark;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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

/// Remembers what `reached` returns, until the process ends.
pub(super) fn keep(path: PathBuf, reached: impl Fn() -> Option<Mark> + Send + 'static) {
    let thread = std::thread::Builder::new().name("log-mark".into()).spawn(move || write_changes(&path, reached));
    thread.expect("a thread needs only memory");
}

fn write_changes(path: &Path, reached: impl Fn() -> Option<Mark>) {
    let (mut written, mut has_failed) = (read(path), false);
    loop {
        let mark = reached();
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
