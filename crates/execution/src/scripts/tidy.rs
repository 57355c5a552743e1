//! Frees the remains of dropped libraries and flushed scripts in Lua states.

use super::{Library, Tidied};
use crate::engine::Engine;
use crate::slices::LazyTimeSlice;
use crate::worker::Worker;
use keyspace::garbage::Garbage;

/// Frees the remains of dropped libraries and flushed scripts in a thread's Lua state, for a slice of time. True when
/// there is more to do. Called between requests.
pub fn tidy_lua(engine: &Engine, worker: &mut Worker) -> bool {
    let Some(lua) = &mut worker.lua else { return false };
    let mut slice = LazyTimeSlice::new(engine);
    match lua.tidy(&engine.scripting.scripts, || slice.is_over()) {
        Tidied::Yes => false,
        Tidied::NotYet => true,
        Tidied::IsSpent => {
            free_lua(engine, worker);
            false
        }
    }
}

/// Frees a thread's Lua state; the next script creates another.
pub fn free_lua(engine: &Engine, worker: &mut Worker) {
    if let Some(lua) = worker.lua.take() {
        engine.free(Garbage::of(lua));
    }
}

/// Makes the script thread tidy up: it sleeps while there is no script.
pub fn wake_to_tidy(engine: &Engine) {
    engine.scripting.threads.wake_to_tidy(Library::gone() + engine.scripting.scripts.flushes());
}
