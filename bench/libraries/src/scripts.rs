//! The scripts that bindings of Lua run, what the server answers them, and how one program passes its figures to another.
//! Knows no binding.

use crate::{Cost, Meter};

pub const METER: Meter = Meter { operations: 2_000, batches: 10 };

pub struct Script {
    pub name: &'static str,
    pub text: &'static str,
}

pub const SCRIPTS: &[Script] = &[
    Script { name: "return 1", text: "return 1" },
    Script { name: "one call", text: "return redis.call('HGET', KEYS[1], ARGV[1])" },
    Script {
        name: "compare and swap, three calls",
        text: "
local current = redis.call('HGET', KEYS[1], ARGV[1])
if current == ARGV[2] then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
    redis.call('HSET', KEYS[1], 'updated_at', ARGV[4])
    return 1
end
return 0
",
    },
    Script { name: "100 calls", text: "for i = 1, 100 do redis.call('HGET', KEYS[1], ARGV[1]) end" },
    Script { name: "a call that returns 100 strings", text: "return #redis.call('LRANGE', KEYS[1], 0, -1)" },
    Script { name: "returns a table of 100 numbers", text: "local t = {} for i = 1, 100 do t[i] = i end return t" },
    Script { name: "ten errors that are caught", text: "for i = 1, 10 do pcall(error, 'x') end" },
];

/// The server: appends the reply of a command, in RESP2. It does next to nothing, so the time is the binding's.
pub fn answer(command: &[u8], reply: &mut Vec<u8>) {
    match command {
        b"HGET" => reply.extend_from_slice(b"$7\r\npending\r\n"),
        b"LRANGE" => {
            reply.extend_from_slice(b"*100\r\n");
            for _ in 0..100 {
                reply.extend_from_slice(b"$7\r\npending\r\n");
            }
        }
        _ => reply.extend_from_slice(b":0\r\n"),
    }
}

/// KEYS of the request of this number: keys differ from one to the next, as they do in practice.
pub fn key(request: u32) -> [u8; 20] {
    let mut key = *b"job:state:tasks:0000";
    for (at, digit) in key[16..].iter_mut().enumerate() {
        *digit = b'0' + (request / 10u32.pow(at as u32) % 10) as u8;
    }
    key
}

pub const ARGUMENTS: [&[u8]; 4] = [b"state", b"pending", b"running", b"1763172000123"];

/// What a binding did with a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub cost: Cost,
    /// The reply to the client.
    pub reply: Vec<u8>,
}

/// Figures of all scripts, in their order, as lines.
pub fn to_lines(all: &[Figures]) -> String {
    let line = |figures: &Figures| {
        let Cost { ns, allocations } = figures.cost;
        format!("{ns} {allocations} {}\n", figures.reply.escape_ascii())
    };
    all.iter().map(line).collect()
}

/// The time, allocations and escaped reply of each line of [`to_lines`]; `None` if it is something else.
pub fn from_lines(text: &str) -> Option<Vec<(Cost, &str)>> {
    let read = |line: &'_ str| {
        let (ns, rest) = line.split_once(' ')?;
        let (allocations, _) = rest.split_once(' ')?;
        Some(Cost { ns: ns.parse().ok()?, allocations: allocations.parse().ok()? })
    };
    let all: Vec<_> =
        text.lines().map(|line| Some((read(line)?, line.splitn(3, ' ').last()?))).collect::<Option<_>>()?;
    (all.len() == SCRIPTS.len()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_pass_through_lines() {
        let figures = Figures { cost: Cost { ns: 12.5, allocations: 3.0 }, reply: b"$2\r\na \r\n".to_vec() };
        let all = vec![figures; SCRIPTS.len()];
        let lines = to_lines(&all);
        let read = from_lines(&lines).unwrap();
        assert_eq!(read[0], (all[0].cost, r"$2\r\na \r\n"));
        assert_eq!(from_lines("12.5 3\n"), None);
        assert_eq!(from_lines("12.5 3 x\n"), None);
    }

    #[test]
    fn keys_differ() {
        assert_ne!(key(1), key(2));
        assert_eq!(&key(4321), b"job:state:tasks:1234");
    }
}
