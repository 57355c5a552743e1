//! Scripts and functions: stored by digest or name, run by Lua, each atomically. Knows where a script may run and what
//! it locks; running Lua is up to the `lua` crate.
//!
//! The way through: `analysis` says what is certain about a script. One that is bounded, or has been quick for a while (`pace`), runs
//! where its client is served; any other runs on the script thread, where it can be stopped (`script_thread`). One that declares all its keys locks just
//! their shards; any other locks everything. `commands::scripting` gives it its locks and a host, through which it
//! executes commands; what it has changed is one batch in the journal.

mod analysis;
mod functions;
mod pace;
mod script_thread;

pub use analysis::ScriptAnalysis;
pub use functions::{Catalogue, Change, Function, Functions, Library};
pub(crate) use pace::{GIVEN_UP_NS, Pace};
pub use script_thread::{Job, ProgramKind, RunningFunction, ScriptThread, Unkillable};

use crate::error::CommandError;
use locks::{RwLock, rank};
use lua::{ScriptFlags, Shebang, sha1hex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The cache of scripts that only EVAL has brought: at most so many, and so many bytes of source. Beyond that a
/// second-chance (clock) policy evicts. Scripts of SCRIPT LOAD stay. Redis has the same number since 7.4.
const EVALUATED_MAX: usize = 500;
const EVALUATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Scripts, and bytes of source, compiled in one Lua state before it forgets them all.
const COMPILED_MAX: usize = 2000;
const COMPILED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A script's digest, in hexadecimal.
pub type Sha = [u8; 40];

/// A script that was understood.
pub struct Script {
    pub sha: Sha,
    pub source: Box<[u8]>,
    /// The flags of its shebang line; `None` without one.
    pub flags: Option<ScriptFlags>,
    pub analysis: ScriptAnalysis,
    pub(crate) pace: Pace,
    /// It was used since it was added or last spared from eviction.
    used: AtomicBool,
}

/// What EVAL or FCALL runs.
#[derive(Clone)]
pub enum Program {
    Script(Arc<Script>),
    /// A library and the place of the function in it.
    Function(Arc<Library>, usize),
}

impl Program {
    /// The flags that it declares; `None` for a script without any. A function always has some.
    pub(crate) fn flags(&self) -> Option<ScriptFlags> {
        match self {
            Program::Script(script) => script.flags,
            Program::Function(library, at) => Some(library.functions[*at].info.flags),
        }
    }

    pub(crate) fn reading(&self) -> ScriptAnalysis {
        match self {
            Program::Script(script) => script.analysis,
            Program::Function(library, at) => library.functions[*at].analysis,
        }
    }

    pub(crate) fn pace(&self) -> &Pace {
        match self {
            Program::Script(script) => &script.pace,
            Program::Function(library, at) => &library.functions[*at].pace,
        }
    }

    /// The digest of a script, the name of a function.
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Program::Script(script) => &script.sha,
            Program::Function(library, at) => library.functions[*at].info.name.as_bytes(),
        }
    }
}

/// All scripts by their digest.
#[derive(Default)]
pub struct Scripts {
    cache: RwLock<ScriptCache, { rank::SCRIPTS }>,
    /// How often the cache was flushed: Lua states with an older number flush theirs.
    flushes: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct ScriptCache {
    by_sha: HashMap<Sha, Arc<Script>, foldhash::fast::RandomState>,
    /// Scripts that only EVAL has brought, oldest first, and the bytes of their sources.
    evaluated: VecDeque<Arc<Script>>,
    evaluated_bytes: usize,
    bytes: usize,
}

/// One worker's Lua state.
pub(crate) struct LuaState {
    pub(crate) state: lua::State,
    flushes: u64,
    compiled: usize,
    compiled_bytes: usize,
    /// Handles of the libraries that it has loaded, and the catalogue that they are of.
    libraries: Vec<String>,
    generation: u64,
}

impl Scripts {
    /// The script of that digest, in any case.
    pub fn find(&self, sha: &[u8]) -> Option<Arc<Script>> {
        let mut sha: Sha = sha.try_into().ok()?;
        sha.make_ascii_lowercase();
        self.get(&sha)
    }

    fn get(&self, sha: &Sha) -> Option<Arc<Script>> {
        let script = self.cache.read().by_sha.get(sha).cloned()?;
        if !script.used.load(Relaxed) {
            script.used.store(true, Relaxed);
        }
        Some(script)
    }

    /// Keeps a script that EVAL was given.
    pub fn evaluate(&self, source: &[u8]) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        if let Some(script) = self.get(&sha) {
            return Ok(script);
        }
        let script = analyse(sha, source)?;
        let mut cache = self.cache.write();
        // Another thread may have been first.
        if !cache.by_sha.contains_key(&sha) {
            cache.add(script.clone());
            cache.evaluated_bytes += script.source.len();
            cache.evaluated.push_back(script.clone());
            self.evicted.fetch_add(cache.evict(), Relaxed);
        }
        Ok(script)
    }

    /// Keeps a script for good (SCRIPT LOAD). `may_grow` says whether there is memory for one that is new.
    pub fn load(
        &self,
        source: &[u8],
        may_grow: impl FnOnce() -> Result<(), CommandError>,
    ) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        let script = match self.get(&sha) {
            Some(known) => known,
            None => {
                may_grow()?;
                analyse(sha, source)?
            }
        };
        let mut cache = self.cache.write();
        cache.keep_for_good(&sha);
        cache.add(script.clone());
        Ok(script)
    }

    /// Forgets one script.
    pub(crate) fn forget(&self, sha: &Sha) {
        let mut cache = self.cache.write();
        cache.keep_for_good(sha);
        cache.remove(sha);
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        *self.cache.write() = ScriptCache::default();
        self.flushes.fetch_add(1, Relaxed);
    }

    /// How many there are, and the bytes of their sources.
    pub fn count(&self) -> (usize, usize) {
        let cache = self.cache.read();
        (cache.by_sha.len(), cache.bytes)
    }

    /// How many scripts were evicted since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }
}

impl ScriptCache {
    fn add(&mut self, script: Arc<Script>) {
        self.bytes += script.source.len();
        if let Some(before) = self.by_sha.insert(script.sha, script) {
            self.bytes -= before.source.len();
        }
    }

    /// The script is no longer one that EVAL has brought.
    fn keep_for_good(&mut self, sha: &Sha) {
        if let Some(at) = self.evaluated.iter().position(|script| script.sha == *sha)
            && let Some(script) = self.evaluated.remove(at)
        {
            self.evaluated_bytes -= script.source.len();
        }
    }

    /// Removes scripts that EVAL has brought until few enough are left. Returns how many that were.
    fn evict(&mut self) -> u64 {
        let mut evicted = 0;
        while self.evaluated.len() > EVALUATED_MAX || self.evaluated_bytes > EVALUATED_BYTES_MAX {
            let Some(script) = self.evaluated.pop_front() else { break };
            // Each is spared once, so this ends.
            if script.used.swap(false, Relaxed) {
                self.evaluated.push_back(script);
                continue;
            }
            self.evaluated_bytes -= script.source.len();
            self.remove(&script.sha);
            evicted += 1;
        }
        evicted
    }

    fn remove(&mut self, sha: &Sha) {
        if let Some(script) = self.by_sha.remove(sha) {
            self.bytes -= script.source.len();
        }
    }
}

/// Analyses a script without running it. It is compiled later, by a Lua state.
fn analyse(sha: Sha, source: &[u8]) -> Result<Arc<Script>, CommandError> {
    let shebang = Shebang::of_script(source).map_err(|text| CommandError::said(format!("ERR {text}")))?;
    let (flags, analysis) = (shebang.flags, ScriptAnalysis::of(source));
    let (source, pace, used) = (source.into(), Pace::default(), AtomicBool::new(false));
    Ok(Arc::new(Script { sha, source, flags, analysis, pace, used }))
}

impl LuaState {
    pub(crate) fn new() -> LuaState {
        let state = lua::State::new(lua::Limits::default());
        LuaState { state, flushes: 0, compiled: 0, compiled_bytes: 0, libraries: Vec::new(), generation: 0 }
    }

    /// Makes sure that the state knows what it is to run.
    pub(crate) fn prepare(
        &mut self,
        scripts: &Scripts,
        functions: &Functions,
        program: &Program,
    ) -> Result<(), CommandError> {
        match program {
            Program::Script(script) => self.compile(scripts, script),
            Program::Function(library, _) => self.load(functions, library),
        }
    }

    fn load(&mut self, functions: &Functions, library: &Library) -> Result<(), CommandError> {
        if self.state.has_library(&library.handle) {
            return Ok(());
        }
        let catalogue = functions.catalogue();
        if self.generation != catalogue.generation {
            self.generation = catalogue.generation;
            let state = &mut self.state;
            self.libraries.retain(|handle| {
                let known = catalogue.knows(handle);
                if !known {
                    state.forget_library(handle);
                }
                known
            });
        }
        let loaded = self.state.load_library(&library.handle, &library.code);
        loaded.map_err(|text| CommandError::said(format!("ERR {text}")))?;
        self.libraries.push(library.handle.clone());
        Ok(())
    }

    /// Makes sure that the state has the script compiled.
    pub(crate) fn compile(&mut self, scripts: &Scripts, script: &Script) -> Result<(), CommandError> {
        let flushes = scripts.flushes.load(Relaxed);
        let is_full = self.compiled > COMPILED_MAX || self.compiled_bytes > COMPILED_BYTES_MAX;
        if self.flushes != flushes || is_full {
            self.state.forget_all();
            self.flushes = flushes;
            self.compiled = 0;
            self.compiled_bytes = 0;
        }
        if !self.state.has(&script.sha) {
            self.state.load(&script.sha, &script.source).map_err(CommandError::said)?;
            self.compiled += 1;
            self.compiled_bytes += script.source.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: usize) -> Vec<u8> {
        format!("return {number}").into_bytes()
    }

    #[test]
    fn scripts_of_eval_make_room_for_others_and_loaded_ones_stay() {
        let scripts = Scripts::default();
        scripts.evaluate(&source(0)).unwrap();
        let promoted = scripts.load(&source(0), || panic!("it is known")).unwrap();
        let loaded = scripts.load(b"return 'loaded'", || Ok(())).unwrap();
        for number in 1..=EVALUATED_MAX + 100 {
            let script = scripts.evaluate(&source(number)).unwrap();
            // One is used all the time.
            let favourite = scripts.find(&sha1hex(&source(1)));
            assert!(favourite.is_some() && scripts.find(&script.sha[..]).is_some(), "{number}");
            script.used.store(false, Relaxed);
        }
        assert_eq!((scripts.count().0, scripts.evicted()), (EVALUATED_MAX + 2, 100));
        assert!(scripts.find(&promoted.sha).is_some() && scripts.find(&loaded.sha).is_some());
        assert!(scripts.find(&sha1hex(&source(2))).is_none());
    }

    #[test]
    fn large_scripts_of_eval_are_few() {
        let scripts = Scripts::default();
        let comment = "x".repeat(1 << 20);
        for number in 0..40 {
            scripts.evaluate(format!("return {number} --{comment}").as_bytes()).unwrap();
        }
        let (count, bytes) = scripts.count();
        assert!(count < 16 && bytes <= EVALUATED_BYTES_MAX, "{count} of {bytes} bytes");
    }

    #[test]
    fn a_new_script_is_loaded_only_where_there_is_memory() {
        let scripts = Scripts::default();
        let refused = scripts.load(&source(1), || Err(CommandError::OutOfMemory));
        assert!(refused.is_err() && scripts.count().0 == 0);
    }
}
