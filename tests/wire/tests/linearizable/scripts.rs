//! The scripts that clients run: as Lua for the server, and as the same thing in terms of the model.
//!
//! Some have a loop, which Holdfast runs apart from its other commands; some name their keys as arguments, for which it
//! locks everything; some fail after they have written, and what they wrote stays.

use wire::Reply;

use crate::keys::{Model, Outcome, array, bulk};

pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    /// How many of its keys come as KEYS, and how many as the first of ARGV.
    pub(crate) keys: usize,
    pub(crate) undeclared: usize,
    /// What else it takes.
    pub(crate) takes: &'static [Takes],
    pub(crate) only_reads: bool,
    pub(crate) model: fn(&mut Model, keys: &[&str], args: &[&str]) -> Outcome,
}

/// All scripts as functions of one library. The names of a function's parameters are those that a script has for them.
pub(crate) fn library() -> String {
    let function = |script: &Script| {
        format!("redis.register_function('{}', function(KEYS, ARGV)\n{}\nend)\n", script.name, script.source)
    };
    format!("#!lua name={LIBRARY}\n{}", SCRIPTS.iter().map(function).collect::<String>())
}

pub(crate) const LIBRARY: &str = "linearizable";

#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// Something that may be there.
    Old,
    New,
}

pub(crate) const SCRIPTS: &[Script] = &[
    Script {
        name: "swap",
        source: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n\
                 redis.call('SET', KEYS[1], ARGV[2]) return 1",
        keys: 1,
        undeclared: 0,
        takes: &[Takes::Old, Takes::New],
        only_reads: false,
        model: |model, keys, args| {
            let same = model.run(&["GET", keys[0]])? == bulk(Some(args[0]));
            if same {
                model.run(&["SET", keys[0], args[1]])?;
            }
            Ok(Reply::Integer(same.into()))
        },
    },
    Script {
        name: "claim",
        source: "local current = redis.call('HGET', KEYS[1], 'f')\nif current == ARGV[1] then\n    \
                 redis.call('HSET', KEYS[1], 'f', ARGV[2])\n    return 1\nelse\n    return 0\nend",
        keys: 1,
        undeclared: 0,
        takes: &[Takes::Old, Takes::New],
        only_reads: false,
        model: |model, keys, args| {
            let same = model.run(&["HGET", keys[0], "f"])? == bulk(Some(args[0]));
            if same {
                model.run(&["HSET", keys[0], "f", args[1]])?;
            }
            Ok(Reply::Integer(same.into()))
        },
    },
    Script {
        name: "move",
        source: "local text = redis.call('GET', ARGV[1])\nif text then redis.call('DEL', ARGV[1]) redis.call('SET', \
                 ARGV[2], text) end\nreturn text",
        keys: 0,
        undeclared: 2,
        takes: &[],
        only_reads: false,
        model: |model, _, args| {
            let text = model.run(&["GET", args[0]])?;
            if let Reply::Bulk(_) = text {
                model.run(&["DEL", args[0]])?;
                model.run(&["SET", args[1], text.text()])?;
            }
            Ok(text)
        },
    },
    Script {
        name: "both",
        source: "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1])\n\
                 return redis.call('MGET', KEYS[1], KEYS[2])",
        keys: 2,
        undeclared: 0,
        takes: &[Takes::New],
        only_reads: false,
        model: |model, keys, args| {
            model.run(&["SET", keys[0], args[0]])?;
            model.run(&["SET", keys[1], args[0]])?;
            model.run(&["MGET", keys[0], keys[1]])
        },
    },
    // The second step fails where its key is a string.
    Script {
        name: "transfer",
        source: "return {redis.call('HINCRBY', KEYS[1], 'f', -1), redis.call('HINCRBY', KEYS[2], 'f', 1)}",
        keys: 2,
        undeclared: 0,
        takes: &[],
        only_reads: false,
        model: |model, keys, _| {
            let taken = model.run(&["HINCRBY", keys[0], "f", "-1"])?;
            Ok(array([taken, model.run(&["HINCRBY", keys[1], "f", "1"])?]))
        },
    },
    // Fails after a write where the text is not all digits.
    Script {
        name: "stumble",
        source: "redis.call('APPEND', KEYS[1], '0') return redis.call('INCR', KEYS[1])",
        keys: 1,
        undeclared: 0,
        takes: &[],
        only_reads: false,
        model: |model, keys, _| {
            model.run(&["APPEND", keys[0], "0"])?;
            model.run(&["INCR", keys[0]])
        },
    },
    // Fails, if it does, after its first step.
    Script {
        name: "promote",
        source: "local score = redis.call('ZINCRBY', KEYS[1], 1, 'm')\nredis.call('HSET', KEYS[2], 'f', score)\n\
                 return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
        keys: 2,
        undeclared: 0,
        takes: &[],
        only_reads: false,
        model: |model, keys, _| {
            let score = model.run(&["ZINCRBY", keys[0], "1", "m"])?;
            model.run(&["HSET", keys[1], "f", score.text()])?;
            model.run(&["ZRANGE", keys[0], "0", "-1", "WITHSCORES"])
        },
    },
    Script {
        name: "regret",
        source: "redis.call('HSET', KEYS[1], 'g', ARGV[1]) return redis.error_reply('SORRY for that')",
        keys: 1,
        undeclared: 0,
        takes: &[Takes::New],
        only_reads: false,
        model: |model, keys, args| {
            model.run(&["HSET", keys[0], "g", args[0]])?;
            Err("SORRY for that")
        },
    },
    Script {
        name: "thrice",
        source: "for _ = 1, 3 do redis.call('INCR', KEYS[1]) end return redis.call('GET', KEYS[1])",
        keys: 1,
        undeclared: 0,
        takes: &[],
        only_reads: false,
        model: |model, keys, _| {
            for _ in 0..3 {
                model.run(&["INCR", keys[0]])?;
            }
            model.run(&["GET", keys[0]])
        },
    },
    // Fails at the first key that is a hash.
    Script {
        name: "mark",
        source: "local sum = 0\nfor i = 1, 3 do sum = sum + redis.call('APPEND', ARGV[i], '1') end\nreturn sum",
        keys: 0,
        undeclared: 3,
        takes: &[],
        only_reads: false,
        model: |model, _, args| {
            let mut sum = 0;
            for key in args {
                sum += model.run(&["APPEND", key, "1"])?.integer();
            }
            Ok(Reply::Integer(sum))
        },
    },
    Script {
        name: "look",
        source: "local seen = {}\nfor i = 1, 3 do\n    local text = redis.pcall('GET', ARGV[i])\n    \
                 seen[i] = type(text) == 'table' and 'no text' or text\nend\nreturn seen",
        keys: 0,
        undeclared: 3,
        takes: &[],
        only_reads: true,
        model: |model, _, args| {
            let look = |key: &&str| model.run(&["GET", key]).unwrap_or_else(|_| bulk(Some("no text")));
            Ok(array(args.iter().map(look)))
        },
    },
];
