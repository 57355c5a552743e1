//! The file in which a server remembers how far it has read a log that others keep. Knows the file; refuses to know what is
//! done about a log that is shorter.

use jetstream::Mark;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is written, while more is read.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// Where it is, in the data directory.
pub(super) fn path(directory: impl AsRef<Path>) -> PathBuf {
    directory.as_ref().join("log.mark")
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
    let (mut written, mut told) = (read(path), None);
    let mut lock = None;
    loop {
        let mark = reached();
        if let Some(new) = mark.filter(|_| mark != written) {
            let done = own(path, &mut lock).and_then(|()| {
                // Another process may have been there until now.
                let further = read(path).filter(|known| known.log == new.log && known.position > new.position);
                if further.is_some() { Ok(()) } else { write(path, &new).map_err(|error| error.to_string()) }
            });
            match done {
                Ok(()) => (written, told) = (mark, None),
                Err(reason) if told.as_ref() != Some(&reason) => {
                    tracing::warn!(reason, path = %path.display(), "what this server knows of the log cannot be remembered");
                    told = Some(reason);
                }
                Err(_) => {}
            }
        }
        std::thread::sleep(WRITE_EVERY);
    }
}

/// Makes sure that no other process writes the file. With two, the mark of one would go back to that of the other.
fn own(path: &Path, lock: &mut Option<File>) -> Result<(), String> {
    if lock.is_some() {
        return Ok(());
    }
    let file = File::create(path.with_extension("mark.lock")).map_err(|error| error.to_string())?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err("another server does that in the same directory: give each its own dir".to_owned())
        }
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => {
            *lock = Some(file);
            Ok(())
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_writes_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut first, mut second) = (path(directory.path()), None, None);
        own(&path, &mut first).unwrap();
        own(&path, &mut first).unwrap();
        assert!(own(&path, &mut second).unwrap_err().contains("give each its own dir"));
        drop(first);
        own(&path, &mut second).unwrap();
    }
}
