//! What a thread asks of the scheduler. Knows nothing of what the thread does.

/// Lowers the priority of this thread: it gets what the workers leave over.
pub(crate) fn lower_priority() {
    let thread = rustix::thread::gettid();
    let _ = rustix::process::setpriority_process(Some(thread), 10);
}
