//! The commands of a random test up to now, and what they should have answered: a failure shows the last of them.

use std::fmt::Write as _;

use crate::random::Random;
use crate::reply::Reply;

/// How many of the last commands a failure shows.
const SHOWN: usize = 40;

/// The last commands of a random test, with the replies that they should have had.
#[derive(Default)]
pub struct History {
    lines: Vec<String>,
    count: usize,
}

impl History {
    /// Returns the number of commands that have been compared.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Compares the replies to commands, and panics at the first that does not `agree` with the one that is expected.
    #[track_caller]
    pub fn compare(
        &mut self,
        commands: &[String],
        expected: Vec<Reply>,
        received: Vec<Reply>,
        agree: impl Fn(&str, &Reply, &Reply) -> bool,
    ) {
        for ((command, expected), received) in commands.iter().zip(expected).zip(received) {
            if self.lines.len() >= 2 * SHOWN {
                self.lines.drain(..SHOWN);
            }
            self.count += 1;
            self.lines.push(format!("> {command}\n{expected}"));
            if !agree(command, &expected, &received) {
                let mut shown = String::new();
                for line in &self.lines[self.lines.len().saturating_sub(SHOWN)..] {
                    let _ = writeln!(shown, "{}", line.chars().take(2_000).collect::<String>());
                }
                panic!("{shown}received: {received}");
            }
        }
    }
}

/// Changes, removes, doubles or adds one word of a command, but not its first key: no key gets an odd name by it.
pub fn spoil_behind_key(random: &mut Random, command: &str, odd_words: &[&str]) -> String {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    let at = 2 + random.below(words.len().saturating_sub(2).max(1));
    let word = odd_words[random.below(odd_words.len())];
    match random.below(5) {
        _ if at >= words.len() => words.push(word),
        0 | 1 => words[at] = word,
        2 => words.insert(at, word),
        3 => words.insert(at, words[at]),
        _ => drop(words.remove(at)),
    }
    words.join(" ")
}
