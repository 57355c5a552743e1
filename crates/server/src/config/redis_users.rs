//! Makes rules of Holdfast's of a `user` line of a redis.conf.

use engine::acl::user::hash;
use engine::acl::{Rights, rules};

/// A user of a holdfast.toml.
pub(super) struct User {
    pub(super) name: String,
    pub(super) rules: String,
    /// Why the user is off, although the redis.conf may let it in.
    pub(super) off_because: Option<String>,
    /// What of its line is not converted.
    pub(super) incomplete: Option<String>,
}

/// Rules in one line, and those that it lacks.
#[derive(Default)]
struct Rules {
    kept: Vec<String>,
    dropped: Vec<String>,
}

/// Reads the name and the rules behind the word `user`. The user is off if the rules do not say what it may do. An error says
/// why there cannot be a user of that name.
pub(super) fn user_of(values: &[Vec<u8>]) -> Result<User, &'static str> {
    let [name, given @ ..] = values else { return Err("it has no name") };
    let name = word(name).ok_or("the name is no word in UTF-8: nobody can log in as this user")?.to_owned();
    Ok(match Rules::of(given) {
        Ok(Rules { kept, dropped }) => {
            let why = "they name what Holdfast does not have, or are no words in UTF-8";
            let incomplete = format!("the user is there without the rules {}: {why}", dropped.join(", "));
            let incomplete = (!dropped.is_empty()).then_some(incomplete);
            User { name, rules: kept.join(" "), off_because: None, incomplete }
        }
        Err(why) => {
            let incomplete = Some(format!("the user is off: {why}"));
            User { name, rules: "off".to_owned(), off_because: Some(why), incomplete }
        }
    })
}

/// The rule for a password that is not UTF-8, or has white space.
pub(super) fn password_rule(secret: &[u8]) -> String {
    format!("#{}", rules::shown_hash(&hash(secret)))
}

/// Formats an argument so that a redis.conf could have it.
pub(super) fn shown_word(value: &[u8]) -> String {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
    if is_plain { value.escape_ascii().to_string() } else { format!("\"{}\"", value.escape_ascii()) }
}

/// The text of one word, as rules in a holdfast.toml are: they are separated by white space.
fn word(bytes: &[u8]) -> Option<&str> {
    let is_word = !bytes.is_empty() && !bytes.iter().any(u8::is_ascii_whitespace);
    std::str::from_utf8(bytes).ok().filter(|_| is_word)
}

impl Rules {
    fn of(given: &[Vec<u8>]) -> Result<Rules, String> {
        // The table of commands has to be there: rules name them.
        engine::command::registry();
        let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).filter(|rule| !rule.is_empty()).collect();
        let mut made = Rules::default();
        for rule in joined(&given)? {
            let kept = match &*rule {
                [b'(', inner @ .., b')'] => Some(made.selector(inner)?),
                [b'>', secret @ ..] if word(&rule).is_none() => Some(password_rule(secret)),
                [b'<', secret @ ..] if word(&rule).is_none() => Some(password_rule(secret).replacen('#', "!", 1)),
                rule => made.of_command_or_pattern(rule)?,
            };
            made.kept.extend(kept);
        }
        // What a server will read.
        let text = made.kept.join(" ");
        let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
        let wrong = |bad: rules::BadRule| format!("{}: {}", shown_word(&bad.rule), bad.why);
        rules::apply_all(&Rights::new(false), &joined(&words)?, false).map_err(wrong)?;
        Ok(made)
    }

    fn selector(&mut self, inner: &[u8]) -> Result<String, String> {
        let mut kept = Vec::new();
        for rule in inner.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
            kept.extend(self.of_command_or_pattern(rule)?);
        }
        Ok(format!("({})", kept.join(" ")))
    }

    /// Returns the rule as it is, or `None` if the user has the same rights without it, or fewer.
    fn of_command_or_pattern(&mut self, rule: &[u8]) -> Result<Option<String>, String> {
        let text = word(rule);
        let is_dropped = match rule {
            [b'+', ..] => is_unknown(rule) || text.is_none(),
            [b'-', ..] => is_unknown(rule),
            [b'~' | b'%' | b'&', ..] => text.is_none(),
            _ => false,
        };
        if is_dropped {
            self.dropped.push(shown_word(rule));
            return Ok(None);
        }
        text.map(|text| Some(text.to_owned())).ok_or_else(|| format!("{} is no rule", shown_word(rule)))
    }
}

fn joined(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    rules::join_selectors(rules).map_err(|begin| format!("{} has no closing parenthesis", shown_word(&begin)))
}

/// True for a rule that names a command or category that Holdfast does not have.
fn is_unknown(rule: &[u8]) -> bool {
    let applied = rules::apply_all(&Rights::new(false), &[rule.to_vec()], false);
    // A command without subcommands may have in Redis what the rule takes away.
    let command = rule[1..].split(|byte| *byte == b'|').next().unwrap_or_default();
    let has_more = || {
        let row = engine::command::registry().find(command);
        rule[1..].contains(&b'|') && row.is_some_and(|row| row.subcommands.is_empty())
    };
    applied.is_err_and(|bad| bad.why == rules::UNKNOWN) && !has_more()
}
