//! The progress of an import. Plain numbers.

/// The progress of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportProgress {
    pub(crate) bytes: u64,
    pub(crate) bytes_total: u64,
    /// Keys and commands.
    pub(crate) records: u64,
}
