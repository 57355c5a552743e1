//! A stream, an object store, clocks and the network between them and several processes, all in memory, on one thread and
//! by seed. The network loses, delays, repeats and reorders requests and answers; processes are cut off, stopped and
//! killed; the stream is without a leader for a while. Knows what NATS may do; refuses to know what a frame is for.
//!
//! [`World::advance`] lets time pass. A process that waits ([`Stream::pause`]) calls what [`World::on_pause`] was given, so
//! that others go on meanwhile.

mod network;
mod objects;
mod stream;
mod world;

pub use crate::mutation::{Mutation, break_rule, is_broken};
pub use network::{Crash, Faults};
pub use objects::SimulatedObjects;
pub use stream::SimulatedStream;
pub use world::{StoredEpoch, World};
