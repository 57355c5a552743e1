//! A flat directory of files: the interface, an implementation on a disk, and one in memory with injected faults.

mod directory;
mod faulty;
mod file_system;

pub use directory::{Directory, DirectoryLock, LockError};
pub use faulty::{Fault, FaultyStorage, Site};
pub use file_system::{Storage, StorageFile};
pub(crate) use file_system::{is_want_of_space, read_full_at, write_all_at};
