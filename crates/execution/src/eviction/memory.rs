//! Memory in use against `maxmemory`. Refuses to know how keys are removed.

use crate::conditions;
use crate::engine::Engine;
use crate::settings::MaxmemoryPolicy;
use std::sync::atomic::Ordering::Relaxed;

/// True when memory in use is beyond the limit and no key can be removed to change that.
pub fn is_out_of_memory(engine: &Engine) -> bool {
    is_over_limit(engine) && (!may_evict(engine) || engine.eviction.has_nothing_left.load(Relaxed))
}

/// True when more than `maxmemory` is in use: caches of free memory are then given back.
pub fn is_short_of_memory(engine: &Engine) -> bool {
    let limit = engine.settings.maxmemory();
    limit != 0 && engine.host.used_memory() > limit
}

pub fn is_over_limit(engine: &Engine) -> bool {
    engine.host.used_memory() > engine.settings.maxmemory() && excess_bytes(engine) > 0
}

pub fn may_evict(engine: &Engine) -> bool {
    engine.settings.maxmemory_policy() != MaxmemoryPolicy::NoEviction && conditions::may_expire(engine)
}

/// How many bytes beyond the limit are in use, not counting messages that clients are about to take. As in Redis,
/// memory of scripts is not counted: a large script does not block writes. Nor are the buffers of the journal: each removed
/// key adds to them, so that removing more keys would free nothing until the journal is written.
pub fn excess_bytes(engine: &Engine) -> u64 {
    let used = engine.host.used_memory().saturating_sub(lua::total_bytes() as u64);
    match used.saturating_sub(engine.settings.maxmemory()) {
        0 => 0,
        excess => excess
            .saturating_sub(engine.persistence.buffer_bytes())
            .saturating_sub(engine.eviction.on_its_way(engine.clock.monotonic_ns())),
    }
}
