//! What the operating system and the allocator offer: memory, clocks, descriptors, CPU time, the log. Knows nothing of the
//! server.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod huge_pages;
pub(crate) mod logging;
pub(crate) mod threads;
pub(crate) mod usage;
