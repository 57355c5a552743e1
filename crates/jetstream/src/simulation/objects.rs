//! The object store of a simulation. A call waits for its answer, and others go on meanwhile. Decides nothing.

use super::network::happens;
use super::stream::SimulatedStream;
use crate::objects::Objects;
use crate::stream::Stream;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, mpsc};

/// How often a call waits before it fails, while the store cannot be reached.
const WAITS_MAX: usize = 100;

/// The object store, as one process reaches it.
pub struct SimulatedObjects {
    pub(super) stream: Arc<SimulatedStream>,
}

impl SimulatedObjects {
    /// For the process that reaches the stream by this.
    pub fn of(stream: &Arc<SimulatedStream>) -> Arc<SimulatedObjects> {
        Arc::new(SimulatedObjects { stream: stream.clone() })
    }

    fn call<T>(&self, execute: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> io::Result<T>) -> io::Result<T> {
        let (world, process) = (&self.stream.world, self.stream.process);
        let failed = || io::Error::new(io::ErrorKind::TimedOut, "the object store does not answer");
        // What is undone while a process ends is not done.
        if std::thread::panicking() || !world.inner.lock().is_alive(process) {
            return Err(failed());
        }
        let mut waits = 0;
        loop {
            let is_cut = {
                let inner = world.inner.lock();
                inner.machines[process.machine].without_objects_until_ns > inner.now_ns
            };
            if !is_cut {
                break;
            }
            if waits == WAITS_MAX {
                return Err(failed());
            }
            waits += 1;
            self.stream.pause();
        }
        let mut inner = world.inner.lock();
        let refused = inner.network.faults.refused;
        let (is_refused, is_done) = (happens(&mut inner.rng, refused), inner.rng.bool());
        if is_refused && !is_done {
            return Err(failed());
        }
        let result = execute(&mut inner.objects);
        let takes_time = inner.rng.u8(..4) == 0;
        drop(inner);
        if takes_time {
            self.stream.pause();
        }
        if is_refused { Err(failed()) } else { result }
    }
}

impl Objects for SimulatedObjects {
    fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        self.call(|objects| {
            objects.insert(name.to_owned(), bytes);
            Ok(())
        })
    }

    fn begin_get(&self, name: &str) -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (send, result) = mpsc::channel();
        let found = self.call(|objects| objects.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()));
        send.send(found).expect("its receiver is here");
        result
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(|objects| {
            objects.remove(name);
            Ok(())
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.call(|objects| Ok(objects.keys().cloned().collect()))
    }
}
