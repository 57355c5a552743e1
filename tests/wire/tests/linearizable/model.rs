//! What every action does when it runs alone: commands by the model of the binary `model`, and beside it what clients watch.

use std::collections::{BTreeMap, BTreeSet};

use wire::Reply;

use crate::action::{Action, Command, Ending};
use crate::keys;
use crate::keys::{array, ok};
use crate::scripts::SCRIPTS;

const DISCARDED: &str = "EXECABORT Transaction discarded because of previous errors.";

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    keys: keys::Model,
    /// By client.
    watches: BTreeMap<usize, Watch>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Watch {
    Untouched(BTreeSet<Vec<u8>>),
    Touched,
}

impl Model {
    pub(crate) fn act(&mut self, client: usize, action: &Action) -> Reply {
        match action {
            Action::Run(command) => self.command(command),
            Action::Watch(keys) => {
                let watch = self.watches.entry(client).or_insert(Watch::Untouched(BTreeSet::new()));
                if let Watch::Untouched(watched) = watch {
                    watched.extend(keys.iter().map(|key| key.clone().into_bytes()));
                }
                ok()
            }
            Action::Unwatch | Action::Transaction(_, Ending::Discard) => {
                self.watches.remove(&client);
                ok()
            }
            Action::Transaction(commands, ending) => match (self.watches.remove(&client), ending) {
                (_, Ending::ExecInVain) => Reply::Error(DISCARDED.into()),
                (Some(Watch::Touched), _) => Reply::NilArray,
                _ => array(commands.iter().map(|command| self.command(command))),
            },
        }
    }

    fn command(&mut self, command: &Command) -> Reply {
        let outcome = match command {
            Command::Plain(words) => self.keys.run(words),
            Command::Script { script, keys, args, .. } => {
                (SCRIPTS[*script].model)(&mut self.keys, &strs(keys), &strs(args))
            }
        };
        let changed = std::mem::take(&mut self.keys.changed);
        for watch in self.watches.values_mut() {
            if matches!(watch, Watch::Untouched(keys) if !keys.is_disjoint(&changed)) {
                *watch = Watch::Touched;
            }
        }
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
