//! State in the process beside the server's: on random histories both give the same answers. And nodes, over both.

use std::sync::Arc;

use holdfast_client::{
    Applied, Error, MemoryState, NodeState, OrderedVersion, Output, Restored, StateBackend, StateVersion, StatefulNode,
    Store, redis,
};
use wire::Random;

use crate::places::on_holdfast;

type Backend<T> = Arc<dyn StateBackend<T>>;

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    Put(&'static [u8], Vec<u8>, StateVersion),
    PutOrdered(&'static [u8], Vec<u8>, OrderedVersion),
    Add(&'static [u8], StateVersion, i64),
    AddOrdered(&'static [u8], OrderedVersion, i64),
    Seal(&'static [u8], OrderedVersion),
    Snapshot,
    Restore(usize),
    Merge(usize),
    Checkpoint(Option<&'static [u8]>),
    RestoreCheckpoint,
    MergeCheckpoint,
}

const KEYS: [&[u8]; 4] = [b"a", b"b", b"\xff\0", b""];

fn step(random: &mut Random, has_pairs: bool) -> Step {
    let key = random.pick(&KEYS);
    let round = if random.one_in(40) { u64::MAX } else { random.below(8) as u64 };
    let version = if random.below(4) == 0 { (random.below(3) as u64, round).into() } else { round.into() };
    // A key takes one kind of ordered versions: mostly its own, and the other one now and then.
    let is_pair = has_pairs && ((key == b"b") != (random.below(8) == 0));
    let ordered = if is_pair { (random.below(2) as u64, round).into() } else { round.into() };
    let value = random.pick(&[&b"1"[..], b"2", b"text", b"", b"9223372036854775807"]).to_vec();
    let number = random.pick(&[1, 2, -5, i64::MAX]);
    match random.below(20) {
        0..4 => Step::Put(key, value, version),
        4..8 => Step::PutOrdered(key, value, ordered),
        8..10 => Step::Add(key, version, number),
        10..14 => Step::AddOrdered(key, ordered, number),
        14 => Step::Seal(key, ordered),
        15 => Step::Snapshot,
        16 => Step::Restore(random.below(8)),
        17 => Step::Merge(random.below(8)),
        18 => Step::Checkpoint(random.pick(&[None, Some(&b"7"[..])])),
        _ if random.below(2) == 0 => Step::RestoreCheckpoint,
        _ => Step::MergeCheckpoint,
    }
}

/// Makes a step, and shows its answer; a refusal is one, whatever its words are.
async fn make(state: &Backend<Vec<u8>>, snapshots: &mut Vec<Vec<u8>>, step: Step) -> String {
    fn shown<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
        match answer {
            Ok(answer) => format!("{answer:?}"),
            Err(Error::Refused(_)) => "refused".to_owned(),
            Err(error) => panic!("{error}"),
        }
    }
    match step {
        Step::Put(key, value, version) => shown(state.put(key, value, version).await),
        Step::PutOrdered(key, value, version) => shown(state.put_ordered(key, value, version).await),
        Step::Add(key, version, number) => shown(state.add(key, version, number).await),
        Step::AddOrdered(key, version, number) => shown(state.add_ordered(key, version, number).await),
        Step::Seal(key, version) => shown(state.seal(key, version).await),
        Step::Snapshot => {
            snapshots.push(state.snapshot(Some(b"here")).await.unwrap());
            String::new()
        }
        Step::Restore(at) if at < snapshots.len() => shown(state.restore(&snapshots[at]).await),
        Step::Merge(at) if at < snapshots.len() => shown(state.merge(&snapshots[at]).await),
        Step::Restore(_) | Step::Merge(_) => String::new(),
        Step::Checkpoint(position) => shown(state.checkpoint(b"check", position).await),
        Step::RestoreCheckpoint => shown(state.restore_checkpoint(b"check").await),
        Step::MergeCheckpoint => shown(state.merge_checkpoint(b"check").await),
    }
}

/// Whether the server takes pairs in order.
async fn has_pairs(store: &Store) -> bool {
    let state = store.exactly_once_state::<i64>("probe/");
    let is_known = state.add_ordered("k", (1, 1), 1).await.is_ok();
    if !is_known {
        wire::skip("the server takes no pairs of epoch and round in order");
    }
    is_known
}

#[test]
fn random_histories_have_the_same_answers_as_at_the_server() {
    let mut random = Random::from_env();
    let (histories, steps) = (15, 60);
    let seeds: Vec<u64> = (0..histories).map(|_| random.next_u64()).collect();
    on_holdfast(async |_, store| {
        let has_pairs = has_pairs(&store).await;
        for (number, seed) in seeds.iter().enumerate() {
            let mut random = Random::new(*seed);
            let at_server: Backend<Vec<u8>> = Arc::new(store.exactly_once_state(format!("s{number}/")));
            let in_process: Backend<Vec<u8>> = Arc::new(MemoryState::new());
            let (mut snapshots, mut own_snapshots) = (Vec::new(), Vec::new());
            let mut history = Vec::new();
            for _ in 0..steps {
                let step = step(&mut random, has_pairs);
                history.push(step.clone());
                let expected = make(&at_server, &mut snapshots, step.clone()).await;
                let answer = make(&in_process, &mut own_snapshots, step).await;
                assert_eq!(answer, expected, "seed {seed}, after {history:#?}");
                let (held, expected) = (in_process.mget(&KEYS).await.unwrap(), at_server.mget(&KEYS).await.unwrap());
                assert_eq!(held, expected, "seed {seed}, after {history:#?}");
            }
            let mut connection = store.connection().unwrap();
            let _: () = redis::cmd("DEL").arg("check").query_async(&mut connection).await.unwrap();
        }
    });
}

async fn check_pairs(state: Backend<i64>) {
    assert_eq!(state.add_ordered(b"n", (7, 2).into(), 5).await.unwrap(), Applied::Buffered);
    assert_eq!(state.add_ordered(b"n", (0, 1).into(), 1).await.unwrap(), Applied::Buffered, "also in epoch 0");
    assert_eq!(state.add_ordered(b"n", (7, 2).into(), 6).await.unwrap(), Applied::Mismatch);
    assert_eq!(state.get(b"n").await.unwrap(), None);
    assert!(state.add_ordered(b"n", 1.into(), 1).await.is_err(), "the key takes pairs");
    assert_eq!(state.seal(b"n", (7, 2).into()).await.unwrap(), 1, "what is below");
    assert_eq!(state.get(b"n").await.unwrap(), Some((1, 1.into())));
    assert_eq!(state.add_ordered(b"n", (7, 1).into(), 9).await.unwrap(), Applied::Stale, "it was sealed");
    assert_eq!(state.seal(b"n", (8, 0).into()).await.unwrap(), 1);
    assert_eq!(state.get(b"n").await.unwrap(), Some((6, (7, 2).into())));
}

#[test]
fn pairs_are_buffered_until_they_are_sealed() {
    tokio::runtime::Runtime::new().unwrap().block_on(check_pairs(Arc::new(MemoryState::new())));
    on_holdfast(async |_, store| {
        if has_pairs(&store).await {
            check_pairs(Arc::new(store.exactly_once_state("pairs/"))).await;
        }
    });
}

#[test]
fn a_snapshot_in_the_process_is_checked() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let state: MemoryState<String> = MemoryState::new();
        state.put(b"k", "v".into(), 3.into()).await.unwrap();
        state.put_ordered(b"n", "w".into(), 4.into()).await.unwrap();
        let snapshot = state.snapshot(Some(b"7")).await.unwrap();
        for cut in 0..snapshot.len() {
            assert!(state.restore(&snapshot[..cut]).await.is_err(), "cut at {cut}");
        }
        for at in 0..snapshot.len() {
            let mut damaged = snapshot.clone();
            damaged[at] ^= 1;
            assert!(state.restore(&damaged).await.is_err(), "damaged at {at}");
        }
        let other: MemoryState<String> = state.sibling();
        assert_eq!(other.restore_checkpoint(b"check").await.unwrap(), None);
        assert_eq!(other.restore(&snapshot).await.unwrap(), Some(b"7".to_vec()));
        assert_eq!(other.snapshot(Some(b"7")).await.unwrap(), snapshot);
        assert_eq!(state.checkpoint(b"check", None).await.unwrap(), 2);
        assert_eq!(other.merge_checkpoint(b"check").await.unwrap(), Some(Restored { position: None }));
        assert_eq!(other.get(b"k").await.unwrap(), Some(("v".into(), 3.into())));
    });
}

type Node = StatefulNode<u64, String>;

/// Adds up, and tells the sum.
fn add(amount: u64) -> impl FnOnce(Option<u64>) -> (u64, Vec<String>) {
    move |sum| {
        let sum = sum.unwrap_or(0) + amount;
        (sum, vec![format!("sum {sum}"), format!("added {amount}")])
    }
}

fn not_called(_: Option<u64>) -> (u64, Vec<String>) {
    panic!("this input was applied before")
}

async fn check_node(state: Backend<NodeState<u64, String>>) {
    let node = Node::new("sums", state);
    assert_eq!(node.recover().await.unwrap(), None);
    let first = node.process("user", 1, add(5)).await.unwrap().unwrap();
    // printf 'sums|user|1|0' | sha256sum
    let id = "bdd4535e668748f98df92fea1c6361883ed2b1a3b29c8da7aa80c285f7bc23b9".to_owned();
    assert_eq!((first.len(), &first[0]), (2, &Output { id, value: "sum 5".to_owned() }));
    assert_eq!(node.process("user", 1, not_called).await.unwrap().unwrap(), first, "the same outputs and ids");
    let second = node.process("user", 2, add(7)).await.unwrap().unwrap();
    assert_eq!(second[0].value, "sum 12");
    assert_ne!(second[0].id, first[0].id);
    assert_eq!(node.process("user", 1, not_called).await.unwrap(), None, "an older input");
    node.checkpoint("2").await.unwrap();
    node.process("user", 3, add(1)).await.unwrap();
    node.process("other", 3, add(1)).await.unwrap();
    // A crash. The input comes again from position 2 on.
    assert_eq!(node.recover().await.unwrap(), Some(b"2".to_vec()));
    let third = node.process("user", 3, add(1)).await.unwrap().unwrap();
    assert_eq!(third[0].value, "sum 13");
    assert_eq!(node.process("user", (1, 0), add(1)).await.unwrap().unwrap()[0].value, "sum 14");
    assert_eq!(node.process("other", 3, add(1)).await.unwrap().unwrap()[0].value, "sum 1");
}

#[test]
fn a_node_applies_each_input_once_and_repeats_its_last_outputs() {
    tokio::runtime::Runtime::new().unwrap().block_on(check_node(Arc::new(MemoryState::new())));
    on_holdfast(async |_, store| check_node(Arc::new(store.exactly_once_state("sums/"))).await);
}
