//! Rules in the words of Redis: reads them into rights, and writes rights as rules. Knows nothing of who gives them.

use super::command_set::{CommandSet, find_category, rows_of};
use super::key_right::KeyRight;
use super::selector::{ChannelPattern, KeyPattern, Selector};
use super::user::{PasswordHash, Rights, hash};
use crate::clients::account::limits::{Limit, Limits};
use crate::command::registry;
use crate::settings::parse_memory;

/// Why a rule cannot be applied, in Redis's words.
pub type RuleError = &'static str;

const SYNTAX: RuleError = "Syntax error";
/// For a rule that names a command or category that there is not.
pub const UNKNOWN: RuleError = "Unknown command or category name in ACL";
const AFTER_ALL_KEYS: RuleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
     effect. Try 'resetkeys' to start with an empty list of patterns";
const AFTER_ALL_CHANNELS: RuleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have \
     any effect. Try 'resetchannels' to start with an empty list of channels";
const NO_SUCH_PASSWORD: RuleError = "The password you are trying to remove from the user does not exist";
const BAD_HASH: RuleError =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const FIRST_ARG_OF_SUBCOMMAND: RuleError = "Allowing first-arg of a subcommand is not supported";
const BAD_DATABASE: RuleError = "The provided database ID is out of range";
const UNKNOWN_LIMIT: RuleError = "Unknown limit, there are clients, ops, in, out, reply and memory";
const BAD_NUMBER: RuleError = "The limit must be a number, 0 for none";
const BAD_BYTES: RuleError = "The limit must be a number of bytes such as 10mb, 0 for none";
const SHORT_REPLY: RuleError = "The limit must be at least 1kb, or 0 for none";
const LITTLE_MEMORY: RuleError = "The limit must be at least 128kb, or 0 for none";

/// Errors and short answers are never too long.
const REPLY_BYTES_MIN: u64 = 1024;
/// The buffers of one client with small requests. With less, every client would be closed.
const MEMORY_BYTES_MIN: u64 = 128 * 1024;

/// A rule that cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub struct BadRule {
    pub rule: Vec<u8>,
    pub why: RuleError,
}

/// Joins rules that one selector in parentheses was split into. An error is the beginning of one that never ends.
pub fn join_selectors(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut joined: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for rule in rules {
        match &mut open {
            Some(selector) => {
                selector.push(b' ');
                selector.extend_from_slice(rule);
            }
            None if rule.starts_with(b"(") => open = Some(rule.to_vec()),
            None => joined.push(rule.to_vec()),
        }
        if open.is_some() && rule.ends_with(b")") {
            joined.extend(open.take());
        }
    }
    match open {
        None => Ok(joined),
        Some(selector) => {
            let begins_with = rules.iter().find(|rule| selector.starts_with(rule) && rule.starts_with(b"("));
            Err(begins_with.map_or(selector.clone(), |rule| rule.to_vec()))
        }
    }
}

/// Applies rules in their order: all, or, if one is wrong, none.
pub fn apply_all(rights: &Rights, rules: &[Vec<u8>], all_channels: bool) -> Result<Rights, BadRule> {
    let mut changed = rights.clone();
    for rule in rules {
        apply(&mut changed, rule, all_channels).map_err(|why| BadRule { rule: rule.clone(), why })?;
    }
    changed.settle();
    Ok(changed)
}

/// Applies one rule. `all_channels`: a new selector has all channels (acl-pubsub-default).
fn apply(rights: &mut Rights, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
    let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
    if is("on") {
        rights.is_on = true;
    } else if is("off") {
        rights.is_on = false;
    } else if is("nopass") {
        rights.no_password = true;
        rights.passwords.clear();
    } else if is("resetpass") {
        rights.no_password = false;
        rights.passwords.clear();
    } else if is("skip-sanitize-payload") {
        rights.sanitizes = false;
    } else if is("sanitize-payload") {
        rights.sanitizes = true;
    } else if is("reset") {
        *rights = Rights::new(all_channels);
    } else if is("clearselectors") {
        rights.selectors.truncate(1);
    } else if is("resetlimits") {
        rights.limits = Limits::default();
    } else if let Some(limit) = strip_word(rule, b"limit:") {
        set_limit(&mut rights.limits, limit)?;
    } else if let [b'>' | b'#', secret @ ..] = rule {
        let hashed = if rule[0] == b'#' { parse_hash(secret).ok_or(BAD_HASH)? } else { hash(secret) };
        if !rights.passwords.contains(&hashed) {
            rights.passwords.push(hashed);
        }
        rights.no_password = false;
    } else if let [b'<' | b'!', secret @ ..] = rule {
        let hashed = if rule[0] == b'!' { parse_hash(secret).ok_or(BAD_HASH)? } else { hash(secret) };
        let at = rights.passwords.iter().position(|known| *known == hashed).ok_or(NO_SUCH_PASSWORD)?;
        rights.passwords.remove(at);
    } else if let [b'(', inner @ .., b')'] = rule {
        let mut selector = Selector::new(all_channels);
        for rule in inner.split(|byte| *byte == b' ').filter(|rule| !rule.is_empty()) {
            // In a file, the selector would end here, and the rules behind it would be the user's own.
            if rule.ends_with(b")") {
                return Err(SYNTAX);
            }
            apply_to_selector(&mut selector, rule)?;
        }
        rights.selectors.push(selector);
    } else {
        apply_to_selector(&mut rights.selectors[0], rule)?;
    }
    Ok(())
}

/// The rest of a rule that begins with a word, in any case.
fn strip_word<'a>(rule: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = rule.split_at_checked(word.len())?;
    begin.eq_ignore_ascii_case(word).then_some(rest)
}

/// `clients=10`, `in=10mb`.
fn set_limit(limits: &mut Limits, rule: &[u8]) -> Result<(), RuleError> {
    let equals = rule.iter().position(|byte| *byte == b'=').ok_or(SYNTAX)?;
    let limit = Limit::find(&rule[..equals]).ok_or(UNKNOWN_LIMIT)?;
    let text = std::str::from_utf8(&rule[equals + 1..]).unwrap_or_default();
    // No sign, and not nothing.
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let value = match limit.is_in_bytes() {
        true => parse_memory(text).filter(|_| is_number).ok_or(BAD_BYTES)?,
        false => text.parse().ok().filter(|_| is_number).ok_or(BAD_NUMBER)?,
    };
    match limit {
        Limit::Reply if (1..REPLY_BYTES_MIN).contains(&value) => return Err(SHORT_REPLY),
        Limit::Memory if (1..MEMORY_BYTES_MIN).contains(&value) => return Err(LITTLE_MEMORY),
        _ => {}
    }
    limits.set(limit, value);
    Ok(())
}

fn apply_to_selector(selector: &mut Selector, rule: &[u8]) -> Result<(), RuleError> {
    let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
    if is("allkeys") || is("~*") {
        selector.all_keys = true;
        selector.keys.clear();
    } else if is("resetkeys") {
        selector.all_keys = false;
        selector.keys.clear();
    } else if is("allchannels") || is("&*") {
        selector.all_channels = true;
        selector.channels.clear();
    } else if is("resetchannels") {
        selector.all_channels = false;
        selector.channels.clear();
    } else if is("alldbs") {
        selector.databases = None;
    } else if is("resetdbs") {
        selector.databases = Some(Vec::new());
    } else if let Some(listed) = strip_word(rule, b"db=") {
        selector.databases = Some(parse_databases(listed)?);
    } else if is("allcommands") || is("+@all") {
        selector.commands = CommandSet::all();
        selector.command_rules.clear();
        selector.first_args.clear();
    } else if is("nocommands") || is("-@all") {
        selector.commands = CommandSet::none();
        selector.command_rules.clear();
        selector.first_args.clear();
    } else if let [b'~', pattern @ ..] = rule {
        add_keys(selector, KeyRight::all(), pattern)?;
    } else if let [b'%', rest @ ..] = rule {
        // Without a pattern it is the empty one, as in Redis.
        let (letters, pattern) = match rest.iter().position(|byte| *byte == b'~') {
            Some(tilde) => (&rest[..tilde], &rest[tilde + 1..]),
            None => (rest, [].as_slice()),
        };
        let mut right = KeyRight::empty();
        for letter in letters {
            right |= match letter.to_ascii_uppercase() {
                b'R' if !right.contains(KeyRight::READ) => KeyRight::READ,
                b'W' if !right.contains(KeyRight::WRITE) => KeyRight::WRITE,
                _ => return Err(SYNTAX),
            };
        }
        if right.is_empty() {
            return Err(SYNTAX);
        }
        add_keys(selector, right, pattern)?;
    } else if let [b'&', pattern @ ..] = rule {
        if selector.all_channels {
            return Err(AFTER_ALL_CHANNELS);
        }
        check_word(pattern)?;
        if !selector.channels.iter().any(|known| *known.text == *pattern) {
            selector.channels.push(ChannelPattern::new(pattern));
        }
    } else if let [sign @ (b'+' | b'-'), b'@', category @ ..] = rule {
        if !selector.commands.set_category(category, *sign == b'+') {
            return Err(UNKNOWN);
        }
        // What a category removes, its first arguments do not bring back.
        if *sign == b'-' {
            let name = find_category(category).expect("it was found");
            rows_of(name).for_each(|row| drop(selector.first_args.remove(&row.index)));
        }
        note_rule(selector, *sign == b'+', &[b"@".as_slice(), category].concat());
    } else if let [b'+', name @ ..] = rule {
        allow(selector, name)?;
    } else if let [b'-', name @ ..] = rule {
        let row = registry().find_full(name).ok_or(UNKNOWN)?;
        selector.commands.set(row, false);
        selector.first_args.remove(&row.index);
        note_rule(selector, false, name);
    } else {
        return Err(SYNTAX);
    }
    Ok(())
}

/// `0,1`: in their order, each once.
fn parse_databases(listed: &[u8]) -> Result<Vec<u32>, RuleError> {
    let parse = |number: &[u8]| {
        let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if !is_number(number.strip_prefix(b"-").unwrap_or(number)) {
            return Err(SYNTAX);
        }
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<i32>().ok());
        number.and_then(|number| u32::try_from(number).ok()).ok_or(BAD_DATABASE)
    };
    let mut databases: Vec<u32> = listed.split(|byte| *byte == b',').map(parse).collect::<Result<_, _>>()?;
    databases.sort_unstable();
    databases.dedup();
    Ok(databases)
}

/// `+command`, `+command|subcommand`, `+command|first-argument`.
fn allow(selector: &mut Selector, name: &[u8]) -> Result<(), RuleError> {
    let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
        let row = registry().find(name).ok_or(UNKNOWN)?;
        selector.commands.set(row, true);
        selector.first_args.remove(&row.index);
        note_rule(selector, true, name);
        return Ok(());
    };
    let (command, rest) = (&name[..bar], &name[bar + 1..]);
    let row = registry().find_full(command).ok_or(UNKNOWN)?;
    if row.name_args > 1 {
        return Err(FIRST_ARG_OF_SUBCOMMAND);
    }
    if rest.is_empty() {
        return Err(SYNTAX);
    }
    check_word(rest)?;
    match row.subcommands.is_empty() {
        false => selector.commands.set(row.subcommand(rest).ok_or(UNKNOWN)?, true),
        true => {
            let allowed = selector.first_args.entry(row.index).or_default();
            if !allowed.iter().any(|known| known.eq_ignore_ascii_case(rest)) {
                // As it is shown, and in order: equal rights are equal here.
                allowed.push(rest.to_ascii_lowercase().into());
                allowed.sort_unstable();
            }
        }
    }
    note_rule(selector, true, name);
    Ok(())
}

fn add_keys(selector: &mut Selector, right: KeyRight, pattern: &[u8]) -> Result<(), RuleError> {
    if selector.all_keys {
        return Err(AFTER_ALL_KEYS);
    }
    check_word(pattern)?;
    match selector.keys.iter_mut().find(|known| *known.text == *pattern) {
        Some(known) => known.right |= right,
        None => selector.keys.push(KeyPattern::new(right, pattern)),
    }
    Ok(())
}

/// Patterns and arguments are written into files, separated by spaces.
fn check_word(word: &[u8]) -> Result<(), RuleError> {
    match word.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0 || *byte == 0x0b) {
        true => Err(SYNTAX),
        false => Ok(()),
    }
}

/// Remembers a rule for commands, in place of those that it makes useless.
fn note_rule(selector: &mut Selector, is_allowed: bool, name: &[u8]) {
    let name = name.to_ascii_lowercase();
    let replaces =
        |known: &[u8]| known == name || known.strip_prefix(&*name).is_some_and(|rest| rest.starts_with(b"|"));
    selector.command_rules.retain(|(_, known)| !replaces(known));
    selector.command_rules.push((is_allowed, name));
}

fn parse_hash(text: &[u8]) -> Option<PasswordHash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut parsed = [0; 32];
    if text.len() != 2 * parsed.len() {
        return None;
    }
    for (byte, pair) in parsed.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(parsed)
}

/// A hash in lower-case hexadecimal digits.
pub fn shown_hash(hash: &PasswordHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True when a user can have this name. Not the empty one, which Redis takes: in a file there would be none.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0 || *byte == 0x0b)
}

// Rights as rules.

/// `-@all +get`.
pub fn shown_commands(selector: &Selector) -> Vec<u8> {
    let mut shown = if selector.commands.has_future { b"+@all".to_vec() } else { b"-@all".to_vec() };
    for (is_allowed, rule) in &selector.command_rules {
        shown.extend_from_slice(if *is_allowed { b" +" } else { b" -" });
        shown.extend_from_slice(rule);
    }
    shown
}

/// `~a* %R~b*`.
pub fn shown_keys(selector: &Selector) -> Vec<u8> {
    if selector.all_keys {
        return b"~*".to_vec();
    }
    let shown = |known: &KeyPattern| {
        let sign: &[u8] = match known.right {
            KeyRight::READ => b"%R~",
            KeyRight::WRITE => b"%W~",
            // Not `~*`, as Redis shows it: no other pattern may follow that, and the rules could not be read.
            _ if *known.text == *b"*" => b"%RW~",
            _ => b"~",
        };
        [sign, &known.text].concat()
    };
    selector.keys.iter().map(shown).collect::<Vec<_>>().join(&b' ')
}

/// `&a* &b*`.
pub fn shown_channels(selector: &Selector) -> Vec<u8> {
    match selector.all_channels {
        true => b"&*".to_vec(),
        false => selector.channels.iter().map(|known| [b"&", &*known.text].concat()).collect::<Vec<_>>().join(&b' '),
    }
}

/// `db=0,1`, `alldbs` or `resetdbs`.
pub fn shown_databases(selector: &Selector) -> String {
    match &selector.databases {
        None => "alldbs".to_owned(),
        Some(listed) if listed.is_empty() => "resetdbs".to_owned(),
        Some(listed) => format!("db={}", listed.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    }
}

/// All rules of a selector, separated by spaces.
fn shown_selector(selector: &Selector) -> Vec<u8> {
    let mut words = vec![shown_keys(selector)];
    match selector.all_channels {
        true => words.push(b"&*".to_vec()),
        false => words.extend([b"resetchannels".to_vec(), shown_channels(selector)]),
    }
    if selector.databases.is_some() {
        words.push(shown_databases(selector).into_bytes());
    }
    words.push(shown_commands(selector));
    words.retain(|word| !word.is_empty());
    words.join(&b' ')
}

/// Selectors as rules, each in parentheses.
pub fn shown_selectors(selectors: &[Selector]) -> impl Iterator<Item = Vec<u8>> {
    selectors.iter().map(|selector| [b"(", &*shown_selector(selector), b")"].concat())
}

/// `limit:clients=10 limit:in=10485760`.
pub fn shown_limits(limits: &Limits) -> String {
    let shown = |(limit, value): (Limit, u64)| format!("limit:{}={value}", limit.name());
    limits.set_ones().map(shown).collect::<Vec<_>>().join(" ")
}

/// All rules of a user, separated by spaces: applied to a new user, they make the same one.
pub fn shown_rights(rights: &Rights) -> Vec<u8> {
    let mut shown = shown_access(rights);
    if rights.limits != Limits::default() {
        shown.push(b' ');
        shown.extend(shown_limits(&rights.limits).into_bytes());
    }
    shown
}

/// The rules of a user but for its limits.
pub(super) fn shown_access(rights: &Rights) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = vec![if rights.is_on { b"on".to_vec() } else { b"off".to_vec() }];
    if rights.no_password {
        words.push(b"nopass".to_vec());
    }
    words.push(if rights.sanitizes { b"sanitize-payload".to_vec() } else { b"skip-sanitize-payload".to_vec() });
    words.extend(rights.passwords.iter().map(|hash| format!("#{}", shown_hash(hash)).into_bytes()));
    words.push(shown_selector(&rights.selectors[0]));
    words.extend(shown_selectors(&rights.selectors[1..]));
    words.join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    /// Rules that are shown make the same rights, whatever they were given as.
    #[test]
    fn limits_and_databases_survive_being_shown_and_read() {
        let mut random = Random::new();
        for _ in 0..500 {
            let mut rights = Rights::new(false);
            let rules: Vec<Vec<u8>> = (0..random.below(8))
                .map(|_| {
                    if random.below(3) == 0 {
                        let listed: Vec<String> = (0..=random.below(4)).map(|_| random.below(16).to_string()).collect();
                        let listed = format!("DB={}", listed.join(","));
                        return random.pick(&[&*listed, "alldbs", "resetdbs"]).as_bytes().to_vec();
                    }
                    let limit = *random.pick(&Limit::ALL);
                    let unit = if limit.is_in_bytes() { *random.pick(&["", "b", "k", "kb", "m", "GB"]) } else { "" };
                    let number = match random.below(3) {
                        0 => 0,
                        1 => MEMORY_BYTES_MIN + random.below(100_000) as u64,
                        _ => MEMORY_BYTES_MIN + random.next() % (u64::MAX - MEMORY_BYTES_MIN),
                    };
                    format!("limit:{}={number}{unit}", limit.name()).into_bytes()
                })
                .collect();
            rights = apply_all(&rights, &rules, false).expect("each of them is right");
            let shown = shown_rights(&rights);
            let again: Vec<Vec<u8>> = shown.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            let read = apply_all(&Rights::new(true), &again, true).expect("what is shown can be read");
            assert_eq!(read.limits, rights.limits, "{}", String::from_utf8_lossy(&shown));
            assert_eq!(read.selectors[0].databases, rights.selectors[0].databases);
            assert_eq!(shown_rights(&read), shown);
            let none = apply_all(&read, &[b"resetlimits".to_vec()], true).expect("it is a rule");
            assert_eq!((none.limits, shown_access(&none)), (Limits::default(), shown_access(&read)));
        }
    }
}
