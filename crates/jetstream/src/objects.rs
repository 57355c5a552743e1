//! The interface of an object store. Knows nothing of snapshots.

use std::io;
use std::sync::mpsc;

/// Keeps named objects, each of which appears whole or not at all. Calls wait for the answer.
pub trait Objects: Send + Sync {
    fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()>;
    /// Begins to read an object. What becomes of it is received once.
    fn begin_get(&self, name: &str) -> mpsc::Receiver<io::Result<Vec<u8>>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn list(&self) -> io::Result<Vec<String>>;

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        received(&self.begin_get(name))
    }
}

/// Waits for what was begun.
pub(crate) fn received<T>(result: &mpsc::Receiver<io::Result<T>>) -> io::Result<T> {
    result.recv().unwrap_or_else(|_| Err(io::Error::other("the connection to the object store is closed")))
}
