//! The letters of `notify-keyspace-events`. Knows nothing of channels or subscribers.

use bitflags::bitflags;

bitflags! {
    /// Classes of events, and the channels on which they are published.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Events: u32 {
        /// Publish to `__keyspace@<db>__:<key>`.
        const KEYSPACE = 1;
        /// Publish to `__keyevent@<db>__:<event>`.
        const KEYEVENT = 1 << 1;
        /// DEL, EXPIRE, RENAME and other commands of no type.
        const GENERIC = 1 << 2;
        const STRING = 1 << 3;
        const LIST = 1 << 4;
        const SET = 1 << 5;
        const HASH = 1 << 6;
        const ZSET = 1 << 7;
        /// A key reached its deadline.
        const EXPIRED = 1 << 8;
        /// A key was removed to free memory.
        const EVICTED = 1 << 9;
        const STREAM = 1 << 10;
        /// A read found no key; not part of `ALL`.
        const KEY_MISS = 1 << 11;
        const MODULE = 1 << 13;
        /// A key was created; not part of `ALL`.
        const NEW_KEY = 1 << 14;
        /// The classes of the letter `A`.
        const ALL = Self::GENERIC.bits()
            | Self::STRING.bits()
            | Self::LIST.bits()
            | Self::SET.bits()
            | Self::HASH.bits()
            | Self::ZSET.bits()
            | Self::EXPIRED.bits()
            | Self::EVICTED.bits()
            | Self::STREAM.bits()
            | Self::MODULE.bits();
    }
}

impl Events {
    /// The classes that are published: none unless K or E selects a channel.
    #[inline]
    pub fn published(self) -> Events {
        if self.intersects(Events::KEYSPACE.union(Events::KEYEVENT)) { self } else { Events::empty() }
    }

    /// The class of a letter; empty for other letters.
    pub fn of_letter(letter: char) -> Events {
        CLASSES.iter().find(|(known, _)| *known == letter).map_or(Events::empty(), |(_, class)| *class)
    }
}

/// In the order Redis prints them, unless `A` replaces them.
const CLASSES: &[(char, Events)] = &[
    ('g', Events::GENERIC),
    ('$', Events::STRING),
    ('l', Events::LIST),
    ('s', Events::SET),
    ('h', Events::HASH),
    ('z', Events::ZSET),
    ('x', Events::EXPIRED),
    ('e', Events::EVICTED),
    ('t', Events::STREAM),
    ('d', Events::MODULE),
    ('n', Events::NEW_KEY),
];

/// Printed after the classes, always.
const CHANNELS: &[(char, Events)] = &[('K', Events::KEYSPACE), ('E', Events::KEYEVENT), ('m', Events::KEY_MISS)];

pub(super) fn parse(letters: &str) -> Result<Events, &'static str> {
    let mut events = Events::empty();
    for letter in letters.chars() {
        events |= match letter {
            'A' => Events::ALL,
            _ => CLASSES
                .iter()
                .chain(CHANNELS)
                .find(|(known, _)| *known == letter)
                .map(|(_, bit)| *bit)
                .ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?,
        };
    }
    Ok(events)
}

/// As Redis prints them. With `A` set, Redis does not print `n`, although the event stays on.
pub(super) fn print(events: Events) -> String {
    let mut letters = String::new();
    if events.contains(Events::ALL) {
        letters.push('A');
        push_set(events, CHANNELS, &mut letters);
    } else {
        push_set(events, CLASSES, &mut letters);
        push_set(events, CHANNELS, &mut letters);
    }
    letters
}

fn push_set(events: Events, known: &[(char, Events)], letters: &mut String) {
    let set = known.iter().filter(|(_, bit)| events.intersects(*bit));
    letters.extend(set.map(|(letter, _)| letter));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_print_as_redis_prints_them() {
        let cases = [
            ("", ""),
            ("KEA", "AKE"),
            ("g$lshzxetd", "A"),
            ("KEg$lshzxetdmn", "AKEm"),
            ("KEAn", "AKE"),
            ("mn", "nm"),
            ("Kx", "xK"),
            ("Elg", "glE"),
            ("EKKK", "KE"),
            ("nm$E", "$nEm"),
            ("dt", "td"),
            ("$lshzxeKE", "$lshzxeKE"),
        ];
        for (input, printed) in cases {
            assert_eq!(print(parse(input).unwrap()), printed, "{input}");
        }
    }

    #[test]
    fn new_key_events_stay_on_beside_all() {
        assert_eq!(parse("An").unwrap(), Events::ALL | Events::NEW_KEY);
    }

    #[test]
    fn nothing_is_published_without_a_channel() {
        let published = |letters| parse(letters).unwrap().published();
        assert_eq!(published("Am"), Events::empty());
        assert_eq!(published("Kg"), Events::KEYSPACE | Events::GENERIC);
        assert_eq!(published("E$"), Events::KEYEVENT | Events::STRING);
    }

    #[test]
    fn unknown_letters_are_refused() {
        for input in ["KEy", "-1", "a", "K E"] {
            let wrong = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
            assert_eq!(parse(input), Err(wrong), "{input}");
        }
    }
}
