//! A flat directory of files: the interface, an implementation on a disk, and one in memory with injected faults.

mod directory;
mod faulty;
mod file_system;
mod lock;
#[allow(unsafe_code, reason = "it maps a file into memory")]
mod mapping;

pub use directory::Directory;
pub(crate) use directory::FENCE_FILE;
pub use faulty::{Fault, FaultyStorage, Site};
pub use file_system::{Storage, StorageFile};
pub(crate) use file_system::{is_want_of_space, read_full_at, write_all_at};
pub(crate) use lock::LOCK_FILES;
pub use lock::{DirectoryLock, LockError};
pub(crate) use mapping::{read_word, replace};
