//! The first line of a script or library, `#!lua flags=no-writes`: what it asks of the server. Knows no command.

/// A first line that was understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shebang {
    /// `None` if the script has no such line.
    pub flags: Option<ScriptFlags>,
}

/// What a script or function promises or demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptFlags {
    pub no_writes: bool,
    pub allow_oom: bool,
    pub allow_stale: bool,
    pub no_cluster: bool,
    pub allow_cross_slot_keys: bool,
}

impl ScriptFlags {
    /// In the order Redis lists them.
    const NAMES: [&'static str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

    /// Sets a flag by its name; false if there is none of that name.
    pub fn set(&mut self, name: &str) -> bool {
        let Some(at) = Self::NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)) else { return false };
        *[
            &mut self.no_writes,
            &mut self.allow_oom,
            &mut self.allow_stale,
            &mut self.no_cluster,
            &mut self.allow_cross_slot_keys,
        ][at] = true;
        true
    }

    /// The names of the flags that are set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let set = [self.no_writes, self.allow_oom, self.allow_stale, self.no_cluster, self.allow_cross_slot_keys];
        Self::NAMES.into_iter().zip(set).filter_map(|(name, on)| on.then_some(name))
    }
}

impl Shebang {
    /// Reads the first line of a script for EVAL. The error is the reply's text without its code.
    pub fn of_script(source: &[u8]) -> Result<Self, String> {
        if !source.starts_with(b"#!") {
            return Ok(Shebang::default());
        }
        let Some(end) = source.iter().position(|&byte| byte == b'\n') else {
            return Err("Invalid script shebang".into());
        };
        let line = String::from_utf8_lossy(&source[..end]);
        let mut words = line.split([' ', '\t', '\r']).filter(|word| !word.is_empty());
        let engine = words.next().unwrap_or_default();
        if engine != "#!lua" {
            return Err(format!("Unexpected engine in script shebang: {engine}"));
        }
        let mut flags = ScriptFlags::default();
        for word in words {
            let Some(list) = word.strip_prefix("flags=") else {
                return Err(format!("Unknown lua shebang option: {word}"));
            };
            for name in list.split(',').filter(|name| !name.is_empty()) {
                if !flags.set(name) {
                    return Err(format!("Unexpected flag in script shebang: {name}"));
                }
            }
        }
        Ok(Shebang { flags: Some(flags) })
    }
}

/// The source without its first line's text; the line itself stays, so that errors name the right one.
pub(crate) fn body(source: &[u8]) -> &[u8] {
    if !source.starts_with(b"#!") {
        return source;
    }
    let end = source.iter().position(|&byte| byte == b'\n').unwrap_or(source.len());
    &source[end..]
}
