//! Random and mangled input for the libraries' parsers: a value or an error, never a crash, and memory within its
//! limit.

mod host;

use host::Fake;
use lua::{Limits, Protocol, ScriptArguments, State, sha1hex};

/// Feeds `inputs` to a script; whatever comes back must be a reply.
fn feed(script: &str, mut input: impl FnMut(&mut fastrand::Rng) -> Vec<u8>) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut state = State::new(Limits { memory_bytes_max: 8 << 20, ..Limits::default() });
    let sha = sha1hex(script.as_bytes());
    state.load(&sha, script.as_bytes()).expect("a valid script");
    for _ in 0..20_000 {
        let bytes = input(&mut random);
        let mut out = Vec::new();
        state.run(
            &mut Fake::default(),
            &sha,
            ScriptArguments { keys: &[], args: &[&bytes] },
            Protocol::Resp2,
            &mut out,
        );
        assert!(out.ends_with(b"\r\n"), "{bytes:?}");
        assert!(state.memory_bytes() <= 8 << 20);
    }
}

fn mangled(random: &mut fastrand::Rng, samples: &[&[u8]]) -> Vec<u8> {
    let mut bytes = samples[random.usize(..samples.len())].to_vec();
    for _ in 0..random.usize(..6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..5) {
            0 => bytes[at] = random.u8(..),
            1 => {
                bytes.remove(at);
            }
            2 => bytes.insert(at, random.u8(..)),
            3 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

#[test]
fn json() {
    let samples: [&[u8]; 4] = [
        br#"{"a":[1,2.5,-3e10,true,false,null],"b":{"c":"\u00e9\ud83d\ude00\n"},"d":""}"#,
        br#"[[[[[]]]],{"x":{"y":[{}]}},"abc",0x1F,inf,NaN]"#,
        br#""a long string with \\ \" \/ \b\f\r\t escapes""#,
        b"12345678901234567890",
    ];
    feed("local ok, v = pcall(cjson.decode, ARGV[1]) return ok and {cjson.encode(v)} or v", |random| {
        mangled(random, &samples)
    });
}

#[test]
fn json_encodes_back_what_it_decoded() {
    let script =
        "local v = cjson.decode(ARGV[1]) return {cjson.encode(v), cjson.encode(cjson.decode(cjson.encode(v)))}";
    let mut state = State::new(Limits::default());
    let sha = sha1hex(script.as_bytes());
    state.load(&sha, script.as_bytes()).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2000 {
        let mut json = String::new();
        value(&mut random, 0, &mut json);
        let mut out = Vec::new();
        state.run(
            &mut Fake::default(),
            &sha,
            ScriptArguments { keys: &[], args: &[json.as_bytes()] },
            Protocol::Resp2,
            &mut out,
        );
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("*2\r\n"), "{json}: {text}");
        let parts: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(parts[2], parts[4], "{json}");
    }
}

fn value(random: &mut fastrand::Rng, depth: u32, json: &mut String) {
    use std::fmt::Write;
    match random.u8(..if depth > 4 { 5 } else { 7 }) {
        0 => json.push_str("true"),
        1 => json.push_str("null"),
        2 => write!(json, "{}", random.i32(..)).unwrap(),
        3 => write!(json, "{:.3}", random.f64() * 1000.0).unwrap(),
        4 => write!(json, "\"{}\"", "é\\n x".repeat(random.usize(..3))).unwrap(),
        5 => {
            json.push('[');
            for i in 0..random.usize(..4) {
                if i > 0 {
                    json.push(',');
                }
                value(random, depth + 1, json);
            }
            json.push(']');
        }
        _ => {
            // One field: the order of more is Lua's.
            json.push_str("{\"k\":");
            value(random, depth + 1, json);
            json.push('}');
        }
    }
}

#[test]
fn messagepack() {
    let samples: [&[u8]; 3] = [
        b"\x93\x01\xa3abc\x82\xa1a\x01\xa1b\xc3",
        b"\xcb\x3f\xf8\0\0\0\0\0\0\xca\x3f\xc0\0\0\xcd\x01\x02\xd3\xff\xff\xff\xff\xff\xff\xff\xff\xda\0\x03xyz",
        b"\xdc\0\x02\x01\x02\xde\0\x01\x01\x02\xdd\0\0\0\x01\xc0\xdf\0\0\0\x01\xa1k\xc2",
    ];
    let script = "local r = {pcall(cmsgpack.unpack, ARGV[1])} return {r[1], cmsgpack.pack(unpack(r)), {cmsgpack.unpack_limit(ARGV[1], 1)}}";
    feed(script, |random| mangled(random, &samples));
    feed("return {cmsgpack.unpack(ARGV[1])}", |random| (0..random.usize(..30)).map(|_| random.u8(..)).collect());
}

#[test]
fn structs() {
    let formats: [&[u8]; 5] = [b"<bBhHlLiI", b">i3I5i16sc0", b"!8bdxf<l", b"bc0s!4i", b"c10c2147483647"];
    let script = "local d = ('\\3\\0abcdefg\\255'):rep(20)
        return {pcall(struct.unpack, ARGV[1], d), pcall(struct.pack, ARGV[1], 1, 2, 'x', 4, 5), pcall(struct.size, ARGV[1])}";
    feed(script, |random| mangled(random, &formats));
}

#[test]
fn source_text() {
    let samples: [&[u8]; 3] = [
        b"local t = {a = 1, [2] = 'x'} for k, v in pairs(t) do t[k] = v .. k end return #t",
        b"--[==[ long ]==] return [[text]] .. \"\\065\\n\" .. 0x10 .. 1e5",
        b"local function f(...) if select('#', ...) > 0 then return f() else return 1 end end return f(1, 2)",
    ];
    feed("local f, e = loadstring(ARGV[1]) return e or 1", |random| mangled(random, &samples));
}
