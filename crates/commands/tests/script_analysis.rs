//! What is certain about scripts, and what is not.

use commands::registry;
use execution::scripts::analysis::ScriptAnalysis;
use execution::scripts::functions::Library;
use std::collections::HashMap;

/// What is known of a script, with all commands.
fn analysis(source: &[u8]) -> ScriptAnalysis {
    registry();
    ScriptAnalysis::of(source)
}

fn of_library(source: &[u8]) -> HashMap<&str, ScriptAnalysis> {
    registry();
    ScriptAnalysis::of_library(source)
}

fn reading(source: &str) -> (bool, bool) {
    let ScriptAnalysis { is_bounded, declares_all_keys, .. } = analysis(source.as_bytes());
    (is_bounded, declares_all_keys)
}

#[test]
fn a_compare_and_swap_is_bounded_and_declares_its_keys() {
    let source = "-- compare_and_swap.lua
        local current = redis.call('HGET', KEYS[1], ARGV[1])
        if current == ARGV[2] then
            redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
            return 1
        else
            return 0
        end";
    assert_eq!(reading(source), (true, true));
}

#[test]
fn aliases_of_keys_are_followed() {
    assert_eq!(reading("local k = KEYS[1] return redis.call('get', k)"), (true, true));
    assert_eq!(reading("local k = KEYS[1]; redis.call('mset', k, 1, KEYS[2], 2)"), (true, true));
    for source in [
        "local k = KEYS[1] .. 'x' return redis.call('get', k)",
        "local k = KEYS[1] k = 'x' return redis.call('get', k)",
        "local k = KEYS[1] local k = 'x' return redis.call('get', k)",
        "local k = KEYS[1] local a, k = 1, 'x' return redis.call('get', k)",
        "local k = KEYS[1] k, a = 'x', 1 return redis.call('get', k)",
        "local k = KEYS[1] or 'x' return redis.call('get', k)",
        "local k = KEYS[1] for i, k in pairs(ARGV) do redis.call('get', k) end",
        "local k = KEYS[1] local f = function(k) redis.call('get', k) end f('x')",
    ] {
        assert!(!analysis(source.as_bytes()).declares_all_keys, "{source}");
    }
}

#[test]
fn scripts_that_may_touch_other_keys() {
    for source in [
        "return redis.call('get', 'x')",
        "return redis.call('get', KEYS[1] .. 'x')",
        "return redis.call('get', ARGV[1])",
        "return redis.call(ARGV[1], KEYS[1])",
        "return redis.call('get' .. '', KEYS[1])",
        "return redis.call('mget', KEYS[1], 'x')",
        "return redis.call('mget', unpack(KEYS))",
        "return redis.call('keys', '*')",
        "return redis.call('flushall')",
        "return redis.call('nosuch', KEYS[1])",
        "return redis.call('rename', KEYS[1], 'x')",
        "return redis.call('object', 'encoding', KEYS[1])",
        "return redis.call('eval', 'x', 0)",
        "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
        "KEYS = {'x'} return redis.call('get', KEYS[1])",
        "local r = redis return r.call('get', 'x')",
        "local f = redis.call return f('get', 'x')",
        "return redis['call']('get', 'x')",
        "return pcall(redis.call, 'get', 'x')",
        "loadstring('return 1')() return redis.call('get', KEYS[1])",
        "table.insert(KEYS, 'x') return redis.call('get', KEYS[1])",
        "local t = {KEYS} t[1][1] = 'x' return redis.call('get', KEYS[1])",
    ] {
        assert!(!analysis(source.as_bytes()).declares_all_keys, "{source}");
    }
    for source in [
        "return redis.call('get', KEYS[1])",
        "return redis.call('mget', KEYS[1], KEYS[2])",
        "return redis.call(\"SET\", KEYS[1], ARGV[1], 'EX', ARGV[2])",
        "for i = 1, 10 do redis.call('incr', KEYS[1]) end return #KEYS",
        "return {redis.call('get', KEYS[1]), redis.pcall('del', KEYS[2])}",
        "return redis.call('ping')",
    ] {
        assert!(analysis(source.as_bytes()).declares_all_keys, "{source}");
    }
}

#[test]
fn functions_of_a_library_are_analysed_one_by_one() {
    let analyses = of_library(
        b"#!lua name=mine
        local function claim(keys, args)
            if redis.call('HGET', keys[1], 'state') == args[1] then return redis.call('HSET', keys[1], 'state', args[2]) end
            return 0
        end
        local function sweep(keys, args)
            for i = 1, 10 do redis.call('DEL', 'job:' .. i) end
        end;
        redis.register_function('claim', claim)
        redis.register_function{function_name = 'sweep', callback = sweep, flags = {'allow-oom', \"no-cluster\"}, description = 'x'}
        redis.register_function({callback = function(k) return redis.call('GET', k[1]) end, function_name = 'get'})
        redis.register_function('other', function(k, a) return redis.call('GET', a[1]) end)
        redis.register_function('both', function(k) return claim(k, {}) end)
        redis.register_function('hidden', function(k) return sweep() end)",
    );
    let certain = |is_bounded, declares_all_keys| Some((is_bounded, declares_all_keys));
    for (name, expected) in [
        ("claim", certain(true, true)),
        ("sweep", certain(false, false)),
        ("get", certain(true, true)),
        ("other", certain(true, false)),
        ("both", certain(false, false)),
        ("hidden", certain(false, false)),
        ("nothing", None),
    ] {
        let analysis = analyses.get(name).map(|analysis| (analysis.is_bounded, analysis.declares_all_keys));
        assert_eq!(analysis, expected, "{name}");
    }
}

/// Valkey's name of the table `redis`.
#[test]
fn server_is_another_name_of_redis() {
    for (source, expected) in [
        ("return server.call('GET', KEYS[1])", (true, true)),
        ("return server.call('GET', 'other')", (true, false)),
        ("return server.call('KEYS', '*')", (false, false)),
        ("local server = redis return server.call('GET', KEYS[1])", (false, false)),
        ("local call = server.call return call('GET', 'other')", (false, false)),
    ] {
        assert_eq!(reading(source), expected, "{source}");
    }
    let library = b"#!lua name=l\nserver.register_function('f', function(k) return server.call('GET', k[1]) end)";
    assert!(ScriptAnalysis::of_library(library).contains_key("f"));
}

#[test]
fn a_library_that_does_more_than_register_is_not_analysed() {
    for source in [
        "local t = {} redis.register_function('f', function(keys) return 1 end)",
        "redis.register_function('f', g)",
        "redis.register_function('f' .. 'g', function(keys) return 1 end)",
        "redis.register_function('f', function(keys) return 1 end)()",
        "local function redis(keys) end redis.register_function('f', redis)",
        "local function f(keys) end local function f(keys) end redis.register_function('f', f)",
        "local function f(...) return redis.call('get', KEYS[1]) end redis.register_function('f', f)",
        "if true then redis.register_function('f', function(keys) return 1 end) end",
        "redis.register_function('f', function(keys) return 1",
    ] {
        assert_eq!(of_library(source.as_bytes()), HashMap::new(), "{source}");
    }
    for source in [
        "redis.register_function('f', function(KEYS) return redis.call('get', KEYS[1]) end)",
        "redis.register_function('f', function(redis) return redis.call('get', KEYS[1]) end)",
        "redis.register_function('f', function(a, keys) return redis.call('get', KEYS[1]) end)",
    ] {
        assert_eq!(of_library(source.as_bytes()).get("f"), Some(&ScriptAnalysis::default()), "{source}");
    }
}

#[test]
fn scripts_that_may_run_long() {
    for source in [
        "while true do end",
        "for i = 1, 1e9 do end",
        "repeat until false",
        "local function f() return f() end return f()",
        "local s = string.rep('a', 1e9)",
        "return ('a'):rep(1e9)",
        "local f = string.rep return f('a', 1e9)",
        "return string.find(ARGV[1], ARGV[2])",
        "return ARGV[1]:find(ARGV[2])",
        "return select('#', 1)",
        "local t = string return t.rep('a', 10)",
        "tostring = string.rep return tostring('a', 10)",
        "local tostring = string.rep return tostring('a', 10)",
        "return unpack(ARGV)",
        "return redis.call('smembers', KEYS[1])",
        "local t = redis.pcall('LRANGE', KEYS[1], 0, -1) return #t",
        "return redis.call(ARGV[1], KEYS[1])",
        "return redis.call('nothing', KEYS[1])",
        "return (string.rep)('a', 10)",
        "return dofile'x'",
        "return x{1}",
        "return \"",
        "--[[ no end",
    ] {
        assert!(!analysis(source.as_bytes()).is_bounded, "{source}");
    }
    for source in [
        "return 1",
        "return {1, 2, {ok = 'x'}}",
        "if tonumber(ARGV[1]) > (1 + 2) then return redis.status_reply('for while') end -- while",
        "local x = redis.call('get', KEYS[1]) or (false) return x",
        "return cjson.encode({a = 1})",
        "redis.call('set', KEYS[1], 1) redis.call('DEL', KEYS[1]) return redis.call('hget', KEYS[2], 'f')",
        "#!lua flags=no-writes\nreturn [[while]] .. [=[ for ]=]",
    ] {
        assert!(analysis(source.as_bytes()).is_bounded, "{source}");
    }
}

#[test]
fn a_script_may_read_an_index_that_is_no_key() {
    let names_no_index = |source: &str| analysis(source.as_bytes()).names_no_index;
    assert!(names_no_index("return 1"));
    assert!(names_no_index(
        "redis.call('HSET', KEYS[1], 'f', 'IDX.RANGE') return redis.pcall('zrange', KEYS[1], 0, -1)"
    ));
    for source in [
        "return redis.call('IDX.RANGE', 'i', 0, 1)",
        "redis.call('SET', 'k', 'v') return redis.pcall(\"sweep\", 'i')",
        "return redis.call('idx' .. '.range', 'i', 0, 1)",
        "return redis.call(ARGV[1], 'i', 0, 1)",
        "local call = redis.call return call('CLAIM', 1, 'i')",
        "return redis.call('claim'",
    ] {
        assert!(!names_no_index(source), "{source}");
    }
}

#[test]
fn the_built_in_library_runs_in_place_and_on_its_key_alone() {
    registry();
    let [function] = &Library::built_in().functions[..] else { panic!("one function") };
    assert_eq!(function.info.name, "compare_and_swap");
    assert_eq!(function.analysis, ScriptAnalysis { is_bounded: true, declares_all_keys: true, names_no_index: true });
}
