//! Writes random requests for a row of the command table: some that fit its documentation, some that do not. Knows no
//! command by name.

use wire::Random;

use crate::danger;
use crate::table::{Argument, Kind, Row, Table};
use crate::vocabulary::{Vocabulary, bytes};

/// The words of one request, the command's name first.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) args: Vec<Vec<u8>>,
    /// Which of them the documentation calls keys.
    pub(crate) keys: Vec<usize>,
    /// The row of the table that it was made for.
    pub(crate) row: usize,
}

/// Writes the requests of one session.
pub(crate) struct Author<'a> {
    pub(crate) table: &'a Table,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) random: Random,
    /// Keys that most requests of this session use, so that they meet each other.
    favourites: Vec<Vec<u8>>,
    /// Whether all requests use the first of them.
    pub(crate) is_focused: bool,
    /// Whether most keys are new or large.
    pub(crate) is_expansive: bool,
    /// Requests that are not sent: globs over the whole request.
    avoid: &'a [String],
}

impl<'a> Author<'a> {
    pub(crate) fn new(
        table: &'a Table,
        vocabulary: &'a Vocabulary,
        avoid: &'a [String],
        mut random: Random,
    ) -> Author<'a> {
        let count = 1 + random.below(4);
        let favourites = (0..count).map(|_| vocabulary.key(&mut random)).collect();
        Author { table, vocabulary, random, favourites, is_focused: false, is_expansive: false, avoid }
    }

    /// A request for any row that `wanted` wants.
    pub(crate) fn request(&mut self, wanted: impl Fn(&Row) -> bool) -> Request {
        loop {
            let row = self.random.below(self.table.rows.len());
            if wanted(&self.table.rows[row])
                && let Some(request) = self.request_for(row)
            {
                return request;
            }
        }
    }

    pub(crate) fn key(&mut self) -> Vec<u8> {
        if self.is_focused {
            return self.favourites[0].clone();
        }
        if self.random.one_in(3) {
            return self.vocabulary.key(&mut self.random);
        }
        self.favourites[self.random.below(self.favourites.len())].clone()
    }

    fn key_for(&mut self, group: &str) -> Vec<u8> {
        if self.is_expansive {
            match self.random.below(4) {
                0 | 1 => return format!("new:{}", self.random.next_u64()).into_bytes(),
                2 => return b"full:big".to_vec(),
                _ => {}
            }
        }
        let fitting = match self.is_focused || self.random.one_in(2) {
            true => None,
            false => self.vocabulary.fitting_key(group, &mut self.random),
        };
        fitting.unwrap_or_else(|| self.key())
    }

    /// A request for this row, unless it is one that is not sent.
    pub(crate) fn request_for(&mut self, number: usize) -> Option<Request> {
        let table = self.table;
        let row = &table.rows[number];
        let mut draft = Draft { args: row.words.clone(), keys: Vec::new(), group: row.group.clone() };
        if row.arguments.is_empty() {
            self.add_undocumented(row.arity, &mut draft);
        } else {
            self.add_all(&row.arguments, &mut draft);
        }
        if self.random.one_in(4) {
            self.spoil(row.words.len(), &mut draft);
        }
        let Draft { mut args, mut keys, .. } = draft;
        if !danger::admit(&mut args, &mut self.random) || self.is_avoided(&args) {
            return None;
        }
        keys.retain(|at| *at < args.len());
        Some(Request { args, keys, row: number })
    }

    pub(crate) fn is_avoided(&self, args: &[Vec<u8>]) -> bool {
        let text = || {
            let words: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
            words.join(" ").to_ascii_lowercase()
        };
        !self.avoid.is_empty() && {
            let text = text();
            self.avoid.iter().any(|glob| wire::glob(glob.to_ascii_lowercase().as_bytes(), text.as_bytes()))
        }
    }

    /// A row without documented arguments may still take some.
    fn add_undocumented(&mut self, arity: i64, draft: &mut Draft) {
        let least = usize::try_from(arity.unsigned_abs()).unwrap_or(1);
        while draft.args.len() < least {
            draft.args.push(self.vocabulary.odd(&mut self.random));
        }
    }

    fn add_all(&mut self, arguments: &[Argument], draft: &mut Draft) {
        // Options may come in another order than the documented one.
        let shuffled: Vec<&Argument> = match self.random.one_in(6) {
            false => arguments.iter().collect(),
            true => {
                let (mut required, mut options): (Vec<_>, Vec<_>) =
                    arguments.iter().partition(|argument| !argument.optional);
                if !options.is_empty() {
                    let by = self.random.below(options.len());
                    options.rotate_left(by);
                }
                required.append(&mut options);
                required
            }
        };
        let mut following = shuffled.iter().skip(1).map(Some).chain([None]);
        // How often the next argument is to be repeated, when a count stood before it.
        let mut counted = None;
        for argument in &shuffled {
            let next = following.next().flatten();
            let repeats = match counted.take() {
                Some(count) => count,
                None if argument.optional && !self.random.one_in(3) => 0,
                None if argument.multiple => self.repeats(),
                None => 1,
            };
            if argument.kind == Kind::Integer && argument.token.is_none() && next.is_some_and(|next| next.multiple) {
                let count = self.repeats();
                let told = if self.random.one_in(8) {
                    self.vocabulary.integer("count", &mut self.random)
                } else {
                    count.to_string().into_bytes()
                };
                draft.args.push(told);
                counted = Some(count);
                continue;
            }
            for repeat in 0..repeats {
                if let Some(token) = &argument.token
                    && (repeat == 0 || argument.multiple_token)
                {
                    draft.args.push(self.in_some_case(token));
                }
                self.add_value(argument, draft);
            }
        }
    }

    fn repeats(&mut self) -> usize {
        match self.random.below(60) {
            0 => 100,
            1 => 0,
            n => 1 + n % 3,
        }
    }

    fn in_some_case(&mut self, word: &[u8]) -> Vec<u8> {
        if self.random.one_in(3) { word.to_ascii_lowercase() } else { word.to_vec() }
    }

    fn add_value(&mut self, argument: &Argument, draft: &mut Draft) {
        let random = &mut self.random;
        let value = match argument.kind {
            Kind::PureToken => return,
            Kind::OneOf => {
                if let Some(at) = (!argument.members.is_empty()).then(|| random.below(argument.members.len())) {
                    let mut chosen = argument.members[at].clone();
                    chosen.optional = false;
                    self.add_all(&[chosen], draft);
                }
                return;
            }
            Kind::Block => return self.add_all(&argument.members, draft),
            Kind::Key => {
                draft.keys.push(draft.args.len());
                self.key_for(&draft.group)
            }
            Kind::Integer => self.vocabulary.integer(&argument.name, random),
            Kind::Double => self.vocabulary.double(&argument.name, random),
            Kind::UnixTime => self.vocabulary.unix_time(&argument.name, random),
            Kind::Pattern => self.vocabulary.pattern(random),
            Kind::String => self.vocabulary.string(&argument.name, random),
        };
        draft.args.push(value);
    }

    /// Makes a request that (most likely) fits no longer. Keys may then stand elsewhere than the draft says, which gives
    /// scripts that declare other keys than they use.
    fn spoil(&mut self, name_words: usize, draft: &mut Draft) {
        let random = &mut self.random;
        let args = &mut draft.args;
        let after_name = |random: &mut Random, len: usize| name_words + random.below((len - name_words).max(1));
        let at = after_name(random, args.len()).min(args.len() - 1);
        match random.below(12) {
            0 => args.truncate(name_words),
            1 => args.truncate(after_name(random, args.len())),
            2 | 3 if at >= name_words => {
                args.remove(at);
            }
            4 => args.push(self.vocabulary.odd(random)),
            5 => {
                let odd = self.vocabulary.odd(random);
                args.insert(after_name(random, args.len() + 1).min(args.len()), odd);
            }
            6 if at >= name_words => args[at] = self.vocabulary.odd(random),
            7 if at >= name_words => {
                let other = after_name(random, args.len()).min(args.len() - 1);
                args.swap(at, other);
            }
            8 => {
                // Options twice.
                let tail = args[at.max(name_words).min(args.len())..].to_vec();
                args.extend(tail);
            }
            9 if at >= name_words => args[at] = bytes(random, 60),
            10 if random.one_in(10) => args.extend((0..3_000).map(|i: i32| i.to_string().into_bytes())),
            11 if random.one_in(10) => args.push(vec![b'y'; 1_000_000]),
            _ => args.push(random.below(100).to_string().into_bytes()),
        }
    }
}

struct Draft {
    args: Vec<Vec<u8>>,
    keys: Vec<usize>,
    /// Of the row that it is for.
    group: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(arguments: Vec<Argument>) -> Vec<Request> {
        let row = Row { words: vec![b"cmd".to_vec()], arity: -2, flags: Vec::new(), group: String::new(), arguments };
        let table = Table { rows: vec![row] };
        let vocabulary = Vocabulary { payloads: Vec::new(), digests: Vec::new() };
        let mut author = Author::new(&table, &vocabulary, &[], Random::new(7));
        (0..1_000).map(|_| author.request(|_| true)).collect()
    }

    fn argument(name: &str, kind: Kind) -> Argument {
        Argument { name: name.into(), kind, ..Argument::default() }
    }

    #[test]
    fn most_requests_fit_and_some_do_not() {
        let keys = Argument { multiple: true, ..argument("key", Kind::Key) };
        let requests = requests(vec![argument("numkeys", Kind::Integer), keys]);
        let fits = |request: &&Request| {
            let count = request.args.get(1).and_then(|count| str::from_utf8(count).ok()?.parse().ok());
            count == Some(request.args.len().wrapping_sub(2))
        };
        let fitting = requests.iter().filter(fits).count();
        assert!((500..950).contains(&fitting), "{fitting} of {} fit", requests.len());
    }

    #[test]
    fn keys_are_where_the_request_says_they_are() {
        let requests = requests(vec![argument("key", Kind::Key), argument("value", Kind::String)]);
        assert!(requests.iter().filter(|request| request.args.len() == 3).all(|request| request.keys == [1]));
    }

    #[test]
    fn one_member_of_a_group_is_chosen_with_its_token() {
        let word = |word: &str| Argument { token: Some(word.into()), ..argument(word, Kind::PureToken) };
        let one_of = Argument { members: vec![word("NX"), word("XX")], ..argument("condition", Kind::OneOf) };
        let requests = requests(vec![one_of]);
        for expected in [b"NX", b"XX"] {
            assert!(requests.iter().any(|request| request.args == [b"cmd".to_vec(), expected.to_vec()]));
        }
    }
}
