//! Sessions against a plain model: what holds for every history of a session.

use super::*;
use crate::encoding::{BadEffect, Reader};
use crate::types::{self, Shapes, Thresholds};
use std::collections::BTreeMap;

/// A session as the model has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    ttl_ms: u64,
    low: u64,
    answers: BTreeMap<u64, (RequestDigest, bool, Vec<u8>)>,
    last_id: u64,
    /// In the order in which they were sent: id, time, payload.
    pending: Vec<(u64, u64, Vec<u8>)>,
}

impl Plain {
    fn raise_low(&mut self, low: u64) {
        self.low = self.low.max(low);
        self.answers.retain(|id, _| *id >= self.low);
    }

    fn newest(&self) -> u64 {
        self.pending.last().map_or(0, |(_, sent_ms, _)| *sent_ms)
    }

    fn make(&mut self, change: Change<'_>) {
        match change {
            Change::Open { ttl_ms, .. } | Change::Ttl { ttl_ms } => self.ttl_ms = ttl_ms,
            Change::Answer { id, request, is_resp3, low, reply } => {
                self.raise_low(low);
                if id >= self.low {
                    self.answers.entry(id).or_insert((request, is_resp3, reply.to_vec()));
                }
            }
            Change::Low { low } => self.raise_low(low),
            Change::Push { id, at_ms, payload } => {
                self.pending.push((id, at_ms.max(self.newest()), payload.to_vec()));
                self.last_id = id;
            }
            Change::Acknowledge { upto } => self.pending.retain(|(id, ..)| *id > upto),
            Change::Sent { first, last, at_ms } => {
                let at_ms = at_ms.max(self.newest());
                let (mut sent, kept): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut self.pending).into_iter().partition(|(id, ..)| (first..=last).contains(id));
                sent.sort_unstable_by_key(|(id, ..)| *id);
                self.pending = kept;
                self.pending.extend(sent.into_iter().map(|(id, _, payload)| (id, at_ms, payload)));
            }
        }
    }
}

fn shown(entry: &Entry) -> Plain {
    let session = session(entry);
    let answers = session.answers.iter();
    let answers: BTreeMap<_, _> =
        answers.map(|answer| (answer.id, (answer.request, answer.is_resp3, answer.bytes().to_vec()))).collect();
    assert_eq!(answers.len(), session.answers());
    assert_eq!(answers.values().map(|(_, _, bytes)| bytes.len()).sum::<usize>(), session.answer_bytes());
    assert!(answers.keys().all(|id| session.answer(*id).is_some_and(|answer| answer.id == *id)));
    let by_age: Vec<_> = session.sent_before(u64::MAX).collect();
    let mut by_id = by_age.clone();
    by_id.sort_unstable_by_key(|request| request.id);
    assert_eq!(by_id, session.pending_after(0).collect::<Vec<_>>(), "each is there once, in order");
    assert!(by_age.windows(2).all(|pair| pair[0].sent_ms <= pair[1].sent_ms));
    assert_eq!(session.oldest_sent_ms(), by_age.first().map(|request| request.sent_ms));
    assert!(by_id.last().is_none_or(|request| request.id == session.last_id()), "no id is above the last");
    let pending = by_age.iter().map(|request| (request.id, request.sent_ms, request.payload.to_vec())).collect();
    Plain { ttl_ms: session.ttl_ms(), low: session.low(), answers, last_id: session.last_id(), pending }
}

fn image(entry: &Entry) -> Vec<u8> {
    let mut image = Vec::new();
    (TYPE.write_image)(entry, &Shapes::default(), &mut image);
    image
}

fn read_back(image: &[u8]) -> Result<Entry, BadEffect> {
    let mut reader = Reader::new(image);
    (TYPE.check_image)(&mut reader)?;
    match reader.is_empty() {
        true => Ok((TYPE.read_image)(b"session", Reader::new(image), &mut Shapes::default(), None)),
        false => Err(BadEffect::OutOfRange),
    }
}

fn opened() -> Entry {
    let open = Change::Open { created_ms: 5, ttl_ms: 90_000, capabilities: &[] };
    open.create(b"session").expect("it is made").0
}

fn make(entry: &mut Entry, change: Change<'_>) -> usize {
    let mut bytes = Vec::new();
    change.encode(&mut bytes);
    let mut reader = Reader::new(&bytes);
    assert_eq!(Change::decode(&mut reader), Ok(change), "what is written can be read");
    assert!(reader.is_empty());
    types::Change::from(change).apply(entry, &mut Shapes::default(), &Thresholds::default()).count
}

#[test]
fn every_history_agrees_with_the_model_and_survives_a_snapshot() {
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..300 {
        let mut entry = opened();
        let mut model = Plain { ttl_ms: 90_000, ..Plain::default() };
        let mut now_ms = 1_000u64;
        for _ in 0..random.usize(1..120) {
            now_ms = (now_ms + random.u64(..20)).saturating_sub(if random.u8(..) < 8 { 50 } else { 0 });
            let reply = vec![b'r'; [0, 4, 16, 17, 300][random.usize(..5)]];
            let id = model.low + random.u64(1..12);
            let request = RequestDigest { crc: random.u32(..), lengths: random.u32(..) };
            let change = match random.u8(..7) {
                0 | 1 => {
                    let low = random.u64(..=id);
                    Change::Answer { id, request, is_resp3: random.bool(), low, reply: &reply }
                }
                2 => Change::Low { low: random.u64(..=id) },
                3 | 4 => Change::Push { id: model.last_id + 1, at_ms: now_ms, payload: &reply },
                5 => Change::Acknowledge { upto: random.u64(..model.last_id + 3) },
                _ => {
                    let first = random.u64(1..model.last_id + 3);
                    Change::Sent { first, last: first + random.u64(..4), at_ms: now_ms }
                }
            };
            let before = model.pending.len();
            let low_before = model.low;
            model.make(change);
            let count = make(&mut entry, change);
            if matches!(change, Change::Acknowledge { .. }) {
                assert_eq!(count, before - model.pending.len());
            }
            assert_eq!(shown(&entry), model);
            assert!(model.low >= low_before, "the lowest id never goes back");
        }
        let image = image(&entry);
        let again = read_back(&image).expect("an image that was just written is one");
        assert_eq!(shown(&again), model);
        assert_eq!(self::image(&again), image);
        for cut in 0..image.len() {
            assert!(read_back(&image[..cut]).is_err(), "a part of it is none");
        }
    }
}

#[test]
fn an_acknowledgement_is_cumulative_and_says_nothing_of_what_is_to_come() {
    let mut entry = opened();
    let ids = |entry: &Entry| session(entry).pending_after(0).map(|request| request.id).collect::<Vec<_>>();
    for id in 1..=7 {
        make(&mut entry, Change::Push { id, at_ms: 10, payload: b"x" });
    }
    assert_eq!(make(&mut entry, Change::Acknowledge { upto: 5 }), 5);
    assert_eq!(ids(&entry), [6, 7]);
    assert_eq!(make(&mut entry, Change::Acknowledge { upto: 3 }), 0);
    assert_eq!(make(&mut entry, Change::Acknowledge { upto: 9 }), 2);
    make(&mut entry, Change::Push { id: 8, at_ms: 11, payload: b"y" });
    assert_eq!(ids(&entry), [8], "ids go on where they were");
    assert_eq!(session(&entry).last_id(), 8);
}

#[test]
fn the_first_answer_stays() {
    let mut entry = opened();
    let request = RequestDigest::of([b"get".as_slice(), b"x"].into_iter());
    for reply in [b"first".as_slice(), b"second"] {
        make(&mut entry, Change::Answer { id: 3, request, is_resp3: false, low: 1, reply });
    }
    let answer = session(&entry).answer(3).expect("it is kept");
    assert_eq!((answer.bytes(), answer.request), (b"first".as_slice(), request));
    make(&mut entry, Change::Low { low: 4 });
    assert!(session(&entry).answer(3).is_none());
    make(&mut entry, Change::Answer { id: 3, request, is_resp3: false, low: 0, reply: b"late" });
    assert!(session(&entry).answer(3).is_none(), "below the lowest id none is kept");
}

#[test]
fn requests_that_differ_have_different_digests() {
    let of = |args: &[&[u8]]| RequestDigest::of(args.iter().copied());
    let all = [
        of(&[b"set", b"a", b"1"]),
        of(&[b"set", b"a", b"2"]),
        of(&[b"set", b"a1", b""]),
        of(&[b"set", b"", b"a1"]),
        of(&[b"seta", b"1"]),
        of(&[b"set", b"1", b"a"]),
        of(&[b"set", b"a", b"1", b""]),
    ];
    for (at, digest) in all.iter().enumerate() {
        assert!(!all[..at].contains(digest), "{at}");
    }
}

#[test]
fn an_image_with_an_id_twice_or_out_of_its_range_is_refused() {
    let mut entry = opened();
    for id in 1..=3 {
        make(&mut entry, Change::Push { id, at_ms: 10, payload: b"x" });
    }
    let image = image(&entry);
    let place = |id: u8| image.len() - (3 - usize::from(id) + 1) * 4;
    assert_eq!(image[place(2)], 2, "the ids are where they are thought to be");
    for wrong in [1, 3, 0, 4] {
        let mut damaged = image.clone();
        damaged[place(2)] = wrong;
        assert!(read_back(&damaged).is_err(), "{wrong}");
    }
}

#[test]
fn a_session_lives_from_when_it_is_looked_at() {
    let mut entry = opened();
    assert!(!session(&entry).is_expired(u64::MAX), "it was not checked yet");
    assert_eq!(session(&entry).expires_ms(1_000), 91_000);
    let Some(Object::Session(opened)) = entry.object_mut() else { panic!("it holds a session") };
    opened.queue(1_000);
    assert_eq!((opened.queued_ms(), opened.is_expired(90_999), opened.is_expired(91_000)), (91_000, false, true));
    opened.renew(2_000);
    assert_eq!((opened.queued_ms(), opened.is_expired(91_000)), (91_000, false), "it is moved when it is looked at");
    opened.queue(91_000);
    assert_eq!(opened.queued_ms(), 92_000);
    let again = read_back(&image(&entry)).expect("it is whole");
    assert!(!session(&again).is_expired(u64::MAX), "after a start it has its full time again");
}

#[test]
fn objects_stay_small() {
    assert!(size_of::<Session>() <= 144, "{}", size_of::<Session>());
    assert!(size_of::<Answer>() <= 56, "{}", size_of::<Answer>());
}
