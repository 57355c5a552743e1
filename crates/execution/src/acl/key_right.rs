//! What may be done with a key. Knows nothing of which keys.

use crate::command::KeyFlags;
use bitflags::bitflags;

bitflags! {
    /// What may be done with a key.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyRight: u8 {
        const READ = 1;
        const WRITE = 2;
    }
}

impl KeyRight {
    /// What a command needs that does this with a key. A command that needs neither needs only a right at all.
    pub fn of(flags: KeyFlags) -> KeyRight {
        let mut right = KeyRight::empty();
        if flags.intersects(KeyFlags::ACCESS) {
            right |= KeyRight::READ;
        }
        if flags.intersects(KeyFlags::INSERT.union(KeyFlags::DELETE).union(KeyFlags::UPDATE)) {
            right |= KeyRight::WRITE;
        }
        right
    }
}
