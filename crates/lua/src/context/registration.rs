//! A function that a library registered. Refuses to know how it is registered or called.

use std::ffi::c_int;

use crate::shebang::ScriptFlags;

/// A function that a library registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    pub description: Option<Vec<u8>>,
    pub flags: ScriptFlags,
}

pub(crate) struct Registration {
    pub(crate) info: FunctionInfo,
    /// The function, kept in the registry.
    pub(crate) function: c_int,
}
