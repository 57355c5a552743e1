//! Both forms have the same registers, whatever is done to them, and no bytes make them panic.

use super::*;
use fastrand::Rng;

fn random_draft(random: &mut Rng, elements: usize, sparse_bytes_max: usize) -> Draft<'static> {
    let mut draft = Draft::new(sparse_bytes_max);
    for _ in 0..elements {
        draft.observe(Observation::of(&random.u64(..).to_le_bytes())).unwrap();
    }
    draft
}

fn registers_of(draft: &Draft<'_>) -> [u8; REGISTERS] {
    HyperLogLog::of(draft.bytes()).unwrap().registers().unwrap().values
}

#[test]
fn sparse_and_dense_have_the_same_registers() {
    let mut random = Rng::with_seed(16);
    for elements in [0, 1, 2, 10, 100, 500, 1_000, 5_000, 30_000] {
        let (mut sparse, mut dense) = (Draft::new(1 << 20), Draft::new(1 << 20));
        assert!(dense.make_dense().unwrap());
        let mut plain = [0; REGISTERS];
        for _ in 0..elements {
            let observed = Observation::of(&random.u64(..).to_le_bytes());
            let is_new = observed.value > plain[observed.register];
            plain[observed.register] = plain[observed.register].max(observed.value);
            assert_eq!(sparse.observe(observed), Ok(is_new));
            assert_eq!(dense.observe(observed), Ok(is_new));
        }
        assert_eq!(registers_of(&sparse), plain);
        assert_eq!(registers_of(&dense), plain);
        let count = |draft: &Draft<'_>| HyperLogLog::of(draft.bytes()).unwrap().count().unwrap();
        assert_eq!(count(&sparse), count(&dense));
        assert_eq!(count(&dense), Registers { values: plain }.count());
        let error = (count(&dense) as f64 - f64::from(elements)).abs();
        assert!(error <= (f64::from(elements) * 0.05).max(1.0), "{elements} are counted as {}", count(&dense));
        sparse.make_dense().unwrap();
        assert_eq!(sparse.bytes()[HEADER_BYTES..], dense.bytes()[HEADER_BYTES..]);
    }
}

#[test]
fn merging_takes_the_greater_of_each() {
    let mut random = Rng::with_seed(17);
    for _ in 0..30 {
        let sizes = [random.usize(..2_000), random.usize(..2_000)];
        let drafts = sizes.map(|size| random_draft(&mut random, size, 3_000));
        let mut merged = Registers::default();
        for draft in &drafts {
            HyperLogLog::of(draft.bytes()).unwrap().merge_into(&mut merged).unwrap();
        }
        let [a, b] = [registers_of(&drafts[0]), registers_of(&drafts[1])];
        assert!((0..REGISTERS).all(|at| merged.values[at] == a[at].max(b[at])));
    }
}

#[test]
fn it_becomes_dense_when_it_is_too_long() {
    let mut random = Rng::with_seed(18);
    let mut draft = Draft::new(100);
    let mut bytes_before = 0;
    while !HyperLogLog::of(draft.bytes()).unwrap().is_dense() {
        bytes_before = draft.bytes().len();
        draft.observe(Observation::of(&random.u64(..).to_le_bytes())).unwrap();
    }
    assert!((95..=100).contains(&bytes_before), "{bytes_before}");
    assert_eq!(draft.bytes().len(), DENSE_BYTES);
    let mut large = Draft::new(3_000);
    assert_eq!(large.observe(Observation { register: 7, value: 33 }), Ok(true));
    assert_eq!(large.bytes().len(), DENSE_BYTES, "a run cannot say 33");
}

#[test]
fn no_bytes_make_it_panic() {
    let mut random = Rng::with_seed(19);
    for _ in 0..20_000 {
        let mut draft = random_draft(&mut random, 20, 3_000).bytes().to_vec();
        for _ in 0..random.usize(1..6) {
            match random.u8(..4) {
                0 => draft.truncate(random.usize(..=draft.len())),
                1 => draft.push(random.u8(..)),
                _ if draft.is_empty() => {}
                _ => {
                    let at = random.usize(..draft.len());
                    draft[at] = random.u8(..);
                }
            }
        }
        let Some(damaged) = HyperLogLog::of(&draft) else { continue };
        let _ = (damaged.count(), damaged.registers().is_ok(), damaged.decoded(), damaged.cached_count());
        let mut changed = Draft::of(damaged, 200);
        for _ in 0..10 {
            let _ = changed.observe(Observation { register: random.usize(..REGISTERS), value: random.u8(1..=51) });
        }
        let _ = changed.make_dense();
        // What a change leaves is as whole as what it began with.
        if damaged.registers().is_ok() {
            assert!(HyperLogLog::of(changed.bytes()).unwrap().registers().is_ok());
        }
    }
}

#[test]
fn packed_registers_are_unpacked_again() {
    let mut random = Rng::with_seed(20);
    for _ in 0..1_000 {
        let four: [u8; 4] = std::array::from_fn(|_| random.u8(..64));
        assert_eq!(unpack(pack(four)), four);
    }
}
