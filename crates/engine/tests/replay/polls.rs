//! Consumers that ask for entries again and again and get none: the journal does not grow with each poll, XINFO CONSUMERS
//! has the time of the last one, and a replay has a time that is not much older.

use crate::common::place::{Asker, Place};
use crate::common::state::State;
use engine::Persistence;
use keyspace::types::stream::SEEN_LAG_MAX_MS;

/// Each finds nothing for its consumer.
const POLLS: &[&str] = &[
    "XREADGROUP GROUP g c STREAMS s >",
    "XREADGROUP GROUP g c STREAMS s 0",
    "XREADGROUP GROUP g c CLAIM 1 STREAMS s >",
    "XAUTOCLAIM s g c 0 0",
    "XCLAIM s g c 0 1-1",
];

/// For how long the consumer has not asked, by XINFO CONSUMERS.
fn idle_ms(asker: &mut Asker<'_>) -> u64 {
    let reply = String::from_utf8(asker.say("XINFO CONSUMERS s g")).expect("a reply of text");
    let behind = reply.split("idle\r\n:").nth(1).expect("a consumer");
    behind.split('\r').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_poll_that_finds_nothing_is_seldom_journalled() {
    for poll in POLLS {
        let live = Place::new(2, 1, &[]);
        let mut asker = live.asker(0);
        asker.say("XGROUP CREATE s g $ MKSTREAM");
        asker.say(poll);
        let begun = live.kept.tail();
        for _ in 1..SEEN_LAG_MAX_MS / 10 {
            live.pass_ms(10);
            asker.say(poll);
            assert_eq!(idle_ms(&mut asker), 0, "{poll}");
        }
        assert_eq!(live.kept.tail(), begun, "{poll}");
        let restored = Place::new(4, 1, &[]);
        let mut replay = restored.replay(None);
        live.kept
            .batches()
            .iter()
            .for_each(|(sequence, batch)| replay.batch(*sequence, batch).expect("it was recorded"));
        drop(replay);
        State::of(&restored.engine).assert_is(&State::of(&live.engine), poll);
        restored.set_time_of(&live);
        assert_eq!(idle_ms(&mut restored.asker(0)), SEEN_LAG_MAX_MS - 10, "{poll}: as it was journalled");
        live.pass_ms(10);
        asker.say(poll);
        assert_eq!((live.kept.tail(), idle_ms(&mut asker)), (begun + 1, 0), "{poll}: after that time it is journalled");
        // A consumer that is made is journalled at once.
        live.pass_ms(1_000);
        asker.say(poll);
        assert_eq!(live.kept.tail(), begun + 1, "{poll}");
        asker.say(&poll.replace(" c ", " d "));
        assert!(live.kept.tail() > begun + 1, "{poll}: of another consumer");
    }
}
