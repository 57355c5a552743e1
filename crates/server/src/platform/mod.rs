//! What the operating system and the allocator offer: memory, clocks, descriptors, CPU time, the log. Knows nothing of
//! the server.

#[allow(unsafe_code, reason = "an allocator is unsafe to write, and jemalloc to ask")]
pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod huge_pages;
pub(crate) mod logging;
pub(crate) mod service_manager;
pub(crate) mod sockets;
pub(crate) mod threads;
pub(crate) mod usage;
