//! Batches and parts that are not as they were written: an error or effects, never a panic, and whatever was applied
//! leaves a keyspace that commands can work with.

use crate::common::place::{Place, Taken};
use crate::common::requests::Source;
use crate::common::seed;
use crate::common::state::{State, is_tame};
use engine::execution::walk::Placement;
use fastrand::Rng;
use keyspace::effects::codec::Decoder;

/// Thresholds at which both forms of everything are met.
const SMALL: &[(&str, &str)] = &[("hash-max-listpack-entries", "8"), ("zset-max-listpack-entries", "8")];

#[test]
fn damaged_bytes_are_refused_or_are_other_effects() {
    let mut random = Rng::with_seed(seed());
    let (placement, samples) = samples(&mut random);
    let (mut refused, mut read) = (0, 0);
    let mut count = |bytes: &[u8]| match effects_in(bytes) {
        Some(_) => read += 1,
        None => refused += 1,
    };
    for sample in &samples {
        // Every length of what is short, and of the beginning of what is long.
        (0..sample.len().min(300)).for_each(|len| count(&sample[..len]));
        (0..30).for_each(|_| count(&damaged(sample, &mut random)));
    }
    println!("{refused} refused, {read} read");
    assert!(refused > 1_000 && read > 1_000);
    let mut restored = Place::new(2, 1, SMALL);
    for round in 0..2_000 {
        if round % 500 == 0 {
            look_at(&restored);
            restored = Place::new(2, 1, SMALL);
        }
        let bytes = damaged(&samples[random.usize(..samples.len())], &mut random);
        if !are_tame(&bytes) {
            continue;
        }
        let mut replay = restored.replay(random.bool().then_some(placement));
        let (shard, end, sequence) = (random.u32(..6), random.u32(..), random.u64(..4));
        if random.bool() {
            let _ = replay.part(execution::walk::SnapshotPart { shard, end, sequence, keys: 1 }, &bytes);
        }
        let _ = replay.batch(sequence, &bytes);
    }
}

/// Asks for whatever there is, in every way that there is.
fn look_at(place: &Place) {
    let mut asker = place.asker(0);
    for (db, name) in State::of(&place.engine).0.into_keys() {
        asker.say(&format!("select {db}"));
        const LOOKS: [&str; 9] = [
            "dump",
            "hgetall",
            "hrandfield",
            "get",
            "object encoding",
            "memory usage",
            "debug object",
            "ttl",
            "zpopmin",
        ];
        for command in LOOKS {
            let mut request: Vec<Vec<u8>> = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            request.push(name.clone());
            asker.ask(&request);
        }
        for change in
            ["hset # f1 v", "hdel # f1 f2", "zadd # 1 f1 2 f2", "zrem # f1 f3", "zrange # 0 -1 rev", "append # x"]
        {
            let word = |word: &str| if word == "#" { name.clone() } else { word.as_bytes().to_vec() };
            asker.ask(&change.split(' ').map(word).collect::<Vec<_>>());
        }
    }
    asker.expire();
    asker.say("debug reload");
    asker.say("debug digest");
}

/// How many effects there are; `None` when not all bytes are effects.
fn effects_in(bytes: &[u8]) -> Option<usize> {
    let mut effects = Decoder::new(bytes);
    let mut count = 0;
    while effects.next().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}

/// True when all of the effects can be replayed here.
fn are_tame(bytes: &[u8]) -> bool {
    let mut effects = Decoder::new(bytes);
    while let Ok(Some((_, effect))) = effects.next() {
        if !is_tame(&effect, 1 << 22) {
            return false;
        }
    }
    true
}

/// Batches and parts of a random life.
fn samples(random: &mut Rng) -> (Placement, Vec<Vec<u8>>) {
    let live = Place::new(2, 1, SMALL);
    let (mut asker, mut source) = (live.asker(0), Source::new(random.u64(..)));
    for _ in 0..1_000 {
        source.now_ms = live.now_ms();
        let request = source.request();
        let reply = asker.ask(&request);
        source.hear(&request, &reply);
        live.pass_ms(source.random.u64(..100));
    }
    let mut walk = engine::walk(&live.engine);
    let mut taken = Taken::of(&walk, 0);
    while taken.step(&mut walk) {}
    let batches = live.kept.batches().into_iter().map(|(_, batch)| batch);
    let samples = batches.chain(taken.parts.into_iter().map(|(_, keys)| keys)).filter(|sample| !sample.is_empty());
    (taken.placement, samples.collect())
}

fn damaged(sample: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..random.usize(1..4) {
        // What counts lies at the front.
        let near = bytes.len().min(if random.bool() { 24 } else { usize::MAX });
        let at = random.usize(..near.max(1));
        match random.u8(..5) {
            _ if at >= bytes.len() => bytes.push(random.u8(..)),
            0 => bytes[at] = random.u8(..),
            1 => bytes[at] ^= 1 << random.u8(..8),
            2 => bytes.insert(at, random.u8(..20)),
            3 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    bytes
}
