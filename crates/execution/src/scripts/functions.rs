//! The catalogue of function libraries. Knows names and source code; the `lua` crate runs it, `keyspace::definitions`
//! stores it.
//!
//! One library is part of the server (`holdfast.lua`): its functions can always be called. Clients cannot delete it,
//! and it does not reserve names: a loaded function of the same name takes precedence.

use super::{LuaState, Program, ScriptAnalysis};
use locks::{RwLock, rank};
use lua::FunctionInfo;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The loading time beyond which a library is slow to load.
const SLOW_LOAD: Duration = Duration::from_millis(1);

/// How many libraries are gone: deleted, replaced or refused, and no longer running.
static GONE: AtomicU64 = AtomicU64::new(0);

/// A library that was loaded successfully.
pub struct Library {
    pub name: String,
    pub code: Arc<[u8]>,
    pub functions: Vec<Function>,
    /// Its unique handle in Lua states: different for every library and every version of its code.
    pub handle: String,
    /// Its code took long when it was first run.
    pub is_slow_to_load: bool,
}

/// One function of a library.
pub struct Function {
    pub info: FunctionInfo,
    pub analysis: ScriptAnalysis,
}

/// A change of the catalogue.
#[derive(Clone)]
pub enum Change {
    Set(Arc<Library>),
    Delete(String),
}

/// All libraries at one instant.
#[derive(Clone, Default)]
pub struct Catalogue {
    libraries: BTreeMap<String, Arc<Library>>,
    /// The library and position of each function, by its name in lower case: calls ignore case.
    functions: HashMap<String, (Arc<Library>, usize)>,
    code_bytes: usize,
    /// How many libraries take long to load.
    slow_count: usize,
}

/// The current catalogue.
#[derive(Default)]
pub struct Functions {
    current: RwLock<Current, { rank::FUNCTIONS }>,
    /// A library takes long to load.
    any_slow: AtomicBool,
}

#[derive(Default)]
struct Current {
    /// Changed in place unless a reader holds a reference.
    catalogue: Arc<Catalogue>,
    /// Libraries that a command has compiled, and that are about to be defined.
    expected: Vec<Arc<Library>>,
}

/// The library that is part of the server.
static BUILT_IN: LazyLock<Arc<Library>> = LazyLock::new(|| {
    let code: &[u8] = include_bytes!("holdfast.lua");
    let library = LuaState::new().understand(code);
    library.unwrap_or_else(|error| panic!("the library that is part of the server: {error}"))
});

impl Library {
    /// The library that is part of the server.
    pub fn built_in() -> &'static Arc<Library> {
        &BUILT_IN
    }

    /// How many libraries of this process are gone. When it changes, Lua states may have one to drop.
    pub fn gone() -> u64 {
        GONE.load(Relaxed)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        GONE.fetch_add(1, Relaxed);
    }
}

/// The result of defining a library.
pub struct Defined {
    /// The library that had the name before, to be freed outside the request path.
    pub went: Option<Arc<Library>>,
    /// Why the code does not compile, if so: it is stored, but cannot be called.
    pub failure: Option<String>,
}

impl Functions {
    /// The current catalogue.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.current.read().catalogue.clone()
    }

    /// The function of that name.
    pub fn find(&self, name: &[u8]) -> Option<Program> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        if let Some((library, at)) = self.current.read().catalogue.functions.get(&name) {
            return Some(Program::Function(library.clone(), *at));
        }
        let at = BUILT_IN.functions.iter().position(|function| function.info.name == name)?;
        Some(Program::Function(BUILT_IN.clone(), at))
    }

    /// Adds a library that is compiled already and about to be defined.
    pub fn expect(&self, library: &Arc<Library>) {
        self.current.write().expected.push(library.clone());
    }

    /// Applies the definition of a library to the live catalogue: loads this code, or removes the library.
    pub fn define(&self, name: &[u8], code: Option<&[u8]>) -> Defined {
        let name = String::from_utf8_lossy(name).into_owned();
        let expected = code.and_then(|code| {
            let expected = &mut self.current.write().expected;
            let at = expected.iter().position(|library| library.name == name && *library.code == *code);
            at.map(|at| expected.swap_remove(at))
        });
        let (change, failure) = match (expected, code) {
            (Some(library), _) => (Change::Set(library), None),
            (None, Some(code)) => match LuaState::new().understand(code) {
                Ok(library) => (Change::Set(library), None),
                // Not the library that had the name before: its code is no longer stored.
                Err(why) => (Change::Delete(name), Some(why)),
            },
            (None, None) => (Change::Delete(name), None),
        };
        let current = &mut *self.current.write();
        let went = Arc::make_mut(&mut current.catalogue).apply(change);
        self.any_slow.store(current.catalogue.slow_count > 0, Relaxed);
        Defined { went, failure }
    }

    fn set(&self, catalogue: Catalogue) {
        let current = &mut *self.current.write();
        self.any_slow.store(catalogue.slow_count > 0, Relaxed);
        current.catalogue = Arc::new(catalogue);
    }

    /// True when a library takes long to load. It loads where one of its functions is called first.
    pub fn any_slow(&self) -> bool {
        self.any_slow.load(Relaxed)
    }
}

impl Catalogue {
    /// All libraries that were loaded, by name.
    pub fn libraries(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// The library of that name.
    pub fn library(&self, name: &[u8]) -> Option<&Arc<Library>> {
        self.libraries.get(std::str::from_utf8(name).ok()?)
    }

    /// How many libraries there are.
    pub fn library_count(&self) -> usize {
        self.libraries.len()
    }

    /// The bytes of their code.
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// The name of a function that another library has already; `None` when the library can be added.
    pub fn clash<'l>(&self, library: &'l Library) -> Option<&'l str> {
        library.functions.iter().map(|function| function.info.name.as_str()).find(|name| {
            let taken = self.functions.get(&name.to_ascii_lowercase());
            taken.is_some_and(|(other, _)| other.name != library.name)
        })
    }

    /// Makes one change; the cost does not depend on the number of libraries. Returns the library that had the name
    /// before.
    pub fn apply(&mut self, change: Change) -> Option<Arc<Library>> {
        let went = match &change {
            Change::Set(library) => self.libraries.remove(&library.name),
            Change::Delete(name) => self.libraries.remove(name),
        };
        if let Some(went) = &went {
            self.code_bytes -= went.code.len();
            self.slow_count -= usize::from(went.is_slow_to_load);
            for function in &went.functions {
                let name = function.info.name.to_ascii_lowercase();
                // Another library may have taken the name: when several are restored together, one may get a function
                // that another gives up.
                if self.functions.get(&name).is_some_and(|(of, _)| Arc::ptr_eq(of, went)) {
                    self.functions.remove(&name);
                }
            }
        }
        if let Change::Set(library) = change {
            self.code_bytes += library.code.len();
            self.slow_count += usize::from(library.is_slow_to_load);
            // Of two names that differ only in case, the first one is called.
            for (at, function) in library.functions.iter().enumerate().rev() {
                self.functions.insert(function.info.name.to_ascii_lowercase(), (library.clone(), at));
            }
            self.libraries.insert(library.name.clone(), library);
        }
        self.give_memory_back();
        went
    }

    /// Shrinks the table when most functions are gone.
    fn give_memory_back(&mut self) {
        if self.functions.capacity() > 64 && self.functions.len() < self.functions.capacity() / 8 {
            self.functions.shrink_to(self.functions.len() * 2);
        }
    }
}

/// The next unique number.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl LuaState {
    /// Loads a library into this Lua state, where it registers its functions. The error is a reply's text without its
    /// code.
    pub fn understand(&mut self, code: &[u8]) -> Result<Arc<Library>, String> {
        let name = name_of(code)?;
        let handle = format!("{name} {}", next_number());
        let registered = self.state.load_library(&handle, code)?;
        let is_slow_to_load = self.state.last_load() > SLOW_LOAD;
        let analyses = ScriptAnalysis::of_library(code);
        let functions = registered.into_iter().map(|info| {
            let analysis = analyses.get(info.name.as_str()).copied().unwrap_or_default();
            Function { info, analysis }
        });
        let library =
            Arc::new(Library { name, code: code.into(), functions: functions.collect(), handle, is_slow_to_load });
        self.note_loaded(&library);
        Ok(library)
    }
}

/// The name that a library's first line gives it.
fn name_of(code: &[u8]) -> Result<String, String> {
    let Some(line) = code.strip_prefix(b"#!") else { return Err("Missing library metadata".into()) };
    let invalid = || "Invalid library metadata".to_owned();
    let end = memchr::memchr2(b'\n', 0, line).filter(|end| line[*end] == b'\n').ok_or_else(invalid)?;
    let words = resp::split_line(&line[..end]).map_err(|_| invalid())?;
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let (engine, options) = match words.split_first() {
        // White space before the engine's name: the word is `#!` alone.
        Some(_) if line[..end].first().is_some_and(u8::is_ascii_whitespace) => (String::new(), &words[..]),
        Some((engine, options)) => (text(engine), options),
        None => (String::new(), &[][..]),
    };
    let mut name = None;
    for option in options {
        let value = option.get(..5).filter(|head| head.eq_ignore_ascii_case(b"name=")).map(|_| &option[5..]);
        match value {
            Some(_) if name.is_some() => {
                return Err("Invalid metadata value, name argument was given multiple times".into());
            }
            Some(value) => name = Some(value),
            None => return Err(format!("Invalid metadata value given: {}", text(option))),
        }
    }
    let name = name.ok_or_else(|| "Library name was not given".to_owned())?;
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return Err(
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
                .into(),
        );
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("Engine '{engine}' not found"));
    }
    Ok(text(name))
}

impl Functions {
    /// Makes the functions of these libraries, and no others, callable. Returns why some libraries cannot be compiled;
    /// those stay stored.
    pub fn revive(&self, kept: Vec<(Vec<u8>, Arc<[u8]>)>) -> Vec<String> {
        if kept.is_empty() {
            return Vec::new();
        }
        let (mut lua, mut catalogue, mut failures) = (LuaState::new(), Catalogue::default(), Vec::new());
        for (name, code) in kept {
            match lua.understand(&code) {
                Ok(library) => drop(catalogue.apply(Change::Set(library))),
                Err(error) => failures.push(format!("library {}: {error}", String::from_utf8_lossy(&name))),
            }
        }
        self.set(catalogue);
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_names_the_library() {
        assert_eq!(name_of(b"#!lua name=mine\n"), Ok("mine".into()));
        assert_eq!(name_of(b"#!LUA NAME='m_1'\r\n"), Ok("m_1".into()));
        for (code, error) in [
            (&b"return 1"[..], "Missing library metadata"),
            (b"#!lua name=x", "Invalid library metadata"),
            (b"#!lua name='x\n", "Invalid library metadata"),
            (b"#!lua name=x\0\n", "Invalid library metadata"),
            (b"#!lua\n", "Library name was not given"),
            (b"#!lua name=a name=b\n", "Invalid metadata value, name argument was given multiple times"),
            (b"#!lua flags=x\n", "Invalid metadata value given: flags=x"),
            (b"#!js name=x\n", "Engine 'js' not found"),
            (b"#! lua name=x\n", "Invalid metadata value given: lua"),
        ] {
            assert_eq!(name_of(code), Err(error.into()), "{}", String::from_utf8_lossy(code));
        }
        assert!(name_of(b"#!lua name=a-b\n").unwrap_err().starts_with("Library names can only"));
    }

    /// A stored library that does not compile cannot be called, and neither can the one that had its name before.
    #[test]
    fn a_library_that_does_not_compile_replaces_the_one_before() {
        let functions = Functions::default();
        let defined = functions.define(b"l", Some(b"#!lua name=l\nredis.register_function('f', function() end)"));
        assert!(defined.failure.is_none() && functions.find(b"f").is_some());
        let defined = functions.define(b"l", Some(b"#!lua name=l\nnothing.that.is.known()"));
        assert!(defined.failure.is_some() && functions.find(b"f").is_none());
    }

    fn library(lua: &mut LuaState, name: &str, functions: &[&str]) -> Arc<Library> {
        let code: String =
            functions.iter().map(|name| format!("redis.register_function('{name}', function() end)\n")).collect();
        lua.understand(format!("#!lua name={name}\n{code}").as_bytes()).unwrap()
    }

    #[test]
    fn restored_libraries_may_exchange_their_functions() {
        let (mut lua, mut catalogue) = (LuaState::new(), Catalogue::default());
        for (name, functions) in [("a", ["f", "x"]), ("b", ["g", "y"]), ("a", ["g", "x"]), ("b", ["f", "y"])] {
            catalogue.apply(Change::Set(library(&mut lua, name, &functions)));
        }
        let found = ["f", "g", "x", "y"].map(|name| catalogue.functions[name].0.name.clone());
        assert_eq!(found, ["b", "a", "a", "b"]);
        assert_eq!((catalogue.library_count(), catalogue.function_count()), (2, 4));
        for name in ["a", "b"] {
            assert!(catalogue.apply(Change::Delete(name.into())).is_some());
        }
        assert_eq!((catalogue.library_count(), catalogue.function_count(), catalogue.code_bytes()), (0, 0, 0));
    }

    /// A change copies the catalogue only while a reader holds it.
    #[test]
    fn a_change_is_made_in_place() {
        let (functions, mut lua) = (Functions::default(), LuaState::new());
        let define = |library: &Arc<Library>| {
            functions.expect(library);
            functions.define(library.name.as_bytes(), Some(&library.code))
        };
        define(&library(&mut lua, "first", &["first"]));
        let before = Arc::as_ptr(&functions.catalogue());
        for number in 0..100 {
            let name = format!("l{number}");
            define(&library(&mut lua, &name, &[&name]));
        }
        assert_eq!(Arc::as_ptr(&functions.catalogue()), before);
        let seen = functions.catalogue();
        let went = functions.define(b"l7", None).went;
        assert!(went.is_some_and(|went| went.name == "l7") && seen.library(b"l7").is_some());
        assert_eq!((seen.library_count(), functions.catalogue().library_count()), (101, 100));
    }

    #[test]
    fn functions_are_found_in_any_case_and_the_loaded_one_comes_first() {
        let functions = Functions::default();
        let library_of = |program: Option<Program>| match program {
            Some(Program::Function(library, _)) => Some(library.name.clone()),
            _ => None,
        };
        assert_eq!(library_of(functions.find(b"COMPARE_AND_SWAP")), Some("holdfast".into()));
        let code = b"#!lua name=mine\nredis.register_function('Compare_And_Swap', function() return 1 end)";
        let mine = LuaState::new().understand(code).unwrap();
        assert_eq!(functions.catalogue().clash(&mine), None);
        assert!(functions.define(b"mine", Some(code)).failure.is_none());
        assert_eq!(library_of(functions.find(b"compare_and_swap")), Some("mine".into()));
        let other = b"#!lua name=other\nredis.register_function('compare_and_swap', function() return 1 end)";
        let other = LuaState::new().understand(other).unwrap();
        assert_eq!(functions.catalogue().clash(&other), Some("compare_and_swap"));
        functions.define(b"mine", None);
        assert_eq!(library_of(functions.find(b"compare_and_swap")), Some("holdfast".into()));
        assert!(functions.find(b"nothing").is_none());
    }

    /// As long as there is one, requests that may load it start elsewhere than on a worker.
    #[test]
    fn libraries_that_load_slowly_are_counted() {
        let functions = Functions::default();
        let code = |name: &str, steps: u64| {
            format!("#!lua name={name}\nfor i = 1, {steps} do end redis.register_function('{name}', function() end)")
        };
        assert!(functions.define(b"quick", Some(code("quick", 1).as_bytes())).failure.is_none());
        assert!(!functions.any_slow());
        for name in ["one", "two"] {
            assert!(functions.define(name.as_bytes(), Some(code(name, 3_000_000).as_bytes())).failure.is_none());
            assert!(functions.any_slow());
        }
        functions.define(b"one", None);
        assert!(functions.any_slow());
        assert!(functions.define(b"two", Some(code("two", 1).as_bytes())).failure.is_none(), "replaced");
        assert!(!functions.any_slow());
    }
}
