//! The letters of `notify-keyspace-events`. Knows nothing of channels or subscribers.

/// Publish to `__keyspace@<db>__:<key>`.
pub const KEYSPACE: u32 = 1 << 0;
/// Publish to `__keyevent@<db>__:<event>`.
pub const KEYEVENT: u32 = 1 << 1;
/// DEL, EXPIRE, RENAME and other commands of no type.
pub const GENERIC: u32 = 1 << 2;
pub const STRING: u32 = 1 << 3;
pub const LIST: u32 = 1 << 4;
pub const SET: u32 = 1 << 5;
pub const HASH: u32 = 1 << 6;
pub const ZSET: u32 = 1 << 7;
/// A key reached its deadline.
pub const EXPIRED: u32 = 1 << 8;
/// A key was removed to free memory.
pub const EVICTED: u32 = 1 << 9;
pub const STREAM: u32 = 1 << 10;
/// A read found no key; not part of `ALL`.
pub const KEY_MISS: u32 = 1 << 11;
pub const MODULE: u32 = 1 << 13;
/// A key came into being; not part of `ALL`.
pub const NEW_KEY: u32 = 1 << 14;
/// What the letter `A` stands for.
pub const ALL: u32 = GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE;

/// Those of the events that are told: none without a channel to tell them on.
#[inline]
pub fn told(events: u32) -> u32 {
    if events & (KEYSPACE | KEYEVENT) == 0 { 0 } else { events }
}

/// The class of that letter; none for a letter that stands for no class.
pub fn of_letter(letter: char) -> u32 {
    CLASSES.iter().find(|(known, _)| *known == letter).map_or(0, |(_, class)| *class)
}

/// In the order Redis prints them, unless `A` replaces them.
const CLASSES: &[(char, u32)] = &[
    ('g', GENERIC),
    ('$', STRING),
    ('l', LIST),
    ('s', SET),
    ('h', HASH),
    ('z', ZSET),
    ('x', EXPIRED),
    ('e', EVICTED),
    ('t', STREAM),
    ('d', MODULE),
    ('n', NEW_KEY),
];

/// Printed after the classes, always.
const CHANNELS: &[(char, u32)] = &[('K', KEYSPACE), ('E', KEYEVENT), ('m', KEY_MISS)];

pub(super) fn parse(letters: &str) -> Result<u32, &'static str> {
    let mut events = 0;
    for letter in letters.chars() {
        events |= match letter {
            'A' => ALL,
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
pub(super) fn print(events: u32) -> String {
    let mut letters = String::new();
    if events & ALL == ALL {
        letters.push('A');
        push_set(events, CHANNELS, &mut letters);
    } else {
        push_set(events, CLASSES, &mut letters);
        push_set(events, CHANNELS, &mut letters);
    }
    letters
}

fn push_set(events: u32, known: &[(char, u32)], letters: &mut String) {
    let set = known.iter().filter(|(_, bit)| events & bit != 0);
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
        assert_eq!(parse("An").unwrap(), ALL | NEW_KEY);
    }

    #[test]
    fn nothing_is_told_without_a_channel() {
        let told_of = |letters| told(parse(letters).unwrap());
        assert_eq!(told_of("Am"), 0);
        assert_eq!(told_of("Kg"), KEYSPACE | GENERIC);
        assert_eq!(told_of("E$"), KEYEVENT | STRING);
    }

    #[test]
    fn unknown_letters_are_refused() {
        for input in ["KEy", "-1", "a", "K E"] {
            let wrong = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
            assert_eq!(parse(input), Err(wrong), "{input}");
        }
    }
}
