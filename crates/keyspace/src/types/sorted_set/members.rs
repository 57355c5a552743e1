//! The members of a large sorted set, each in a numbered slot. Knows names and scores; refuses to know how they are
//! found.
//!
//! A slot is half a cache line: a score, and a name that is inline unless it is long. Slots are in chunks, so that a
//! growing set moves none of them; the slot of a removed member is reused.

/// Slots of a chunk: a page of memory.
const CHUNK: usize = 128;

/// Members by slot.
#[derive(Default)]
pub(super) struct MemberSlots {
    chunks: Vec<Vec<Slot>>,
    /// Free slots, in the order in which they became free; those after the end are ignored.
    free: Vec<u32>,
    /// How many slots before the end are free.
    free_count: usize,
}

struct Slot {
    score: f64,
    name: Name,
}

/// The longest name that is inline in its slot.
const SHORT_MAX: usize = 22;

enum Name {
    Short(u8, [u8; SHORT_MAX]),
    Long(Box<[u8]>),
    /// A free slot.
    Free,
}

impl Name {
    fn new(name: &[u8]) -> Name {
        if name.len() > SHORT_MAX {
            return Name::Long(name.into());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..name.len()].copy_from_slice(name);
        Name::Short(name.len() as u8, bytes)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Name::Short(len, bytes) => &bytes[..usize::from(*len)],
            Name::Long(bytes) => bytes,
            Name::Free => &[],
        }
    }
}

impl MemberSlots {
    /// The name of the member in a slot.
    #[inline]
    pub(super) fn name(&self, slot: u32) -> &[u8] {
        self.slot(slot).name.bytes()
    }

    /// Its score.
    #[inline]
    pub(super) fn score(&self, slot: u32) -> f64 {
        self.slot(slot).score
    }

    pub(super) fn set_score(&mut self, slot: u32, score: f64) {
        self.slot_mut(slot).score = score;
    }

    /// Puts a member into a slot.
    pub(super) fn insert(&mut self, score: f64, name: &[u8]) -> u32 {
        let slot = Slot { score, name: Name::new(name) };
        if let Some(at) = self.take_free() {
            *self.slot_mut(at) = slot;
            return at;
        }
        let at = u32::try_from(self.end()).expect("fewer than 2^32 members");
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(slot),
            last => {
                // The first chunk grows as needed; a set that needs a second one will probably fill it.
                let room = if last.is_some() { CHUNK } else { 0 };
                let mut chunk = Vec::with_capacity(room);
                chunk.push(slot);
                self.chunks.push(chunk);
            }
        }
        at
    }

    /// Removes the member of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        self.slot_mut(slot).name = Name::Free;
        self.free.push(slot);
        self.free_count += 1;
    }

    /// True when so many slots are free that they should be compacted.
    pub(super) fn is_sparse(&self) -> bool {
        self.free_count > CHUNK && self.free_count > self.end() / 2
    }

    /// Moves the last member into a free slot before it, and returns the old and the new slot. `None` when there is no
    /// such slot.
    pub(super) fn move_last(&mut self) -> Option<(u32, u32)> {
        self.drop_free_tail();
        let to = self.take_free()?;
        let last = self.chunks.last_mut().and_then(Vec::pop).expect("a free slot is before the end");
        let from = self.end() as u32;
        *self.slot_mut(to) = last;
        self.drop_free_tail();
        Some((from, to))
    }

    /// Heap bytes of all slots and long names, estimated from every `step`th slot.
    pub(super) fn heap_bytes(&self, step: usize, size_class: impl Fn(usize) -> usize) -> usize {
        let slots: usize = self.chunks.iter().map(|chunk| size_class(chunk.capacity() * size_of::<Slot>())).sum();
        let step = step.max(1);
        let sampled = (0..self.end()).step_by(step).map(|at| match &self.slot(at as u32).name {
            Name::Long(bytes) => size_class(bytes.len()),
            _ => 0,
        });
        let names = sampled.sum::<usize>() * step;
        slots + names + self.chunks.capacity() * size_of::<Vec<Slot>>() + self.free.capacity() * size_of::<u32>()
    }

    /// The number after the last slot.
    fn end(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    fn take_free(&mut self) -> Option<u32> {
        if self.free_count == 0 {
            // All slots left in the list are after the end, where new slots may be added.
            self.free = Vec::new();
            return None;
        }
        self.free_count -= 1;
        loop {
            let slot = self.free.pop().expect("as many free slots are listed as are counted");
            if (slot as usize) < self.end() {
                return Some(slot);
            }
        }
    }

    /// Drops free slots at the end.
    fn drop_free_tail(&mut self) {
        while let Some(chunk) = self.chunks.last_mut() {
            match chunk.last() {
                Some(Slot { name: Name::Free, .. }) => {
                    chunk.pop();
                    self.free_count -= 1;
                }
                Some(_) => return,
                None => drop(self.chunks.pop()),
            }
        }
    }

    #[inline]
    fn slot(&self, slot: u32) -> &Slot {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_half_a_cache_line() {
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn members_stay_in_their_slots_until_they_are_moved() {
        let seed = 17;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut slots, mut model) = (MemberSlots::default(), Vec::<(u32, Vec<u8>)>::new());
        for round in 0..40_000 {
            // It grows, shrinks to next to nothing, and grows again.
            let grows = (round / 5_000) % 2 == 0;
            if model.is_empty() || random.u8(..10) < if grows { 7 } else { 2 } {
                let name = vec![b'n'; random.usize(..40)];
                let slot = slots.insert(f64::from(round), &name);
                assert!(model.iter().all(|(other, _)| *other != slot), "seed {seed}: slot {slot} is taken");
                model.push((slot, name));
            } else {
                let (slot, _) = model.swap_remove(random.usize(..model.len()));
                slots.remove(slot);
                while slots.is_sparse() {
                    let Some((from, to)) = slots.move_last() else { break };
                    let moved = model.iter_mut().find(|(slot, _)| *slot == from).expect("what moves is a member");
                    moved.0 = to;
                }
            }
            if round % 500 == 0 {
                assert!(model.iter().all(|(slot, name)| slots.name(*slot) == name), "seed {seed}");
                assert_eq!(slots.end() - slots.free_count, model.len(), "seed {seed}");
                assert!(slots.end() <= 2 * model.len() + 3 * CHUNK, "seed {seed}: {} slots", slots.end());
            }
        }
    }
}
