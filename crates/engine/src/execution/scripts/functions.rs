//! The catalogue of function libraries. Knows names and source code; running it is up to the `lua` crate, storing it up
//! to `keyspace::definitions`.
//!
//! One library is part of the server (`holdfast.lua`): its functions can always be called. Clients cannot delete it,
//! and it does not reserve names: a loaded function of the same name takes precedence.

use super::{LuaState, Pace, Program, ScriptAnalysis};
use locks::{RwLock, rank};
use lua::FunctionInfo;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

/// A library that was understood.
pub struct Library {
    pub name: String,
    pub code: Arc<[u8]>,
    pub functions: Vec<Function>,
    /// Its unique handle in Lua states: different for every library and every version of its code.
    pub(crate) handle: String,
}

/// One function of a library.
pub struct Function {
    pub info: FunctionInfo,
    pub analysis: ScriptAnalysis,
    pub(crate) pace: Pace,
}

/// What is to become of a library.
#[derive(Clone)]
pub enum Change {
    Set(Arc<Library>),
    Delete(String),
}

/// All libraries at one instant.
#[derive(Clone, Default)]
pub struct Catalogue {
    libraries: BTreeMap<String, Arc<Library>>,
    /// Where each function is, by its name in small letters: calls do not care for case.
    functions: HashMap<String, (Arc<Library>, usize)>,
    /// Changes with every change.
    pub(crate) generation: u64,
}

/// The libraries that there are.
#[derive(Default)]
pub struct Functions {
    current: RwLock<Current, { rank::FUNCTIONS }>,
}

#[derive(Default)]
struct Current {
    catalogue: Arc<Catalogue>,
    /// Libraries that a command has compiled, and that are about to be defined.
    expected: Vec<Arc<Library>>,
}

/// The library that is part of the server.
static BUILT_IN: LazyLock<Arc<Library>> = LazyLock::new(|| {
    let code: &[u8] = include_bytes!("holdfast.lua");
    let library = LuaState::new().understand(code);
    Arc::new(library.unwrap_or_else(|error| panic!("the library that is part of the server: {error}")))
});

impl Library {
    /// The library that is part of the server.
    pub fn built_in() -> &'static Arc<Library> {
        &BUILT_IN
    }
}

impl Functions {
    /// What there is now.
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
    pub(crate) fn expect(&self, library: &Arc<Library>) {
        self.current.write().expected.push(library.clone());
    }

    /// Applies the definition of a library to the live catalogue: loads this code, or removes the library. The error
    /// says why its code cannot be compiled; then it is stored but cannot be called.
    pub(crate) fn define(&self, name: &[u8], code: Option<&[u8]>) -> Result<(), String> {
        let name = String::from_utf8_lossy(name).into_owned();
        let expected = {
            let expected = &mut self.current.write().expected;
            let at = expected.iter().position(|library| library.name == name && Some(&*library.code) == code);
            at.map(|at| expected.swap_remove(at))
        };
        let (change, result) = match (expected, code) {
            (Some(library), _) => (Change::Set(library), Ok(())),
            (None, Some(code)) => match LuaState::new().understand(code) {
                Ok(library) => (Change::Set(Arc::new(library)), Ok(())),
                // What had that name before is not what is kept.
                Err(why) => (Change::Delete(name), Err(why)),
            },
            (None, None) => (Change::Delete(name), Ok(())),
        };
        let mut current = self.current.write();
        current.catalogue = Arc::new(current.catalogue.with(&change));
        result
    }

    fn set(&self, catalogue: Catalogue) {
        self.current.write().catalogue = Arc::new(catalogue);
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

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// A name of a function that some other library has already; none when the library can be added.
    pub fn clash<'l>(&self, library: &'l Library) -> Option<&'l str> {
        library.functions.iter().map(|function| function.info.name.as_str()).find(|name| {
            let taken = self.functions.get(&name.to_ascii_lowercase());
            taken.is_some_and(|(other, _)| other.name != library.name)
        })
    }

    /// The same after a change.
    pub fn with(&self, change: &Change) -> Catalogue {
        let mut libraries = self.libraries.clone();
        match change {
            Change::Set(library) => libraries.insert(library.name.clone(), library.clone()),
            Change::Delete(name) => libraries.remove(name),
        };
        Catalogue::of(libraries)
    }

    fn of(libraries: BTreeMap<String, Arc<Library>>) -> Catalogue {
        let mut functions = HashMap::new();
        for library in libraries.values() {
            for (at, function) in library.functions.iter().enumerate() {
                functions.entry(function.info.name.to_ascii_lowercase()).or_insert_with(|| (library.clone(), at));
            }
        }
        Catalogue { libraries, functions, generation: next_number() }
    }

    /// True when Lua states have to keep a library.
    pub(crate) fn knows(&self, handle: &str) -> bool {
        handle == BUILT_IN.handle || self.libraries.values().any(|library| library.handle == handle)
    }
}

/// A number that nothing else has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl LuaState {
    /// Loads a library into this Lua state, where it registers its functions. The error is a reply's text without its
    /// code.
    pub(crate) fn understand(&mut self, code: &[u8]) -> Result<Library, String> {
        let name = name_of(code)?;
        let handle = format!("{name} {}", next_number());
        let registered = self.state.load_library(&handle, code)?;
        self.libraries.push(handle.clone());
        let analyses = ScriptAnalysis::of_library(code);
        let functions = registered.into_iter().map(|info| {
            let analysis = analyses.get(info.name.as_str()).copied().unwrap_or_default();
            Function { info, analysis, pace: Pace::default() }
        });
        Ok(Library { name, code: code.into(), functions: functions.collect(), handle })
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
        // White space in front of the engine's name: the word is `#!` alone.
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
    pub(crate) fn revive(&self, kept: Vec<(Vec<u8>, Arc<[u8]>)>) -> Vec<String> {
        if kept.is_empty() {
            return Vec::new();
        }
        let (mut lua, mut libraries, mut failures) = (LuaState::new(), BTreeMap::new(), Vec::new());
        for (name, code) in kept {
            match lua.understand(&code) {
                Ok(library) => {
                    libraries.insert(library.name.clone(), Arc::new(library));
                }
                Err(error) => failures.push(format!("library {}: {error}", String::from_utf8_lossy(&name))),
            }
        }
        self.set(Catalogue::of(libraries));
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_library_runs_in_place_and_on_its_key_alone() {
        let [function] = &Library::built_in().functions[..] else { panic!("one function") };
        assert_eq!(function.info.name, "compare_and_swap");
        assert_eq!(
            function.analysis,
            ScriptAnalysis { is_bounded: true, declares_all_keys: true, names_no_index: true }
        );
    }

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

    /// What is kept cannot be called here: what had that name before can neither.
    #[test]
    fn a_library_that_is_not_understood_takes_the_place_of_the_one_before() {
        let functions = Functions::default();
        functions.define(b"l", Some(b"#!lua name=l\nredis.register_function('f', function() end)")).unwrap();
        assert!(functions.find(b"f").is_some());
        functions.define(b"l", Some(b"#!lua name=l\nnothing.that.is.known()")).unwrap_err();
        assert!(functions.find(b"f").is_none());
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
        let mine = Arc::new(LuaState::new().understand(code).unwrap());
        let catalogue = functions.catalogue();
        assert_eq!(catalogue.clash(&mine), None);
        functions.set(catalogue.with(&Change::Set(mine)));
        assert_eq!(library_of(functions.find(b"compare_and_swap")), Some("mine".into()));
        let other = b"#!lua name=other\nredis.register_function('compare_and_swap', function() return 1 end)";
        let other = LuaState::new().understand(other).unwrap();
        assert_eq!(functions.catalogue().clash(&other), Some("compare_and_swap"));
        functions.set(functions.catalogue().with(&Change::Delete("mine".into())));
        assert_eq!(library_of(functions.find(b"compare_and_swap")), Some("holdfast".into()));
        assert!(functions.find(b"nothing").is_none());
    }
}
