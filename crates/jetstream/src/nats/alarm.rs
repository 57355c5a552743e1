//! A timer for waits of less than a millisecond, which the runtime's cannot keep. Knows one wait at a time.

use crate::stream::Tick;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A thread that sleeps until it is set.
#[derive(Default)]
pub(super) struct Alarm {
    set: Mutex<Option<(Instant, Weak<dyn Tick>)>>,
    changed: Condvar,
}

impl Alarm {
    pub(super) fn start() -> Arc<Alarm> {
        let alarm = Arc::new(Alarm::default());
        let weak = Arc::downgrade(&alarm);
        let thread = std::thread::Builder::new().name("log-alarm".into());
        // Without it, waits last until the next tick of the stream.
        let _ = thread.spawn(move || {
            while let Some(alarm) = weak.upgrade() {
                alarm.serve();
            }
        });
        alarm
    }

    /// Replaces the wait before, if there is one.
    pub(super) fn set(&self, after: Duration, ticking: Weak<dyn Tick>) {
        *self.set.lock() = Some((Instant::now() + after, ticking));
        self.changed.notify_one();
    }

    /// Waits until it is time, or for a while.
    fn serve(&self) {
        let mut set = self.set.lock();
        match &*set {
            None => {
                let _ = self.changed.wait_for(&mut set, Duration::from_secs(1));
            }
            Some((at, _)) if *at > Instant::now() => {
                let at = *at;
                let _ = self.changed.wait_until(&mut set, at);
            }
            Some(_) => {
                let ticking = set.take().and_then(|(_, ticking)| ticking.upgrade());
                drop(set);
                if let Some(ticking) = ticking {
                    ticking.tick();
                }
            }
        }
    }
}
