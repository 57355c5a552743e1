//! The interface of an object store. Knows nothing of snapshots.

use std::io;

/// Keeps named objects, each of which appears whole or not at all. Calls wait for the answer.
pub trait Objects: Send + Sync {
    fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()>;
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn list(&self) -> io::Result<Vec<String>>;
}
