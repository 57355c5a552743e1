//! Scripts and functions: kept by digest or name, run by Lua, each as one step. Knows where a script may run and what it locks; what Lua
//! is like is the business of the `lua` crate.
//!
//! The way through: `reading` says what is certain about a script. One that is brief runs where its client is served;
//! any other runs apart, on a thread of its own, so that it can be stopped (`apart`). One that keeps to its keys locks
//! just their shards; any other locks everything. `run` gives it its locks and a `host`, through which it executes
//! commands; what it has changed is one batch in the journal.

mod apart;
mod functions;
mod host;
mod reading;
mod run;

pub use apart::{Apart, Job, ProgramKind, RunningFunction, Unkillable};
pub use functions::{Catalogue, Change, Function, Functions, Library};
pub use reading::Reading;

use crate::engine::Engine;
use crate::error::CommandError;
use lua::{ScriptFlags, Shebang, sha1hex};
use parking_lot::RwLock;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Scripts that were only ever given to EVAL: so many are kept, then the oldest goes. Those of SCRIPT LOAD stay.
const EVALUATED_MAX: usize = 500;
/// Scripts compiled in one Lua state before it forgets them all.
const COMPILED_MAX: usize = 2000;

/// A script's digest, in hexadecimal.
pub type Sha = [u8; 40];

/// A script that was understood.
pub struct Script {
    pub sha: Sha,
    pub source: Box<[u8]>,
    /// What its first line demands; `None` when it has no such line.
    pub flags: Option<ScriptFlags>,
    pub reading: Reading,
}

/// What EVAL or FCALL runs.
#[derive(Clone)]
pub enum Program {
    Script(Arc<Script>),
    /// A library and the place of the function in it.
    Function(Arc<Library>, usize),
}

impl Program {
    /// What it says of itself; `None` when it says nothing and gets by without: a function cannot.
    pub(crate) fn flags(&self) -> Option<ScriptFlags> {
        match self {
            Program::Script(script) => script.flags,
            Program::Function(library, at) => Some(library.functions[*at].info.flags),
        }
    }

    pub(crate) fn reading(&self) -> Reading {
        match self {
            Program::Script(script) => script.reading,
            Program::Function(library, at) => library.functions[*at].reading,
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
    kept: RwLock<Kept>,
    /// How often all were forgotten: Lua states that know an older number forget theirs.
    flushes: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct Kept {
    by_sha: HashMap<Sha, Arc<Script>, foldhash::fast::RandomState>,
    /// Digests of those that only EVAL has brought, oldest first.
    evaluated: VecDeque<Sha>,
    bytes: usize,
}

/// One worker's Lua state.
pub(crate) struct LuaState {
    pub(crate) state: lua::State,
    flushes: u64,
    compiled: usize,
    /// Handles of the libraries that it has loaded, and the catalogue that they are of.
    libraries: Vec<String>,
    generation: u64,
}

impl Scripts {
    /// The script of that digest, in any case.
    pub fn find(&self, sha: &[u8]) -> Option<Arc<Script>> {
        let mut sha: Sha = sha.try_into().ok()?;
        sha.make_ascii_lowercase();
        self.kept.read().by_sha.get(&sha).cloned()
    }

    /// Keeps a script that EVAL was given.
    pub fn evaluate(&self, source: &[u8]) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        if let Some(script) = self.kept.read().by_sha.get(&sha) {
            return Ok(script.clone());
        }
        let script = understand(sha, source)?;
        let mut kept = self.kept.write();
        kept.add(script.clone());
        kept.evaluated.push_back(sha);
        if kept.evaluated.len() > EVALUATED_MAX
            && let Some(oldest) = kept.evaluated.pop_front()
        {
            kept.remove(&oldest);
            self.evicted.fetch_add(1, Relaxed);
        }
        Ok(script)
    }

    /// Keeps a script for good (SCRIPT LOAD).
    pub fn load(&self, source: &[u8]) -> Result<Arc<Script>, CommandError> {
        let sha = sha1hex(source);
        let known = self.kept.read().by_sha.get(&sha).cloned();
        let script = known.map_or_else(|| understand(sha, source), Ok)?;
        let mut kept = self.kept.write();
        kept.evaluated.retain(|evaluated| *evaluated != sha);
        kept.add(script.clone());
        Ok(script)
    }

    /// Forgets one script.
    pub(crate) fn forget(&self, sha: &Sha) {
        let mut kept = self.kept.write();
        kept.evaluated.retain(|evaluated| evaluated != sha);
        kept.remove(sha);
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        *self.kept.write() = Kept::default();
        self.flushes.fetch_add(1, Relaxed);
    }

    /// How many there are, and the bytes of their sources.
    pub fn count(&self) -> (usize, usize) {
        let kept = self.kept.read();
        (kept.by_sha.len(), kept.bytes)
    }

    /// How many have gone to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }
}

impl Kept {
    fn add(&mut self, script: Arc<Script>) {
        self.bytes += script.source.len();
        if let Some(before) = self.by_sha.insert(script.sha, script) {
            self.bytes -= before.source.len();
        }
    }

    fn remove(&mut self, sha: &Sha) {
        if let Some(script) = self.by_sha.remove(sha) {
            self.bytes -= script.source.len();
        }
    }
}

/// Reads what can be known of a script without running it. Whether it compiles is found out by a Lua state.
fn understand(sha: Sha, source: &[u8]) -> Result<Arc<Script>, CommandError> {
    let shebang = Shebang::of_script(source).map_err(|text| CommandError::said(format!("ERR {text}")))?;
    Ok(Arc::new(Script { sha, source: source.into(), flags: shebang.flags, reading: Reading::of(source) }))
}

impl LuaState {
    pub(crate) fn new() -> LuaState {
        let state = lua::State::new(lua::Limits::default());
        LuaState { state, flushes: 0, compiled: 0, libraries: Vec::new(), generation: 0 }
    }

    /// Makes sure that the state knows what it is to run.
    pub(crate) fn prepare(&mut self, engine: &Engine, program: &Program) -> Result<(), CommandError> {
        match program {
            Program::Script(script) => self.compile(&engine.scripts, script),
            Program::Function(library, _) => self.load(&engine.functions, library),
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
        if self.flushes != flushes || self.compiled > COMPILED_MAX {
            self.state.forget_all();
            self.flushes = flushes;
            self.compiled = 0;
        }
        if !self.state.has(&script.sha) {
            self.state.load(&script.sha, &script.source).map_err(CommandError::said)?;
            self.compiled += 1;
        }
        Ok(())
    }
}
