//! Memory: the limit, and figures that can be believed.

use std::fs;
use std::thread;
use std::time::Duration;

use wire::{Connection, Reply, skip};

use crate::support::{Holdfast, eventually, info};

const VALUE_BYTES: usize = 10_000;

fn set(connection: &mut Connection, number: usize) -> Reply {
    connection.run_with(&format!("SET key:{number}"), &[&[b'v'; VALUE_BYTES]])
}

#[test]
fn writes_end_at_maxmemory_and_go_on_when_there_is_room() {
    const LIMIT: u64 = 20 << 20;
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--maxmemory", "20mb"]) else { return };
    let mut stored = 0;
    let refusal = loop {
        match set(&mut client, stored) {
            Reply::Simple(_) => stored += 1,
            refusal => break refusal,
        }
        assert!(stored * VALUE_BYTES < 2 * LIMIT as usize, "the limit is passed");
    };
    assert_eq!(refusal.to_string(), "-OOM command not allowed when used memory > 'maxmemory'.");
    assert!(stored * VALUE_BYTES > LIMIT as usize / 2, "{stored} values of {VALUE_BYTES} bytes are no 20 MB");
    let used: u64 = info(&mut client, "used_memory");
    assert!(used < LIMIT + LIMIT / 10, "{used} bytes in use");

    assert_eq!(client.run("GET key:0").bytes().len(), VALUE_BYTES);
    assert_eq!(client.run("DBSIZE").integer(), stored as i64);
    assert_eq!(client.run("EXPIRE key:0 100").integer(), 1, "what does not grow is allowed");
    for command in ["SET small 1", "APPEND key:0 x", "HSET hash a 1", "INCR n", "SETRANGE key:0 0 x"] {
        assert_eq!(client.run(command).to_string(), refusal.to_string(), "{command}");
    }
    for number in 0..stored / 2 {
        assert_eq!(client.run(&format!("DEL key:{number}")).integer(), 1);
    }
    for number in 0..stored / 4 {
        assert_eq!(set(&mut client, number).to_string(), "+OK");
    }
}

#[test]
fn memory_that_is_free_is_given_back_to_the_system() {
    const MIB: u64 = 1 << 20;
    let Some((server, mut client)) =
        Holdfast::start_with_client(&["--appendonly", "no", "--enable-debug-command", "yes"])
    else {
        return;
    };
    let rss = |client: &mut Connection| info::<u64>(client, "used_memory_rss");
    let before = rss(&mut client);
    assert_eq!(client.run("DEBUG POPULATE 300000 key 400").to_string(), "+OK");
    let grown = rss(&mut client) - before;
    assert!(grown > 120 * MIB, "{grown} bytes");
    assert_eq!(client.run("FLUSHALL").to_string(), "+OK");
    drop(client);
    // Asked rarely: a server that does nothing gives back as well.
    eventually("the system has it back", || {
        thread::sleep(Duration::from_millis(500));
        rss(&mut server.connect()) < before + grown / 4
    });
}

#[test]
fn a_large_reply_within_a_script_leaves_no_memory_behind() {
    const MIB: u64 = 1 << 20;
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--appendonly", "no"]) else { return };
    client.run_with("SET large", &[&vec![b'v'; 4 << 20]]);
    let script = "return #redis.call('MGET', KEYS[1], KEYS[1], KEYS[1], KEYS[1])";
    // What a first script needs stays.
    client.run_with("EVAL", &[script.as_bytes(), b"1", b"small"]);
    let before: u64 = info(&mut client, "used_memory");
    assert_eq!(client.run_with("EVAL", &[script.as_bytes(), b"1", b"large"]).integer(), 4);
    client.run_with("EVAL", &[b"collectgarbage() return 1", b"0"]);
    eventually("it is as before", || info::<u64>(&mut client, "used_memory") < before + MIB);
}

#[test]
fn what_the_journal_buffers_take_is_told() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&[]) else { return };
    client.run_with("SET large", &[&vec![b'v'; 2 << 20]]);
    let told: u64 = info(&mut client, "mem_aof_buffer");
    assert!(told >= 2 << 20, "{told} bytes");
    client.run_with("SET larger", &[&vec![b'v'; 16 << 20]]);
    eventually("a huge buffer is given back", || info::<u64>(&mut client, "mem_aof_buffer") < 10 << 20);
    assert_eq!(info::<u64>(&mut client, "aof_buffer_length"), 0, "everything is written");
}

/// Whether the kernel may give the process huge pages, as it says itself; old kernels do not.
fn may_have_huge_pages(server: &Holdfast) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).expect("Linux tells of a process");
    let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"))?;
    Some(line.trim() == "1")
}

#[test]
fn a_large_server_uses_huge_pages_unless_they_are_turned_off() {
    for (disabled, expected) in [("no", true), ("yes", false)] {
        let Some(server) = Holdfast::start(&["--disable-thp", disabled]) else { return };
        let Some(at_start) = may_have_huge_pages(&server) else {
            return skip("the kernel does not tell of huge pages");
        };
        assert!(!at_start, "a small server keeps small pages");
        let mut client = server.connect();
        for number in 0..3_000 {
            assert_eq!(set(&mut client, number).to_string(), "+OK");
        }
        match expected {
            true => eventually("it is large", || may_have_huge_pages(&server) == Some(true)),
            false => {
                eventually("the log tells so", || server.stderr().contains("turned off by the setting disable-thp"));
                assert_eq!(may_have_huge_pages(&server), Some(false));
            }
        }
    }
}

/// SCRIPT LOAD is not refused beyond maxmemory, as in Redis, but scripts have a limit of their own.
#[test]
fn scripts_are_loaded_beyond_maxmemory_up_to_a_limit() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--maxmemory", "20mb"]) else { return };
    let script = |number: usize| format!("return {number} --{}", "x".repeat(1_000_000));
    let loaded = (0..100).take_while(|number| {
        let reply = client.run_with("SCRIPT LOAD", &[script(*number).as_bytes()]).to_string();
        assert!(
            !reply.starts_with('-') || reply.starts_with("-ERR the server keeps 67 loaded scripts of 67"),
            "{reply}"
        );
        !reply.starts_with('-')
    });
    assert_eq!(loaded.count(), 67, "scripts of a megabyte are kept up to 64 MiB");
    assert!(client.run("SET a 1").to_string().starts_with("-OOM "), "they count as memory");
    let used: u64 = info(&mut client, "used_memory");
    assert!(used < 160 << 20, "{used} bytes in use");
    assert_eq!(info::<usize>(&mut client, "number_of_cached_scripts"), 67);
    assert!(!client.run_with("SCRIPT LOAD", &[script(0).as_bytes()]).to_string().starts_with('-'), "it is known");
    assert_eq!(client.run("SCRIPT FLUSH").to_string(), "+OK");
    // The worker's Lua state forgets what it has compiled when it next runs a script.
    assert_eq!(client.run("EVAL 'return 1' 0").integer(), 1);
    eventually("there is room again", || client.run("SET a 1").to_string() == "+OK");
}

#[test]
fn scripts_that_are_only_evaluated_take_a_bounded_amount_of_memory() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--threads", "1"]) else { return };
    let before: u64 = info(&mut client, "used_memory");
    let comment = "x".repeat(200_000);
    for number in 0..600 {
        let script = format!("return {number} --{comment}");
        assert_eq!(client.run_with("EVAL", &[script.as_bytes(), b"0"]).integer(), number);
    }
    let used: u64 = info(&mut client, "used_memory");
    assert!(used < before + (64 << 20), "{used} bytes in use");
    assert!(info::<usize>(&mut client, "evicted_scripts") > 400);
}

#[test]
fn used_memory_is_what_is_stored() {
    const VALUES: usize = 2000;
    let Some((_server, mut client)) = Holdfast::start_with_client(&[]) else { return };
    let before: u64 = info(&mut client, "used_memory");
    for number in 0..VALUES {
        assert_eq!(set(&mut client, number).to_string(), "+OK");
    }
    let (stored, used) = ((VALUES * VALUE_BYTES) as u64, info::<u64>(&mut client, "used_memory") - before);
    assert!((stored / 2..stored * 2).contains(&used), "{stored} bytes are stored, {used} in use");
    let dataset: u64 = info(&mut client, "used_memory_dataset");
    assert!((stored / 2..stored * 2).contains(&dataset), "{stored} bytes are stored, {dataset} in the dataset");
    for ratio in ["mem_fragmentation_ratio", "allocator_frag_ratio", "rss_overhead_ratio"] {
        let ratio_now: f64 = info(&mut client, ratio);
        assert!(ratio_now > 0.0 && ratio_now.is_finite(), "{ratio}: {ratio_now}");
    }
    for flush in ["FLUSHALL ASYNC", "FLUSHALL SYNC"] {
        assert_eq!(client.run(flush).to_string(), "+OK");
        eventually("it is all given back", || info::<u64>(&mut client, "used_memory") < before + (1 << 20));
        for number in 0..VALUES {
            assert_eq!(set(&mut client, number).to_string(), "+OK");
        }
    }
}

/// What only removes is allowed, also where others of its command may add.
#[test]
fn hcas_that_only_deletes_is_not_refused() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&[]) else { return };
    client.run("HSET job state running worker w lease 5 a 1 b 2");
    client.run("CONFIG SET maxmemory 1");
    let refusal = "-OOM command not allowed when used memory > 'maxmemory'.";
    for command in [
        "HCAS job state running done",
        "HCAS job IF 1 state running SET 1 state done",
        "HCAS job IF 1 state running SET 1 state done DEL 1 worker",
        "HCAS job IF 1 state running nonsense",
    ] {
        assert_eq!(client.run(command).to_string(), refusal, "{command}");
    }
    assert_eq!(client.run("HCAS job IF 1 state running DEL 1 lease").integer(), 1);
    assert_eq!(client.run("HCAS job IF 1 state running PX 100000").integer(), 1);
    assert_eq!(client.run("HCAS job IF 1 state running DEL 1 worker").integer(), 1);
    let script = "return redis.call('HCAS', KEYS[1], 'IF', '1', 'state', 'running', 'DEL', '1', 'a')";
    assert_eq!(client.run_args(&["EVAL", script, "1", "job"]).integer(), 1);
    assert_eq!(client.run("HGETALL job").to_string(), "[\"state\", \"running\", \"b\", \"2\"]");
}

#[test]
fn memory_purge_purges() {
    let Some(server) = Holdfast::start(&[]) else { return };
    assert_eq!(server.connect().run("MEMORY PURGE").to_string(), "+OK");
    assert!(!server.stderr().contains("did not purge"), "{}", server.stderr());
}

/// What a script used is given back when it has ended, and does not count as data.
#[test]
fn a_script_that_took_much_memory_keeps_nobody_from_writing() {
    let Some(server) = Holdfast::start(&["--maxmemory", "20mb"]) else { return };
    let (mut client, mut other) = (server.connect(), server.connect());
    let many_small = "local t = {} for i = 1, 500000 do t[i] = i .. 'x' end return #t";
    assert_eq!(client.run_args(&["EVAL_RO", many_small, "0"]).integer(), 500_000);
    assert_eq!(other.run("SET a 1").to_string(), "+OK");
    let one_large = "local s = string.rep('x', 60000000) return #s";
    for _ in 0..3 {
        assert_eq!(client.run_args(&["EVAL", many_small, "0"]).integer(), 500_000);
        assert_eq!(other.run_args(&["EVAL", one_large, "0"]).integer(), 60_000_000);
        assert_eq!(other.run("SET a 1").to_string(), "+OK");
    }
    eventually("it is given back", || info::<u64>(&mut other, "used_memory") < 20 << 20);
    assert_eq!(other.run("EVAL 'return 1' 0").integer(), 1);
    assert!(info::<u64>(&mut other, "used_memory_lua") > 0, "a state that is kept is counted");
}

/// The buffers of a large batch do not stay behind.
#[test]
fn a_large_batch_leaves_no_memory_behind() {
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--maxmemory", "20mb"]) else { return };
    let script = "for i = 1, 40 do redis.call('SET', 'k' .. i, string.rep('y', 1000000)) end \
                  for i = 1, 40 do redis.call('DEL', 'k' .. i) end return 1";
    assert_eq!(client.run_args(&["EVAL", script, "0"]).integer(), 1);
    assert_eq!(client.run("DBSIZE").integer(), 0);
    eventually("writes are taken again", || client.run("SET a 1").to_string() == "+OK");
}
