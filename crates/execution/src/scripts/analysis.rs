//! Analyses a script's source, conservatively: can it run long, and can it touch a key that it did not declare? A
//! script that may run long runs on the script thread; one that may touch an undeclared key locks everything. So when
//! in doubt the answer is yes. Knows Lua's tokens and where a command's keys are; refuses to know what a command does.

use crate::command::{Flags, Locks, registry};
use std::collections::HashMap;

/// What is certain about a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptAnalysis {
    /// It has no loop, defines no function, and calls only functions that take little time.
    pub is_bounded: bool,
    /// Every key it touches is one of `KEYS`.
    pub declares_all_keys: bool,
    /// It calls no command that reads an index which is not one of its keys.
    pub names_no_index: bool,
}

/// Functions that a bounded script may call. None of them calls back, or takes longer than linear time in its
/// arguments.
const BRIEF: &[(&str, &[&str])] = &[
    ("redis", &["call", "pcall", "error_reply", "status_reply", "sha1hex", "setresp", "log"]),
    ("tonumber", &[]),
    ("tostring", &[]),
    ("type", &[]),
    ("error", &[]),
    ("assert", &[]),
    ("cjson", &["encode", "decode"]),
    ("cmsgpack", &["pack", "unpack"]),
    ("string", &["sub", "len", "lower", "upper", "byte", "char", "reverse"]),
    ("math", &["floor", "ceil", "abs", "min", "max", "fmod", "sqrt"]),
    ("bit", &["tobit", "bnot", "band", "bor", "bxor", "lshift", "rshift"]),
    ("table", &["insert"]),
];
/// Words with which a script can repeat or define code.
const REPEATING: &[&str] = &["while", "for", "repeat", "function"];
/// Words after which a parenthesis is not a call.
const KEYWORDS: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
    "repeat", "return", "then", "true", "until", "while",
];

impl ScriptAnalysis {
    /// Analyses a script for EVAL.
    pub fn of(source: &[u8]) -> ScriptAnalysis {
        let Some(tokens) = tokens(source) else { return ScriptAnalysis::default() };
        ScriptAnalysis::of_tokens(&tokens)
    }

    fn of_tokens(tokens: &[Token<'_>]) -> ScriptAnalysis {
        ScriptAnalysis {
            is_bounded: is_bounded(tokens),
            declares_all_keys: declares_all_keys(tokens),
            names_no_index: names_no_index(tokens),
        }
    }

    /// Analyses a library: what is certain about each of its functions, by name. Empty for a library that does more
    /// than declare and register functions.
    pub fn of_library(source: &[u8]) -> HashMap<&str, ScriptAnalysis> {
        tokens(source).and_then(|tokens| library(&tokens)).unwrap_or_default()
    }

    /// Analyses the body of a function, as a script whose `KEYS` is the function's first parameter.
    fn of_body<'a>(parameters: &[&'a str], body: &[Token<'a>]) -> ScriptAnalysis {
        let misleads = |name: &str| name == "KEYS" || BRIEF.iter().any(|(known, _)| *known == name);
        if parameters.iter().any(|name| misleads(name)) || body.iter().any(|token| token.is_word("KEYS")) {
            return ScriptAnalysis::default();
        }
        let keys = parameters.first().copied();
        let as_script = |token: &Token<'a>| match token {
            Token::Name(name) if Some(*name) == keys => Token::Name("KEYS"),
            token => *token,
        };
        let body: Vec<Token<'_>> = body.iter().map(as_script).collect();
        ScriptAnalysis::of_tokens(&body)
    }
}

/// The functions that a library registers; `None` when it does anything else.
fn library<'a>(tokens: &[Token<'a>]) -> Option<HashMap<&'a str, ScriptAnalysis>> {
    let mut reader = LibraryReader { tokens, at: 0, declared: HashMap::new() };
    let mut registered = HashMap::new();
    while reader.at < tokens.len() {
        if reader.takes(&[Token::Symbol(b";")]) {
            continue;
        }
        if reader.takes(&[Token::Name("local"), Token::Name("function")]) {
            let name = reader.name()?;
            let analysis = reader.function()?;
            // The name is rebound here, or declared twice.
            if BRIEF.iter().any(|(known, _)| *known == name) || reader.declared.insert(name, analysis).is_some() {
                return None;
            }
            continue;
        }
        let (name, analysis) = reader.registration()?;
        registered.insert(name, analysis);
    }
    Some(registered)
}

/// The state of the analysis of a library.
struct LibraryReader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    /// What is certain about named functions.
    declared: HashMap<&'a str, ScriptAnalysis>,
}

impl<'a> LibraryReader<'_, 'a> {
    /// Consumes these tokens, if they are next.
    fn takes(&mut self, expected: &[Token<'_>]) -> bool {
        let is_next = self.tokens[self.at..].starts_with(expected);
        self.at += if is_next { expected.len() } else { 0 };
        is_next
    }

    fn symbol(&mut self, symbol: &[u8]) -> Option<()> {
        self.takes(&[Token::Symbol(symbol)]).then_some(())
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = *self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn name(&mut self) -> Option<&'a str> {
        match self.next()? {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        match self.next()? {
            Token::Text(Some(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// `redis.register_function('name', function)`, or with one table of named arguments.
    fn registration(&mut self) -> Option<(&'a str, ScriptAnalysis)> {
        let head = [Token::Name("redis"), Token::Symbol(b"."), Token::Name("register_function")];
        if !self.takes(&head) {
            return None;
        }
        let in_parentheses = self.takes(&[Token::Symbol(b"(")]);
        let registered = match self.takes(&[Token::Symbol(b"{")]) {
            true => self.named_arguments()?,
            false if in_parentheses => {
                let name = self.text()?;
                self.symbol(b",")?;
                (name, self.callback()?)
            }
            false => return None,
        };
        if in_parentheses {
            self.symbol(b")")?;
        }
        Some(registered)
    }

    /// `function_name = 'name', callback = function, flags = {'no-writes'}, description = 'text' }`
    fn named_arguments(&mut self) -> Option<(&'a str, ScriptAnalysis)> {
        let (mut name, mut analysis) = (None, None);
        loop {
            if self.takes(&[Token::Symbol(b"}")]) {
                return Some((name?, analysis?));
            }
            let argument = self.name()?;
            self.symbol(b"=")?;
            match argument {
                "function_name" => name = Some(self.text()?),
                "callback" => analysis = Some(self.callback()?),
                "description" => match self.next()? {
                    Token::Text(_) => {}
                    _ => return None,
                },
                "flags" => {
                    self.symbol(b"{")?;
                    while !self.takes(&[Token::Symbol(b"}")]) {
                        match self.next()? {
                            Token::Text(_) | Token::Symbol(b"," | b";") => {}
                            _ => return None,
                        }
                    }
                }
                _ => return None,
            }
            let _ = self.takes(&[Token::Symbol(b",")]) || self.takes(&[Token::Symbol(b";")]);
        }
    }

    /// A function, or the name of one that was declared.
    fn callback(&mut self) -> Option<ScriptAnalysis> {
        match self.takes(&[Token::Name("function")]) {
            true => self.function(),
            false => {
                let name = self.name()?;
                self.declared.get(name).copied()
            }
        }
    }

    /// `(parameters) body end`
    fn function(&mut self) -> Option<ScriptAnalysis> {
        self.symbol(b"(")?;
        let mut parameters = Vec::new();
        while !self.takes(&[Token::Symbol(b")")]) {
            match self.next()? {
                Token::Name(name) => parameters.push(name),
                Token::Symbol(b",") => {}
                // `...` would give access to keys under another name.
                _ => return None,
            }
        }
        let (start, mut depth) = (self.at, 1);
        while depth > 0 {
            match self.next()? {
                Token::Name("function" | "if" | "do") => depth += 1,
                Token::Name("end") => depth -= 1,
                _ => {}
            }
        }
        let body = &self.tokens[start..self.at - 1];
        // The functions that it calls are not analysed.
        let leaves = body.iter().any(|token| matches!(token, Token::Name(name) if self.declared.contains_key(name)));
        Some(if leaves { ScriptAnalysis::default() } else { ScriptAnalysis::of_body(&parameters, body) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    /// Without its quotes; `None` when it has escapes.
    Text(Option<&'a [u8]>),
    Number(&'a [u8]),
    Symbol(&'a [u8]),
}

impl Token<'_> {
    fn is(self, symbol: &[u8]) -> bool {
        self == Token::Symbol(symbol)
    }

    fn is_word(self, word: &str) -> bool {
        self == Token::Name(word)
    }

    fn is_keyword(self) -> bool {
        matches!(self, Token::Name(name) if KEYWORDS.contains(&name))
    }
}

/// Splits a source into tokens; `None` when it cannot be parsed.
fn tokens(source: &[u8]) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    // The shebang line (`#!lua flags=…`) is not part of the code.
    if source.starts_with(b"#!") {
        at = memchr::memchr(b'\n', source)?;
    }
    while let Some(&byte) = source.get(at) {
        let rest = &source[at..];
        let len = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'-' if rest.starts_with(b"--") => comment_len(rest)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                tokens.push(Token::Name(match std::str::from_utf8(&rest[..len]).ok()? {
                    // Valkey's name of the same table.
                    "server" => "redis",
                    name => name,
                }));
                len
            }
            b'0'..=b'9' => {
                let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.').count();
                tokens.push(Token::Number(&rest[..len]));
                len
            }
            b'"' | b'\'' => {
                let len = quoted_len(rest)?;
                let inner = &rest[1..len - 1];
                tokens.push(Token::Text((!inner.contains(&b'\\')).then_some(inner)));
                len
            }
            b'[' if long_bracket(rest).is_some() => {
                let (_, len) = long_bracket(rest)?;
                tokens.push(Token::Text(None));
                len
            }
            _ => {
                let len = [&b"..."[..], b"..", b"==", b"~=", b"<=", b">="]
                    .iter()
                    .find(|symbol| rest.starts_with(symbol))
                    .map_or(1, |symbol| symbol.len());
                tokens.push(Token::Symbol(&rest[..len]));
                len
            }
        };
        at += len;
    }
    Some(tokens)
}

/// The length of a comment, its dashes included.
fn comment_len(rest: &[u8]) -> Option<usize> {
    let behind = &rest[2..];
    let level = behind.iter().skip(1).take_while(|byte| **byte == b'=').count();
    let is_long = behind.first() == Some(&b'[') && behind.get(1 + level) == Some(&b'[');
    match is_long {
        true => long_bracket(behind).map(|(_, len)| 2 + len),
        false => Some(memchr::memchr(b'\n', rest).unwrap_or(rest.len())),
    }
}

/// `[[…]]`, `[=[…]=]` and so on: where its text begins, and its whole length.
fn long_bracket(rest: &[u8]) -> Option<(usize, usize)> {
    let level = rest.get(1..)?.iter().take_while(|byte| **byte == b'=').count();
    if rest.first() != Some(&b'[') || rest.get(1 + level) != Some(&b'[') {
        return None;
    }
    let close = [&b"]"[..], &b"=".repeat(level), b"]"].concat();
    let start = level + 2;
    let end = memchr::memmem::find(&rest[start..], &close)?;
    Some((start, start + end + close.len()))
}

fn quoted_len(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'\\' => at += 2,
            b'\n' => return None,
            byte if *byte == rest[0] => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// True when every command is named where it is called, and none reads an index that is not one of its keys.
fn names_no_index(tokens: &[Token<'_>]) -> bool {
    let is_known = |token: &Token<'_>| match token {
        Token::Text(Some(text)) => registry().find(text).is_some_and(|row| !row.names_index()),
        _ => false,
    };
    let is_call = |token: &Token<'_>| token.is_word("call") || token.is_word("pcall");
    let named = |at: usize| match tokens.get(at + 1) {
        Some(token) if token.is(b"(") => tokens.get(at + 2).is_some_and(is_known),
        _ => false,
    };
    (0..tokens.len()).filter(|at| is_call(&tokens[*at])).all(named)
}

/// True when nothing in the script can run long.
fn is_bounded(tokens: &[Token<'_>]) -> bool {
    let token = |at: usize| tokens.get(at).copied().unwrap_or(Token::Symbol(b""));
    for (at, current) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(token);
        match current {
            Token::Name(name) if REPEATING.contains(name) => return false,
            // A known table or function may only be called, so that it cannot be aliased.
            Token::Name(name) if before.is_none_or(|before| !before.is(b".") && !before.is(b":")) => {
                let Some((_, members)) = BRIEF.iter().find(|(known, _)| known == name) else { continue };
                let called = match members {
                    [] => token(at + 1).is(b"("),
                    members => {
                        let member = matches!(token(at + 2), Token::Name(member) if members.contains(&member));
                        token(at + 1).is(b".") && member && token(at + 3).is(b"(")
                    }
                };
                if !called {
                    return false;
                }
            }
            Token::Symbol(b"(") => {
                let is_call = match before {
                    Some(Token::Name(_)) => !token(at - 1).is_keyword(),
                    Some(before) => before.is(b")") || before.is(b"]") || matches!(before, Token::Text(_)),
                    None => false,
                };
                if is_call && !(is_known_call(tokens, at) && calls_brief_command(tokens, at)) {
                    return false;
                }
            }
            // `f"text"` and `f{…}` are calls too.
            Token::Text(_) | Token::Symbol(b"{") => {
                let called = match before {
                    Some(Token::Name(_)) => !token(at - 1).is_keyword(),
                    Some(before) => before.is(b")") || before.is(b"]"),
                    None => false,
                };
                if called {
                    return false;
                }
            }
            // Methods: of a string, or of something that cannot be known.
            Token::Symbol(b":") => return false,
            _ => {}
        }
    }
    true
}

/// True when the tokens before the parenthesis at `at` are a function of [`BRIEF`].
fn is_known_call(tokens: &[Token<'_>], at: usize) -> bool {
    let name = |at: Option<usize>| match at.and_then(|at| tokens.get(at)) {
        Some(Token::Name(name)) => Some(*name),
        _ => None,
    };
    let dotted = at >= 2 && tokens[at - 2].is(b".");
    let (root_at, member) = match dotted {
        true => (at.checked_sub(3), name(at.checked_sub(1))),
        false => (at.checked_sub(1), None),
    };
    let is_root = root_at.is_some_and(|root| root == 0 || !tokens[root - 1].is(b".") && !tokens[root - 1].is(b":"));
    let Some((_, members)) = BRIEF.iter().find(|(known, _)| Some(*known) == name(root_at)) else { return false };
    is_root && member.map_or(members.is_empty(), |member| members.contains(&member))
}

/// True unless the call at the parenthesis `at` may have a long reply: its command is a read that is not fast, or
/// unknown. Converting the reply to Lua values takes longer than the command itself.
fn calls_brief_command(tokens: &[Token<'_>], at: usize) -> bool {
    let is_command =
        at.checked_sub(1).is_some_and(|name| tokens[name].is_word("call") || tokens[name].is_word("pcall"));
    let is_redis = at >= 3 && tokens[at - 2].is(b".") && tokens[at - 3].is_word("redis");
    if !is_command || !is_redis {
        return true;
    }
    match tokens.get(at + 1) {
        Some(Token::Text(Some(name))) => registry().find(name).is_some_and(|row| {
            let flags = row.command.flags;
            flags.has(Flags::FAST) || flags.has(Flags::WRITE)
        }),
        _ => false,
    }
}

/// True when every key that the script can touch is an element of `KEYS`.
fn declares_all_keys(tokens: &[Token<'_>]) -> bool {
    let token = |at: usize| tokens.get(at).copied().unwrap_or(Token::Symbol(b""));
    let aliases = key_aliases(tokens);
    for (at, current) in tokens.iter().enumerate() {
        match current {
            Token::Name("KEYS") => {
                let counted = at > 0 && token(at - 1).is(b"#");
                if !counted && (!is_key(tokens, at, &[]) || token(at + 4).is(b"=")) {
                    return false;
                }
            }
            Token::Name("redis") => {
                let Token::Name(member) = token(at + 2) else { return false };
                if !token(at + 1).is(b".") || !token(at + 3).is(b"(") {
                    return false;
                }
                let touches = matches!(member, "call" | "pcall");
                if touches && !call_declares_its_keys(tokens, at + 4, &aliases) {
                    return false;
                }
            }
            // Names with which a script can circumvent this analysis.
            Token::Name("_G" | "loadstring" | "load" | "setfenv" | "getfenv" | "rawset" | "setmetatable") => {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// True when `KEYS[n]`, or an alias of it, is at `at`.
fn is_key(tokens: &[Token<'_>], at: usize, aliases: &[&str]) -> bool {
    match tokens.get(at..) {
        Some([Token::Name("KEYS"), open, Token::Number(_), close, ..]) => open.is(b"[") && close.is(b"]"),
        Some([Token::Name(name), ..]) => aliases.contains(name),
        _ => false,
    }
}

/// Names that are given a value once, by `local name = KEYS[n]`, and keep it.
fn key_aliases<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut aliases = Vec::new();
    for at in 0..tokens.len() {
        let [local, Token::Name(name), equals] = tokens[at..].iter().take(3).copied().collect::<Vec<_>>()[..] else {
            continue;
        };
        let ends = tokens
            .get(at + 7)
            .is_none_or(|next| matches!(next, Token::Name(word) if !matches!(*word, "and" | "or")) || next.is(b";"));
        if !local.is_word("local") || !equals.is(b"=") || !is_key(tokens, at + 3, &[]) || !ends {
            continue;
        }
        // Declared or assigned anywhere else, or a parameter: it may have another value.
        let uses: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].is_word(name)).collect();
        let is_only_read = uses.iter().filter(|use_at| **use_at != at + 1).all(|use_at| {
            let before = use_at.checked_sub(1).map(|at| tokens[at]);
            let after = tokens.get(use_at + 1).copied();
            let declared = before.is_some_and(|before| before.is_word("local") || before.is_word("for"));
            let assigned = after.is_some_and(|after| after.is(b"="));
            !declared && !assigned
        });
        let in_lists = tokens.iter().any(|token| token.is_word("function") || token.is_word("for"));
        if is_only_read && !in_lists && !is_in_assignment_list(tokens, name) {
            aliases.push(name);
        }
    }
    aliases
}

/// True when a name is one of several that are declared or assigned together (`local a, name = …`).
fn is_in_assignment_list(tokens: &[Token<'_>], name: &str) -> bool {
    (0..tokens.len()).filter(|at| tokens[*at].is_word(name)).any(|at| {
        // Forward over `, name` to a `=`.
        let mut next = at + 1;
        while tokens.get(next).is_some_and(|token| token.is(b","))
            && matches!(tokens.get(next + 1), Some(Token::Name(_)))
        {
            next += 2;
        }
        next > at + 1 && tokens.get(next).is_some_and(|token| token.is(b"="))
            || at > 0 && tokens[at - 1].is(b",") && tokens.get(at + 1).is_some_and(|token| token.is(b"="))
    })
}

/// True when the call whose arguments begin at `at` names a known command and has `KEYS[n]` wherever that has keys.
fn call_declares_its_keys(tokens: &[Token<'_>], at: usize, aliases: &[&str]) -> bool {
    let Some(starts) = arguments(tokens, at) else { return false };
    let Some(Token::Text(Some(name))) = starts.first().and_then(|first| tokens.get(*first)) else { return false };
    let is_alone = tokens.get(starts[0] + 1).is_some_and(|next| next.is(b",") || next.is(b")"));
    let Some(row) = registry().find(name) else { return false };
    if !is_alone || !row.subcommands.is_empty() {
        return false;
    }
    let count = starts.len();
    let found = match row.command.keys.locks {
        Locks::None => return true,
        Locks::Key(_) | Locks::Keys => row.command.keys.find_in_any(count),
        Locks::Everything | Locks::Walk | Locks::Declared => return false,
    };
    let Some(found) = found else { return false };
    found.ranges.iter().flat_map(|range| range.positions()).all(|position| {
        let start = starts[position];
        let len = if tokens[start].is_word("KEYS") { 4 } else { 1 };
        let ends = tokens.get(start + len).is_some_and(|next| next.is(b",") || next.is(b")"));
        is_key(tokens, start, aliases) && ends
    }) && !tokens[starts[count - 1]..].first().is_some_and(|token| token.is(b"..."))
        && !starts.iter().any(|start| tokens[*start].is_word("unpack"))
}

/// Where each argument of a call begins; `None` when the call has no end.
fn arguments(tokens: &[Token<'_>], at: usize) -> Option<Vec<usize>> {
    let (mut starts, mut depth, mut next) = (vec![at], 0usize, at);
    loop {
        match tokens.get(next)? {
            Token::Symbol(b"(" | b"[" | b"{") => depth += 1,
            Token::Symbol(b")") if depth == 0 => return Some(starts),
            Token::Symbol(b")" | b"]" | b"}") => depth = depth.checked_sub(1)?,
            Token::Symbol(b",") if depth == 0 => starts.push(next + 1),
            _ => {}
        }
        next += 1;
    }
}
