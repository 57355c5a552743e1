//! Groups against a plain model: random records, limits, takes and times.

use super::queues::REMEMBERED;
use super::*;
use crate::types::sorted_set::{ScoreBound, ScoreRange};
use std::collections::BTreeMap;
use test_random::Random;

const MS: u64 = 1_000_000;
const BEGAN: u64 = 1_763_172_000_000 * MS;

fn queues() -> GroupQueues {
    GroupQueues::new(Limits::default(), Limits::default())
}

fn nothing_of_its_own(_: &[u8]) -> Limits {
    Limits::default()
}

fn place(group: &[u8], score: f64, is_held: bool) -> Option<Place<'_>> {
    Some(Place { group, score: Some(score), is_held })
}

fn up_to(max: f64) -> ScoreRange {
    let bound = |score| ScoreBound { score, excluded: false };
    ScoreRange { min: bound(f64::NEG_INFINITY), max: bound(max) }
}

const TAKE: Take = Take { holds: true, counts: true };

/// Takes the next record as a claim does: it is held from then on, with a lease.
fn take(queues: &mut GroupQueues, order: Order, now_ns: u64, lease: f64) -> Option<(Vec<u8>, u64)> {
    take_as(queues, order, TAKE, now_ns, lease)
}

fn take_as(queues: &mut GroupQueues, order: Order, claim: Take, now_ns: u64, lease: f64) -> Option<(Vec<u8>, u64)> {
    let mut search = GroupSearch::new(order, claim, up_to((now_ns / MS) as f64));
    loop {
        match search.next(queues, false, now_ns) {
            Found::Unfinished => {}
            Found::Nothing { .. } => return None,
            Found::Record { group, score, id } => {
                let name = queues.name(group).expect("it was just found").to_vec();
                let is_held = queues.is_held_at(group, score, id);
                let take = Take { holds: claim.holds && !is_held, ..claim };
                queues.reserve(&name, id, take, now_ns).expect("a search finds what limits allow");
                let after = place(&name, (now_ns / MS) as f64 + lease, claim.holds);
                queues.change(id, place(&name, score, is_held), after, nothing_of_its_own);
                queues.end_take(&name, id);
                return Some((name, id));
            }
        }
    }
}

#[test]
fn groups_take_turns_by_their_weights() {
    let mut queues = queues();
    let weighed = Limits { weight: Some(3000), ..Limits::default() };
    for id in 0..10_000 {
        let group: &[u8] = if id % 2 == 0 { b"light" } else { b"heavy" };
        let own = |name: &[u8]| if name == b"heavy" { weighed } else { Limits::default() };
        queues.change(id, None, place(group, id as f64, false), own);
    }
    let mut taken: Vec<bool> = Vec::new();
    for _ in 0..5_000 {
        let (name, _) = take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap();
        taken.push(name == b"heavy");
    }
    for window in taken.windows(1_000) {
        let heavy = window.iter().filter(|heavy| **heavy).count();
        assert!((735..=765).contains(&heavy), "{heavy} of a thousand");
    }
}

#[test]
fn one_job_waits_at_most_one_round() {
    let mut queues = queues();
    for id in 0..30_000 {
        queues.change(id, None, place(format!("{}", id % 3).as_bytes(), 0.0, false), nothing_of_its_own);
    }
    for _ in 0..1_000 {
        take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap();
    }
    queues.change(99_999, None, place(b"small", 5.0, false), nothing_of_its_own);
    let waited = (0..10).position(|_| take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap().0 == b"small");
    assert!(waited.is_some_and(|waited| waited <= 3), "{waited:?}");
}

#[test]
fn a_tenant_that_always_has_one_job_gets_its_share_and_no_more() {
    let mut queues = queues();
    for id in 0..40_000 {
        queues.change(id, None, place(format!("deep{}", id % 9).as_bytes(), 0.0, false), nothing_of_its_own);
    }
    let mut drips = 0;
    for round in 0..3_000 {
        let id = 1_000_000 + round;
        let is_there = queues.state(b"drip").is_some_and(|state| state.records > 0);
        if !is_there {
            queues.change(id, None, place(b"drip", 0.0, false), nothing_of_its_own);
        }
        let (name, id) = take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap();
        if name == b"drip" {
            drips += 1;
            // The job is done.
            queues.change(id, place(b"drip", (BEGAN / MS) as f64 + 1e9, true), None, nothing_of_its_own);
        }
    }
    assert!((290..=310).contains(&drips), "{drips} of 3000 among ten tenants");
}

#[test]
fn groups_that_are_always_new_do_not_starve_others() {
    let mut queues = queues();
    for id in 0..1_000 {
        queues.change(id, None, place(b"deep", 0.0, false), nothing_of_its_own);
    }
    let mut deep = 0;
    for step in 0..400 {
        queues.change(10_000 + step, None, place(format!("new{step}").as_bytes(), 0.0, false), nothing_of_its_own);
        deep += usize::from(take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap().0 == b"deep");
    }
    // A round is as long as there are groups that wait, and one comes with each step.
    assert!(deep >= 20, "{deep} of 400");
}

#[test]
fn a_cap_holds_back_and_an_expired_lease_comes_again() {
    let mut queues = queues();
    queues.set_limits(Scope::Each, Limits { held: Setting::Is(2), ..Limits::default() });
    for id in 0..5 {
        queues.change(id, None, place(b"g", id as f64, false), nothing_of_its_own);
    }
    for order in [Order::Fair, Order::Score] {
        let now_ns = BEGAN + if order == Order::Score { 100 * MS } else { 0 };
        assert!(take(&mut queues, order, now_ns, 50.0).is_some());
        assert!(take(&mut queues, order, now_ns, 50.0).is_some());
        assert_eq!(take(&mut queues, order, now_ns, 50.0), None, "{order:?}");
    }
    assert_eq!(queues.held(), 2, "the leases that ran out were taken again");
    assert_eq!(queues.state(b"g").unwrap().allowed_ns, None);
}

#[test]
fn a_cap_for_all_lets_expired_leases_through() {
    let mut queues = queues();
    queues.set_limits(Scope::All, Limits { held: Setting::Is(1), ..Limits::default() });
    for id in 0..4 {
        queues.change(id, None, place(format!("{id}").as_bytes(), 0.0, false), nothing_of_its_own);
    }
    let first = take(&mut queues, Order::Fair, BEGAN, 50.0).unwrap();
    assert_eq!(take(&mut queues, Order::Fair, BEGAN, 50.0), None);
    assert_eq!(take(&mut queues, Order::Fair, BEGAN + 60 * MS, 50.0), Some(first));
}

#[test]
fn a_million_short_lived_groups_leave_nothing_behind() {
    let mut queues = queues();
    let count = 100_000;
    for id in 0..count {
        queues.change(id, None, place(format!("{id}").as_bytes(), 0.0, false), nothing_of_its_own);
    }
    assert_eq!(queues.len(), count as usize);
    for _ in 0..count {
        let (name, id) = take(&mut queues, Order::Fair, BEGAN, 50.0).unwrap();
        queues.change(id, place(&name, (BEGAN / MS) as f64 + 50.0, true), None, nothing_of_its_own);
    }
    for _ in 0..count {
        queues.work();
    }
    assert_eq!((queues.len(), queues.items(), queues.held()), (0, 0, 0));
    assert!(queues.capacity() < 1024, "{}", queues.capacity());
}

/// Regression: a group whose only record no claim takes kept its turn, and all that were emptied since were remembered.
#[test]
fn a_group_that_never_gives_lets_others_be_forgotten() {
    let mut queues = queues();
    queues.change(0, None, place(b"stuck", 0.0, false), nothing_of_its_own);
    let mut search = GroupSearch::new(Order::Fair, TAKE, up_to((BEGAN / MS) as f64));
    while search.next(&mut queues, false, BEGAN) == Found::Unfinished {}
    for id in 1..10_000 {
        let name = format!("{id}");
        queues.change(id, None, place(name.as_bytes(), 1.0, false), nothing_of_its_own);
        // A claim with a condition takes it.
        queues.reserve(name.as_bytes(), id, TAKE, BEGAN).expect("nothing limits it");
        let held = place(name.as_bytes(), (BEGAN / MS) as f64 + 1e9, true);
        queues.change(id, place(name.as_bytes(), 1.0, false), held, nothing_of_its_own);
        queues.end_take(name.as_bytes(), id);
        queues.change(id, held, None, nothing_of_its_own);
    }
    assert!(queues.len() < 3 * REMEMBERED, "{} groups", queues.len());
    queues.check();
}

/// What the queues should do, without any order that has to be kept.
#[derive(Default)]
struct Model {
    records: BTreeMap<u64, (Vec<u8>, Option<f64>, bool)>,
    own: BTreeMap<Vec<u8>, Limits>,
    each: Limits,
    all: Limits,
    untils: BTreeMap<Vec<u8>, u64>,
    all_until: u64,
}

impl Model {
    fn limits(&self, group: &[u8]) -> Applied {
        self.own.get(group).copied().unwrap_or_default().applied(&self.each)
    }

    fn held(&self, group: Option<&[u8]>) -> u64 {
        let within = |name: &[u8]| group.is_none_or(|group| group == name);
        self.records.values().filter(|(name, _, is_held)| *is_held && within(name)).count() as u64
    }

    /// What was used up of a slower rate counts for a burst of the one that is in force now, and for nothing without one.
    fn cut_states(&mut self, now_ns: u64) {
        let cut = |rate: Option<Rate>, until: u64| rate.map_or(0, |rate| rate.used_up_to(until, now_ns));
        self.all_until = cut(self.all.applied(&Limits::default()).rate, self.all_until);
        for name in self.untils.keys().cloned().collect::<Vec<_>>() {
            let until = cut(self.limits(&name).rate, self.untils[&name]);
            self.untils.insert(name, until);
        }
    }

    /// The records that may be taken now by a claim, which may hold them.
    fn allowed(&self, max: f64, holds: bool, now_ns: u64) -> Vec<u64> {
        let all = self.all.applied(&Limits::default());
        let rate_allows = |rate: Option<Rate>, until| rate.is_none_or(|rate| rate.allowed_at(until, now_ns) <= now_ns);
        if all.is_paused || !rate_allows(all.rate, self.all_until) {
            return Vec::new();
        }
        let is_allowed = |group: &[u8], is_held: bool| {
            let limits = self.limits(group);
            let until = self.untils.get(group).copied().unwrap_or(0);
            let room = |max: Option<u64>, held: u64| is_held || !holds || max.is_none_or(|max| held < max);
            !limits.is_paused
                && rate_allows(limits.rate, until)
                && room(limits.held, self.held(Some(group)))
                && room(all.held, self.held(None))
        };
        let due = self.records.iter().filter(|(_, (group, score, is_held))| {
            score.is_some_and(|score| score <= max) && is_allowed(group, *is_held)
        });
        due.map(|(id, _)| *id).collect()
    }
}

fn some_limits(random: &mut Random) -> Limits {
    let held = *random.pick(&[Setting::Default, Setting::None, Setting::Is(0), Setting::Is(1), Setting::Is(3)]);
    let rate = Rate {
        takes: 1 + random.below(3) as u64,
        per_ms: 1 + random.below(20) as u64,
        burst: 1 + random.below(3) as u64,
    };
    let rate = *random.pick(&[Setting::Default, Setting::None, Setting::Is(rate)]);
    let weight = *random.pick(&[None, Some(500), Some(4000)]);
    let pause = *random.pick(&[None, None, Some(false), Some(true)]);
    Limits { held, rate, weight, pause }
}

#[test]
fn random_histories_are_as_in_the_model() {
    let mut random = Random::new();
    for _ in 0..300 {
        let (mut queues, mut model) = (queues(), Model::default());
        let mut now_ns = BEGAN;
        for _ in 0..300 {
            let id = random.below(30) as u64;
            let group = vec![b'a' + random.below(4) as u8];
            let own = model.own.clone();
            let own = |name: &[u8]| own.get(name).copied().unwrap_or_default();
            match random.below(12) {
                0..=4 => {
                    let before = model.records.remove(&id);
                    let score = (!random.next().is_multiple_of(4))
                        .then(|| (now_ns / MS) as f64 + random.below(40) as f64 - 20.0);
                    let is_held = random.next().is_multiple_of(3);
                    let after = (!random.next().is_multiple_of(5)).then_some((group, score, is_held));
                    let place = |place: &'_ Option<(Vec<u8>, Option<f64>, bool)>| -> Option<Place<'static>> {
                        let (group, score, is_held) = place.clone()?;
                        Some(Place { group: group.leak(), score, is_held })
                    };
                    queues.change(id, place(&before), place(&after), own);
                    if let Some(after) = after {
                        model.records.insert(id, after);
                    }
                }
                5 => {
                    let limits = some_limits(&mut random);
                    match random.below(4) {
                        0 => {
                            model.all = Limits { weight: None, ..limits };
                            queues.set_limits(Scope::All, model.all);
                        }
                        1 => {
                            model.each = limits;
                            queues.set_limits(Scope::Each, limits);
                        }
                        _ => {
                            model.own.insert(group.clone(), limits);
                            queues.set_limits(Scope::Group(&group), limits);
                        }
                    }
                    model.cut_states(now_ns);
                }
                6 => {
                    now_ns += random.below(30) as u64 * MS;
                    queues.pass_time(now_ns);
                }
                7 if random.next().is_multiple_of(10) => {
                    drop(queues.clear(true, own));
                    model.records.clear();
                }
                _ => {
                    let order = *random.pick(&[Order::Fair, Order::Score]);
                    let holds = !random.next().is_multiple_of(4);
                    let allowed = model.allowed((now_ns / MS) as f64, holds, now_ns);
                    let taken = take_as(&mut queues, order, Take { holds, counts: true }, now_ns, 10.0);
                    assert_eq!(taken.is_some(), !allowed.is_empty(), "{order:?}, allowed: {allowed:?}");
                    let Some((group, id)) = taken else { continue };
                    assert!(allowed.contains(&id));
                    if order == Order::Score {
                        let score = |id: &u64| model.records[id].1.unwrap();
                        let lowest = allowed.iter().map(score).fold(f64::INFINITY, f64::min);
                        assert_eq!(score(&id), lowest);
                    }
                    if let Some(rate) = model.limits(&group).rate {
                        let until = model.untils.entry(group.clone()).or_default();
                        *until = rate.after_take(*until, now_ns);
                    }
                    if let Some(rate) = model.all.applied(&Limits::default()).rate {
                        model.all_until = rate.after_take(model.all_until, now_ns);
                    }
                    model.records.insert(id, (group, Some((now_ns / MS) as f64 + 10.0), holds));
                }
            }
            assert_eq!(queues.held(), model.held(None));
            for group in [b"a", b"b", b"c", b"d"] {
                let held = queues.state(group).map_or(0, |state| state.held);
                assert_eq!(held, model.held(Some(group)));
            }
            queues.check();
        }
    }
}

/// Regression: its turn stayed where it was, a hundred thousand rounds away.
#[test]
fn a_group_that_becomes_heavier_waits_at_most_one_round() {
    let weight = |weight| Limits { weight: Some(weight), ..Limits::default() };
    let mut queues = queues();
    for id in 0..1_000 {
        let group = if id % 2 == 0 { b"a" } else { b"b" };
        queues.change(id, None, place(group, 0.0, false), nothing_of_its_own);
    }
    queues.set_limits(Scope::Group(b"a"), weight(WEIGHT_MIN));
    queues.set_limits(Scope::Group(b"b"), weight(WEIGHT_MAX));
    for _ in 0..10 {
        take(&mut queues, Order::Fair, BEGAN, 1e9);
    }
    queues.set_limits(Scope::Group(b"a"), weight(WEIGHT_MAX));
    let mut of_a = || (0..100).filter(|_| take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap().0 == b"a").count();
    assert!((49..=51).contains(&of_a()));
}

/// Regression: each take by a claim that only one group could serve put it behind by one more round.
#[test]
fn claims_that_only_one_group_can_serve_put_it_behind_by_one_round() {
    let mut queues = queues();
    for id in 0..2_000 {
        let (group, score) = if id % 2 == 0 { (b"a", 1.0) } else { (b"b", 0.0) };
        queues.change(id, None, place(group, (BEGAN / MS) as f64 + score, false), nothing_of_its_own);
    }
    // Only the jobs of one are due.
    for _ in 0..500 {
        assert_eq!(take(&mut queues, Order::Fair, BEGAN, 1e9).unwrap().0, b"b");
    }
    let first: Vec<_> = (0..4).map(|_| take(&mut queues, Order::Fair, BEGAN + MS, 1e9).unwrap().0).collect();
    assert!(first.contains(&b"b".to_vec()), "{first:?}");
    // Each is found by a condition of its own.
    for id in (1_200..2_000).filter(|id| id % 2 == 1) {
        let Some(_) = queues.reserve(b"b", id, TAKE, BEGAN + MS) else { panic!("it may give") };
        let at = (BEGAN / MS) as f64;
        let before = place(b"b", at, false);
        queues.change(id, before, place(b"b", at + 1e9, true), nothing_of_its_own);
        queues.end_take(b"b", id);
    }
    let next: Vec<_> = (0..4).map(|_| take(&mut queues, Order::Fair, BEGAN + MS, 1e9).unwrap().0).collect();
    assert!(next.contains(&b"b".to_vec()), "{next:?}");
}

/// Regression: it was cut anew with every look, moved on with the clock, and nothing was given until the time of the slower rate.
#[test]
fn the_time_of_a_slower_rate_does_not_hold_a_faster_one_back() {
    let rate = |takes, per_ms| Limits { rate: Setting::Is(Rate { takes, per_ms, burst: takes }), ..Limits::default() };
    for scope in [Scope::Group(b"a"), Scope::Each, Scope::All] {
        for is_restarted in [false, true] {
            let mut queues = queues();
            queues.change(1, None, place(b"a", 0.0, false), nothing_of_its_own);
            queues.set_limits(scope, rate(1, 3_600_000));
            let claim = |queues: &mut GroupQueues, now_ns| take(queues, Order::Fair, now_ns, -1.0).is_some();
            assert!(claim(&mut queues, BEGAN) && !claim(&mut queues, BEGAN + 60_000 * MS));
            let mut changed_ns = BEGAN + 60_000 * MS;
            queues.set_limits(scope, rate(5, 1000));
            if is_restarted {
                // Only the state is known, and no time.
                let raised = match scope {
                    Scope::All => Scope::All,
                    _ => Scope::Group(b"a"),
                };
                queues = self::queues();
                queues.set_limits(scope, rate(5, 1000));
                queues.raise_rate(raised, BEGAN + 3_600_000 * MS, |_| match scope {
                    Scope::Group(_) => rate(5, 1000),
                    _ => Limits::default(),
                });
                queues.change(1, None, place(b"a", 0.0, false), nothing_of_its_own);
                changed_ns += 5_000 * MS;
            }
            assert!(!claim(&mut queues, changed_ns + 199 * MS), "{scope:?}, {is_restarted}: a burst is used up");
            let allowed = (0..3_000).filter(|ms| claim(&mut queues, changed_ns + (200 + ms) * MS)).count();
            assert!((14..=16).contains(&allowed), "{scope:?}, {is_restarted}: {allowed} in three seconds");
        }
    }
}

#[test]
fn groups_that_may_not_give_are_not_looked_at() {
    let mut queues = queues();
    queues.set_limits(Scope::Each, Limits { held: Setting::Is(1), ..Limits::default() });
    for id in 0..20_000u64 {
        let group = format!("{}", id % 10_000);
        queues.change(id, None, place(group.as_bytes(), 0.0, id < 10_000), nothing_of_its_own);
    }
    queues.change(99_999, None, place(b"free", 1.0, false), nothing_of_its_own);
    // Leases that have not run out.
    for id in 0..10_000u64 {
        let group = format!("{id}");
        let lease = place(group.as_bytes(), (BEGAN / MS) as f64 + 1e6, true);
        queues.change(id, place(group.as_bytes(), 0.0, true), lease, nothing_of_its_own);
    }
    while queues.has_work() {
        queues.work();
    }
    let mut search = GroupSearch::new(Order::Fair, TAKE, up_to((BEGAN / MS) as f64));
    let first = search.next(&mut queues, false, BEGAN);
    assert!(matches!(first, Found::Record { id: 99_999, .. }), "in one step: {first:?}");
}

#[test]
fn sizes_are_listed_in_parts_and_limits_that_keep_records_back_are_counted() {
    let mut queues = queues();
    for id in 0..300u64 {
        let group = format!("{}", id % 100);
        queues.change(id, None, place(group.as_bytes(), id as f64, false), nothing_of_its_own);
    }
    // Held, and not in the index.
    for id in 1000..1005u64 {
        let held = Some(Place { group: b"7", score: None, is_held: true });
        queues.change(id, None, held, nothing_of_its_own);
    }
    let (mut sizes, mut from) = (BTreeMap::new(), Some(0));
    while let Some(at) = from {
        from = queues.sizes(at, 7, |name, size| assert_eq!(sizes.insert(name.to_vec(), size), None));
    }
    assert_eq!(sizes.len(), 100);
    assert!(sizes.iter().all(|(name, size)| *size == if name == b"7" { 5 } else { 3 }), "{sizes:?}");
    assert_eq!([queues.size(b"7"), queues.size(b"8"), queues.size(b"none")], [Some(5), Some(3), None]);
    let first = |min| queues.first_score_from(b"7", min);
    assert_eq!([first(0.0), first(8.0), first(107.0), first(208.0)], [Some(7.0), Some(107.0), Some(107.0), None]);

    let rate = Rate { takes: 1, per_ms: 1000, burst: 1 };
    queues.set_limits(Scope::Group(b"7"), Limits { held: Setting::Is(5), ..Limits::default() });
    queues.set_limits(Scope::Group(b"8"), Limits { pause: Some(true), ..Limits::default() });
    queues.set_limits(Scope::Group(b"9"), Limits { rate: Setting::Is(rate), ..Limits::default() });
    assert_eq!(queues.blocked(), Blocked { by_cap: 1, by_rate: 0, by_pause: 1 });
    let taken = queues.reserve(b"9", 9, Take { holds: false, counts: true }, BEGAN);
    assert!(taken.is_some());
    assert_eq!(queues.blocked(), Blocked { by_cap: 1, by_rate: 1, by_pause: 1 });
    queues.pass_time(BEGAN + 1000 * MS);
    queues.set_limits(Scope::Group(b"8"), Limits::default());
    queues.change(1000, Some(Place { group: b"7", score: None, is_held: true }), None, nothing_of_its_own);
    assert_eq!(queues.blocked(), Blocked::default());
}
