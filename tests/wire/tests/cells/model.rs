//! Random commands on a few cells, compared with a plain list of versions.

use std::collections::BTreeMap;
use wire::own::{start, steps};
use wire::{Random, Reply};

/// Versions of a cell that are kept: number, value, and the time that the server has told.
type Versions = Vec<(i64, String, i64)>;

#[derive(Default)]
struct Model {
    cells: BTreeMap<usize, Versions>,
    limit: usize,
}

impl Model {
    fn current(&self, name: usize) -> i64 {
        self.cells.get(&name).and_then(|versions| versions.last()).map_or(0, |version| version.0)
    }

    fn write(&mut self, name: usize, value: &str) -> i64 {
        let number = self.current(name) + 1;
        let versions = self.cells.entry(name).or_default();
        versions.push((number, value.to_owned(), 0));
        if self.limit > 0 {
            versions.drain(..versions.len().saturating_sub(self.limit));
        }
        number
    }

    fn shown(&self, name: usize, wanted: impl Fn(&(i64, String, i64)) -> bool) -> Vec<(i64, String, i64)> {
        self.cells.get(&name).into_iter().flatten().rev().filter(|version| wanted(version)).cloned().collect()
    }
}

fn version(reply: &Reply) -> (i64, String, i64) {
    let items = reply.items();
    (items[1].integer(), items[0].text().to_owned(), items[2].integer())
}

#[test]
fn random_commands_agree_with_a_list_of_versions() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut model = Model { limit: 128, ..Model::default() };
    for step in 0..steps(5_000) {
        let name = random.below(6);
        let current = model.current(name);
        let value = format!("{step}-{}", "x".repeat(random.pick(&[0, 20, 20, 400, 5_000])));
        let near = |random: &mut Random| (current - 3 + random.below(6) as i64).max(1);
        match random.below(40) {
            0 => {
                model.limit = random.pick(&[0, 1, 2, 33, 128]);
                connection.run(&format!("CONFIG SET cell-max-versions {}", model.limit));
            }
            1 => {
                let asked = near(&mut random);
                let is_gone = current == asked;
                assert_eq!(connection.run(&format!("CELL.DEL c{name} IF {asked}")).integer(), i64::from(is_gone));
                if is_gone {
                    model.cells.remove(&name);
                }
            }
            2 => {
                let other = random.below(6);
                connection.run(&format!("COPY c{name} c{other} REPLACE"));
                // No cell takes the place of another.
                if let Some(copied) = model.cells.get(&name).cloned() {
                    model.cells.entry(other).or_insert(copied);
                }
            }
            3..=6 => {
                let expected = if current == 0 { model.write(name, &value) } else { current };
                assert_eq!(connection.run(&format!("CELL.INIT c{name} {value}")).integer(), expected);
            }
            7..=16 => {
                let asked = near(&mut random) - 1;
                let reply = connection.run(&format!("CELL.CAS c{name} {asked} {value}"));
                match asked == current {
                    true => assert_eq!(reply.integer(), model.write(name, &value)),
                    false => assert!(reply.is_nil(), "{asked} of {current}: {reply}"),
                }
            }
            17..=30 => {
                let reply = connection.run(&format!("CELL.SET c{name} {value}"));
                assert_eq!(reply.integer(), model.write(name, &value));
            }
            31..=34 => {
                let (below, limit) = (near(&mut random) + 2, random.below(50));
                let reply = connection.run(&format!("CELL.HISTORY c{name} BEFORE {below} LIMIT {limit}"));
                let mut expected = model.shown(name, |version| version.0 < below);
                expected.truncate(limit);
                assert_eq!(reply.items().iter().map(version).collect::<Vec<_>>(), expected);
            }
            35 | 36 => {
                let versions = model.shown(name, |_| true);
                let Some(some) = versions.get(random.below(versions.len().max(1))) else { continue };
                let at_us = some.2 + random.below(3) as i64 - 1;
                let reply = connection.run(&format!("CELL.GETV c{name} ASOF {at_us}"));
                let expected = model.shown(name, |version| version.2 <= at_us).into_iter().next();
                assert_eq!((!reply.is_nil()).then(|| version(&reply)), expected);
            }
            _ => {
                let asked = near(&mut random);
                let reply = connection.run(&format!("CELL.GETV c{name} VERSION {asked}"));
                let expected = model.shown(name, |version| version.0 == asked).into_iter().next();
                assert_eq!((!reply.is_nil()).then(|| version(&reply)), expected);
            }
        }
        // The time of a new version is what the server says; from then on it stays.
        if let Some(last) = model.cells.get_mut(&name).and_then(|versions| versions.last_mut()) {
            let (number, value, time_us) = version(&connection.run(&format!("CELL.GETV c{name}")));
            assert_eq!((number, &value), (last.0, &last.1));
            assert!(last.2 == 0 || last.2 == time_us, "the time of version {number} has changed");
            last.2 = time_us;
        } else {
            assert!(connection.run(&format!("CELL.GET c{name}")).is_nil());
        }
    }
    connection.run("CONFIG SET cell-max-versions 128");
}
