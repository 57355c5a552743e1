//! Scripts and functions: stored by digest or name, run by Lua, each atomically. Knows where a script may run and what
//! it locks; the `lua` crate runs Lua.
//!
//! Start with `analysis`, which says what is certain about a script. A bounded script runs on its client's worker, like
//! any command; any other script starts there on a fiber, and moves to another thread when it becomes long (`detached`,
//! `long_scripts`). A script that declares all its keys locks only their shards; any other script locks everything.
//! `run` takes the locks and provides a `host`, through which the script executes commands; its changes are one batch
//! in the journal.

pub mod analysis;
pub mod detached;
pub mod functions;
mod host;
mod kill_state;
pub mod leaving;
mod long_scripts;
pub mod run;
pub mod threads;
pub mod tidy;

pub use analysis::ScriptAnalysis;
pub use functions::Defined;
pub use functions::{Catalogue, Change, Function, Functions, Library};
pub use long_scripts::{LONG_NS, LongScript};
pub use long_scripts::{LongScripts, ProgramKind, RunningFunction, Unkillable};
pub use threads::ScriptThreads;

use crate::error::CommandError;
use locks::{RwLock, rank};
use lua::{ScriptFlags, Shebang, sha1hex};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Limits of the cache of scripts that came with EVAL: their number, and bytes of source. Beyond that a second-chance
/// (clock) policy evicts. Scripts of SCRIPT LOAD stay, up to a separate limit. Redis has the same number since 7.4.
const EVALUATED_MAX: usize = 500;
const EVALUATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Limits of scripts that SCRIPT LOAD keeps: their number, and bytes of source. SCRIPT LOAD is allowed beyond
/// `maxmemory`, as in Redis, so it needs these limits.
const LOADED_MAX: usize = 65_536;
const LOADED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Scripts, and bytes of source, that one Lua state compiles before it drops them all.
const COMPILED_MAX: usize = 2000;
const COMPILED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A script's digest, in hexadecimal.
pub type Sha = [u8; 40];

/// A script that was analysed.
pub struct Script {
    pub sha: Sha,
    pub source: Box<[u8]>,
    /// The flags of its shebang line; `None` without one.
    pub flags: Option<ScriptFlags>,
    pub analysis: ScriptAnalysis,
    /// It was used since it was added or last spared from eviction.
    used: AtomicBool,
}

/// What EVAL or FCALL runs.
#[derive(Clone)]
pub enum Program {
    Script(Arc<Script>),
    /// A library and the position of the function in it.
    Function(Arc<Library>, usize),
}

impl Program {
    /// The flags that it declares; `None` for a script without any. A function always has flags.
    pub fn flags(&self) -> Option<ScriptFlags> {
        match self {
            Program::Script(script) => script.flags,
            Program::Function(library, at) => Some(library.functions[*at].info.flags),
        }
    }

    pub fn reading(&self) -> ScriptAnalysis {
        match self {
            Program::Script(script) => script.analysis,
            Program::Function(library, at) => library.functions[*at].analysis,
        }
    }

    pub fn kind(&self) -> ProgramKind {
        match self {
            Program::Script(_) => ProgramKind::Script,
            Program::Function(..) => ProgramKind::Function,
        }
    }

    /// The digest of a script, the name of a function.
    pub fn name(&self) -> &[u8] {
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
    /// How often the cache was flushed: a Lua state with an older number flushes its scripts.
    flushes: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct ScriptCache {
    by_sha: HashMap<Sha, Arc<Script>, foldhash::fast::RandomState>,
    /// Scripts that came only with EVAL, oldest first, and the bytes of their sources.
    evaluated: VecDeque<Arc<Script>>,
    evaluated_bytes: usize,
    bytes: usize,
}

/// One worker's Lua state.
pub struct LuaState {
    pub state: lua::State,
    flushes: u64,
    compiled: usize,
    compiled_bytes: usize,
    /// The loaded libraries, with their handles. Weak: it does not keep them alive.
    libraries: Vec<(String, Weak<Library>)>,
    /// It drops dead libraries before it has more than so many.
    libraries_max: usize,
    /// The value of `Library::gone` when it last checked.
    gone: u64,
    /// Collector cycles to go until dropped scripts and libraries are free.
    cycles_left: u8,
}

/// The result of tidying up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tidied {
    Yes,
    NotYet,
    /// Most of its memory is free, but only returned when the state is freed.
    IsSpent,
}

/// Libraries that a Lua state may load before it first checks for dead ones.
const LIBRARIES_MIN: usize = 16;
/// Free memory that a Lua state may keep beyond what it uses.
const FREE_BYTES_KEPT: usize = 1024 * 1024;

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

    /// Caches a script of EVAL.
    pub fn evaluate(&self, source: &[u8]) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        if let Some(script) = self.get(&sha) {
            return Ok(script);
        }
        let script = analyse(sha, source)?;
        let mut cache = self.cache.write();
        // Another thread may have added it first.
        if !cache.by_sha.contains_key(&sha) {
            cache.add(script.clone());
            cache.evaluated_bytes += script.source.len();
            cache.evaluated.push_back(script.clone());
            self.evicted.fetch_add(cache.evict(), Relaxed);
        }
        Ok(script)
    }

    /// Keeps a script for good (SCRIPT LOAD), if there is room for it.
    pub fn load(&self, source: &[u8]) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        let script = match self.get(&sha) {
            Some(known) => known,
            None => analyse(sha, source)?,
        };
        let mut cache = self.cache.write();
        if !cache.is_loaded(&sha) && !cache.has_room_for(source.len()) {
            return Err(CommandError::said(format!(
                "ERR the server keeps {} loaded scripts of {} bytes and takes no more (at most {LOADED_MAX} of \
                 {LOADED_BYTES_MAX} bytes): SCRIPT FLUSH first",
                cache.loaded(),
                cache.loaded_bytes()
            )));
        }
        cache.keep_for_good(&sha);
        cache.add(script.clone());
        Ok(script)
    }

    /// Removes one script.
    pub fn forget(&self, sha: &Sha) {
        let mut cache = self.cache.write();
        cache.keep_for_good(sha);
        cache.remove(sha);
    }

    /// Removes all scripts.
    pub fn flush(&self) {
        *self.cache.write() = ScriptCache::default();
        self.flushes.fetch_add(1, Relaxed);
    }

    /// The number of scripts, and the bytes of their sources.
    pub fn count(&self) -> (usize, usize) {
        let cache = self.cache.read();
        (cache.by_sha.len(), cache.bytes)
    }

    /// How often all scripts were removed.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
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

    /// How many scripts SCRIPT LOAD keeps, and the bytes of their sources.
    fn loaded(&self) -> usize {
        self.by_sha.len() - self.evaluated.len()
    }

    fn loaded_bytes(&self) -> usize {
        self.bytes - self.evaluated_bytes
    }

    /// True when SCRIPT LOAD keeps the script already.
    fn is_loaded(&self, sha: &Sha) -> bool {
        self.by_sha.contains_key(sha) && !self.evaluated.iter().any(|script| script.sha == *sha)
    }

    /// True when SCRIPT LOAD may keep one more, of that length.
    fn has_room_for(&self, source_bytes: usize) -> bool {
        self.loaded() < LOADED_MAX && self.loaded_bytes() + source_bytes <= LOADED_BYTES_MAX
    }

    /// Moves a script from those of EVAL to those of SCRIPT LOAD.
    fn keep_for_good(&mut self, sha: &Sha) {
        if let Some(at) = self.evaluated.iter().position(|script| script.sha == *sha)
            && let Some(script) = self.evaluated.remove(at)
        {
            self.evaluated_bytes -= script.source.len();
        }
    }

    /// Evicts scripts of EVAL until they are within their limits. Returns how many were evicted.
    fn evict(&mut self) -> u64 {
        let mut evicted = 0;
        while self.evaluated.len() > EVALUATED_MAX || self.evaluated_bytes > EVALUATED_BYTES_MAX {
            let Some(script) = self.evaluated.pop_front() else { break };
            // Each is spared once, so this loop ends.
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
    let (source, used) = (source.into(), AtomicBool::new(false));
    Ok(Arc::new(Script { sha, source, flags, analysis, used }))
}

impl LuaState {
    pub(crate) fn new() -> LuaState {
        LuaState {
            state: lua::State::new(lua::Limits::default()),
            flushes: 0,
            compiled: 0,
            compiled_bytes: 0,
            libraries: Vec::new(),
            libraries_max: LIBRARIES_MIN,
            gone: Library::gone(),
            cycles_left: 0,
        }
    }

    /// Loads what the program needs into the state.
    pub fn prepare(&mut self, scripts: &Scripts, program: &Program) -> Result<(), CommandError> {
        match program {
            Program::Script(script) => self.compile(scripts, script),
            Program::Function(library, _) => self.load(library),
        }
    }

    fn load(&mut self, library: &Arc<Library>) -> Result<(), CommandError> {
        if self.state.has_library(&library.handle) {
            return Ok(());
        }
        let loaded = self.state.load_library(&library.handle, &library.code);
        loaded.map_err(|text| CommandError::said(format!("ERR {text}")))?;
        self.note_loaded(library);
        Ok(())
    }

    /// Notes that a library was loaded. Now and then it also drops dead libraries, so that they do not pile up on a
    /// thread without pauses; this costs one or two look-ups for each library loaded.
    fn note_loaded(&mut self, library: &Arc<Library>) {
        if self.libraries.len() >= self.libraries_max {
            self.forget_gone();
            self.libraries_max = (self.libraries.len() * 2).max(LIBRARIES_MIN);
        }
        self.libraries.push((library.handle.clone(), Arc::downgrade(library)));
    }

    /// Drops dead libraries. True when there was one.
    fn forget_gone(&mut self) -> bool {
        let (state, before) = (&mut self.state, self.libraries.len());
        self.libraries.retain(|(handle, library)| {
            let is_there = library.strong_count() > 0;
            if !is_there {
                state.forget_library(handle);
            }
            is_there
        });
        if self.libraries.len() < self.libraries.capacity() / 4 {
            self.libraries.shrink_to(self.libraries.len() * 2);
        }
        self.libraries.len() < before
    }

    /// Frees the remains of dead libraries and of flushed scripts, until `is_over`.
    pub(super) fn tidy(&mut self, scripts: &Scripts, mut is_over: impl FnMut() -> bool) -> Tidied {
        let (gone, flushes) = (Library::gone(), scripts.flushes());
        if (self.gone, self.flushes) != (gone, flushes) {
            self.gone = gone;
            let built_in = Arc::as_ptr(Library::built_in());
            let has_library = self.libraries.iter().any(|(_, one)| one.strong_count() > 0 && one.as_ptr() != built_in);
            let had_library = self.libraries.iter().any(|(_, one)| one.as_ptr() != built_in);
            let is_flushed = self.flushes != flushes && self.compiled > 0;
            if !has_library && (had_library || is_flushed) {
                return Tidied::IsSpent;
            }
            if self.flushes != flushes {
                self.forget_scripts(flushes);
            }
            if self.forget_gone() {
                self.collect_soon();
            }
        }
        while self.cycles_left > 0 {
            if is_over() {
                return Tidied::NotYet;
            }
            self.cycles_left -= u8::from(self.state.collect_some());
            if self.cycles_left == 0 && self.state.footprint_bytes() > self.state.memory_bytes() * 2 + FREE_BYTES_KEPT {
                return Tidied::IsSpent;
            }
        }
        Tidied::Yes
    }

    /// Schedules collector cycles for the next times of tidying up. Two cycles: a current one may have marked the
    /// dropped objects already.
    fn collect_soon(&mut self) {
        self.cycles_left = 2;
    }

    fn forget_scripts(&mut self, flushes: u64) {
        if self.compiled > 0 {
            self.state.forget_all();
            self.collect_soon();
        }
        self.flushes = flushes;
        self.compiled = 0;
        self.compiled_bytes = 0;
    }

    /// Compiles the script, unless the state has it.
    pub fn compile(&mut self, scripts: &Scripts, script: &Script) -> Result<(), CommandError> {
        let flushes = scripts.flushes();
        let is_full = self.compiled > COMPILED_MAX || self.compiled_bytes > COMPILED_BYTES_MAX;
        if self.flushes != flushes || is_full {
            self.forget_scripts(flushes);
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
        let promoted = scripts.load(&source(0)).unwrap();
        let loaded = scripts.load(b"return 'loaded'").unwrap();
        for number in 1..=EVALUATED_MAX + 100 {
            let script = scripts.evaluate(&source(number)).unwrap();
            // One script is used all the time.
            let favourite = scripts.find(&sha1hex(&source(1)));
            assert!(favourite.is_some() && scripts.find(&script.sha[..]).is_some(), "{number}");
            script.used.store(false, Relaxed);
        }
        assert_eq!((scripts.count().0, scripts.evicted()), (EVALUATED_MAX + 2, 100));
        assert!(scripts.find(&promoted.sha).is_some() && scripts.find(&loaded.sha).is_some());
        assert!(scripts.find(&sha1hex(&source(2))).is_none());
    }

    #[test]
    fn few_large_scripts_of_eval_are_cached() {
        let scripts = Scripts::default();
        let comment = "x".repeat(1 << 20);
        for number in 0..40 {
            scripts.evaluate(format!("return {number} --{comment}").as_bytes()).unwrap();
        }
        let (count, bytes) = scripts.count();
        assert!(count < 16 && bytes <= EVALUATED_BYTES_MAX, "{count} of {bytes} bytes");
    }

    fn library(lua: &mut LuaState, name: &str) -> Arc<Library> {
        let code = format!("#!lua name={name}\nredis.register_function('{name}', function() return 1 end)");
        lua.understand(code.as_bytes()).unwrap()
    }

    /// On a thread without pauses, only loading drops dead libraries.
    #[test]
    fn loading_drops_dead_libraries() {
        let mut lua = LuaState::new();
        let kept: Vec<Arc<Library>> = (0..20).map(|number| library(&mut lua, &format!("kept{number}"))).collect();
        for _ in 0..10_000 {
            library(&mut lua, "replaced");
            assert!(lua.libraries.len() <= 2 * kept.len(), "{}", lua.libraries.len());
        }
        assert!(kept.iter().all(|library| lua.state.has_library(&library.handle)));
        // The collector has completed many cycles: the memory of thousands of libraries was reused.
        assert!(lua.state.memory_bytes() < 1024 * 1024, "{}", lua.state.memory_bytes());
    }

    #[test]
    fn tidying_up_frees_dead_libraries_and_scripts_in_slices() {
        let (scripts, mut lua) = (Scripts::default(), LuaState::new());
        let kept = library(&mut lua, "kept");
        let tidy = |lua: &mut LuaState| {
            let mut looks = 0;
            // Every second check of the clock ends a slice.
            let is_over = || {
                looks += 1;
                looks % 2 == 0
            };
            lua.tidy(&scripts, is_over)
        };
        let used_bytes = lua.state.memory_bytes();
        let many: Vec<Arc<Library>> = (0..200).map(|number| library(&mut lua, &format!("l{number}"))).collect();
        let full_bytes = lua.state.memory_bytes();
        assert!(full_bytes > used_bytes + 200 * 200);
        drop(many);
        let mut slices = 1;
        while tidy(&mut lua) == Tidied::NotYet {
            slices += 1;
        }
        assert!(slices > 10, "{slices}");
        assert_eq!(lua.libraries.len(), 1);
        assert!(lua.state.memory_bytes() < (used_bytes + full_bytes) / 2);
        assert!(lua.state.has_library(&kept.handle));
        // Flushed scripts are freed too. The state is freed with the last library, or with the scripts if it has no
        // library.
        let script = scripts.evaluate(b"return 1").unwrap();
        lua.compile(&scripts, &script).unwrap();
        scripts.flush();
        while tidy(&mut lua) == Tidied::NotYet {}
        assert!(!lua.state.has(&script.sha) && lua.state.has_library(&kept.handle));
        drop(kept);
        assert_eq!(tidy(&mut lua), Tidied::IsSpent);
        let mut lua = LuaState::new();
        lua.compile(&scripts, &script).unwrap();
        assert_eq!(tidy(&mut lua), Tidied::Yes);
        scripts.flush();
        assert_eq!(tidy(&mut lua), Tidied::IsSpent);
    }

    #[test]
    fn scripts_are_loaded_up_to_a_number() {
        let scripts = Scripts::default();
        let evaluated = scripts.evaluate(&source(LOADED_MAX)).unwrap();
        (0..LOADED_MAX).for_each(|number| drop(scripts.load(&source(number)).unwrap()));
        let error = scripts.load(&source(LOADED_MAX)).err().unwrap().to_string();
        assert!(error.starts_with("ERR the server keeps 65536 loaded scripts"), "{error}");
        assert!(scripts.load(&source(0)).is_ok(), "it is known");
        assert!(scripts.find(&evaluated.sha).is_some(), "EVAL goes on");
        scripts.flush();
        assert!(scripts.load(&source(LOADED_MAX)).is_ok());
    }

    #[test]
    fn scripts_are_loaded_up_to_so_many_bytes() {
        let scripts = Scripts::default();
        let long = |number: usize| format!("return {number} --{}", "x".repeat(LOADED_BYTES_MAX / 4)).into_bytes();
        (0..3).for_each(|number| drop(scripts.load(&long(number)).unwrap()));
        assert!(scripts.load(&long(3)).is_err());
        assert!(scripts.load(b"return 1").is_ok(), "a short one fits");
    }
}
