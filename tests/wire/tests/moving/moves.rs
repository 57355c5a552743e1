//! Moves that end well: under load, over broken connections, with TLS and passwords, after everything was forgotten.

use wire::Connection;

use crate::certificates::{Authority, Files};
use crate::compare::assert_equal;
use crate::load::Load;
use crate::proxy::Proxy;
use crate::servers::{Product, Source};
use crate::support::{Dir, Holdfast};
use crate::tls_relay;
use crate::tool::{Tool, promote, wait_until_following};

/// Holdfast with what the comparison takes.
pub(crate) fn target(more: &[&str]) -> Holdfast {
    let args: Vec<&str> = ["--enable-debug-command", "yes"].into_iter().chain(more.iter().copied()).collect();
    Holdfast::start(&args).expect("a source was started, so there is a Holdfast")
}

/// A source, and the Holdfast that it is moved to.
pub(crate) fn start(product: Product, args: &[&str]) -> Option<(Source, Holdfast)> {
    let source = Source::start(product, args)?;
    Some((source, target(&[])))
}

pub(crate) fn url(server: &Holdfast) -> String {
    format!("redis://{}", server.address())
}

/// Ends the tool by a promotion, and compares.
#[track_caller]
pub(crate) fn end(mut tool: Tool, product: Product, source: &mut Connection, server: &Holdfast) {
    let done = promote(&url(server), &[]);
    assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
    let status = tool.wait_for_end();
    assert_eq!(status.code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
    assert_digests(product, &tool);
    let mut target = server.connect();
    assert_eq!(target.run("EXISTS holdfast:import holdfast:import:promote").to_string(), ":0");
    assert_eq!(target.run("CONFIG GET import-mode").to_string(), r#"["import-mode", "no"]"#);
    assert_equal(source, &mut target);
}

/// The digests that the tool has compared. Valkey's leave out the deadlines of hash fields.
#[track_caller]
pub(crate) fn assert_digests(product: Product, tool: &Tool) {
    let said = tool.stdout();
    let left_out = product == Product::Valkey && said.contains("those of Valkey leave out");
    assert!(said.contains("digests are equal: ") || left_out, "{said}");
}

/// Writers never stop: the source holds them back. Connections to both sides break all the time.
fn move_under_load(product: Product, args: &[&str]) {
    let Some((source, server)) = start(product, args) else { return };
    let load = Load::start(source.address, product == Product::Valkey);
    load.wait_for(500);
    let mut client = source.connect();
    client.run_args(&[
        "FUNCTION",
        "LOAD",
        "#!lua name=lib\nredis.register_function('f', function() return 'here' end)",
    ]);
    let (to_source, to_target) = (Proxy::to(source.address), Proxy::to(server.address()));
    let (from, to) = (format!("redis://{}", to_source.address), format!("redis://{}", to_target.address));
    let mut tool = Tool::follow(&from, &to, &[]);
    tool.wait_to_say("all data has come");
    for round in 0..6 {
        load.wait_for(300);
        if round % 2 == 0 {
            to_source.cut()
        } else {
            to_target.cut()
        }
        load.wait_for(100);
    }
    tool.wait_to_say("going on behind byte");
    // The clients' replies wait until the end of the pause; the comparison is over before.
    let done = promote(&url(&server), &["--pause-source", "30"]);
    assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
    assert_eq!(tool.wait_for_end().code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
    assert_digests(product, &tool);
    let mut target = server.connect();
    // The same as the source, whose clients have stopped where they were.
    assert_equal(&mut client, &mut target);
    assert_eq!(target.run("FCALL f 0").to_string(), "\"here\"");
    client.run("CLIENT UNPAUSE");
    load.stop();
}

#[test]
fn redis_is_moved_under_load() {
    move_under_load(Product::Redis, &[]);
}

/// Not straight from memory: Redis sends a file of known length.
#[test]
fn redis_is_moved_by_a_file() {
    move_under_load(Product::Redis, &["--repl-diskless-sync", "no"]);
}

/// Libraries and scripts that say `server` instead of `redis`, as Valkey's documents do.
#[test]
fn scripts_of_valkey_run_here() {
    let Some((source, server)) = start(Product::Valkey, &[]) else { return };
    let mut client = source.connect();
    let library = "#!lua name=counters\n\
        local function add(keys, args) return server.call('HINCRBY', keys[1], args[1], 2) end\n\
        server.register_function('add', add)\n\
        server.register_function{function_name = 'get', callback = function(keys, args) \
        return {server.call('HGET', keys[1], args[1]), tostring(server == redis)} end, \
        flags = {'no-writes', 'allow-oom', 'allow-stale', 'no-cluster', 'allow-cross-slot-keys'}}";
    for number in 0..30 {
        client.run(&format!("SET key:{number} 1"));
    }
    assert_eq!(client.run_args(&["FUNCTION", "LOAD", library]).to_string(), "\"counters\"");
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    client.run("FCALL add 1 counter:1 a");
    client.run_args(&[
        "FUNCTION",
        "LOAD",
        "#!lua name=late\nserver.register_function('late', function() return server.sha1hex('') end)",
    ]);
    end(tool, Product::Valkey, &mut client, &server);
    let mut here = server.connect();
    for line in [
        "FCALL add 1 counter:1 a",
        "FCALL_RO get 1 counter:1 a",
        "FCALL late 0",
        "FUNCTION LIST",
        "EVAL \"return {server.call('INCR', KEYS[1]), server.pcall('HGET', KEYS[1], 'a')}\" 1 key:1",
        "EVAL \"server.call = 1\" 0",
        "EVAL \"#!lua flags=no-writes\\nreturn server.call('GET', KEYS[1])\" 1 key:1",
    ] {
        let (here, there) = (here.run(line), client.run(line));
        match line {
            // Libraries are listed in no order.
            "FUNCTION LIST" => assert_eq!(here.items().len(), there.items().len()),
            // The errors name the script in different ways.
            _ if there.is_error() => assert!(here.to_string().contains("Attempt to modify a readonly table"), "{here}"),
            _ => assert_eq!(here.to_string(), there.to_string(), "{line}"),
        }
    }
}

#[test]
fn valkey_is_moved_under_load() {
    move_under_load(Product::Valkey, &[]);
}

/// What is deleted while nobody follows, and is no longer in the backlog, goes here too.
#[test]
fn a_source_that_has_forgotten_sends_everything_again() {
    for product in [Product::Redis, Product::Valkey] {
        let Some((source, server)) = start(product, &["--repl-backlog-size", "16kb"]) else { continue };
        let mut client = source.connect();
        for number in 0..50 {
            client.run(&format!("RPUSH list:{number} a b c"));
        }
        // A Redis of today's Debian has no such command; the comparison shows the difference.
        client.run("HSET timed a 1 b 2 c 3");
        client.run("HPEXPIREAT timed 4102444800000 FIELDS 1 b");
        client.run("SELECT 7");
        client.run("SET only:here 1");
        client.run("SELECT 0");
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("all data has come");
        wait_until_following(&mut server.connect());
        tool.signal("TERM");
        assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
        client.run("DEL list:1 list:2");
        client.run("SELECT 7");
        client.run("FLUSHDB");
        client.run("SELECT 0");
        let filler = "x".repeat(4000);
        for number in 0..100 {
            client.run(&format!("SET filler:{} {filler}", number % 3));
        }
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("has not kept what came since: all data comes again");
        tool.wait_to_say("all data has come");
        end(tool, product, &mut client, &server);
    }
}

/// Large values, in the data and in the stream, odd names and a transaction that is longer than ours.
#[test]
fn large_values_and_long_transactions() {
    for product in [Product::Redis, Product::Valkey] {
        let Some((source, server)) = start(product, &[]) else { continue };
        let mut client = source.connect();
        let large: Vec<u8> = (0..400_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let odd: Vec<u8> = (0..=255).collect();
        let write = |client: &mut Connection, name: &str| {
            client.run_args(&[b"SET", format!("large:{name}").as_bytes(), &large]);
            client.run_args(&[b"HSET", [&odd, name.as_bytes()].concat().as_slice(), &odd, &large[..100_000], b"", b""]);
            for kind in ["RPUSH", "SADD"] {
                let elements = (0..2000).map(|number| format!("element:{number}"));
                let words: Vec<String> =
                    [kind.to_owned(), format!("{kind}:{name}")].into_iter().chain(elements).collect();
                client.run_args(&words);
            }
            client.queue_line("MULTI");
            for number in 0..3000 {
                client.queue_line(&format!("ZADD zset:{name}:{} {number} member:{number}", number % 10));
            }
            client.queue_line("EXEC");
            for _ in 0..3002 {
                client.read();
            }
        };
        write(&mut client, "before");
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("all data has come");
        write(&mut client, "after");
        end(tool, product, &mut client, &server);
    }
}

/// A key whose new deadline comes late must not be gone when it comes.
#[test]
fn a_deadline_that_was_moved_in_time_arrives_in_time() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    let server = target(&["--import-mode", "yes"]);
    let mut client = source.connect();
    for number in 0..30 {
        client.run(&format!("SET kept:{number} 1 PX 1500"));
    }
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut server.connect());
    tool.kill();
    for number in 0..30 {
        client.run(&format!("PEXPIRE kept:{number} 100000"));
        client.run(&format!("INCR kept:{number}"));
    }
    let mut target_client = server.connect();
    crate::support::eventually("the first deadline passes", || target_client.run("GET kept:0").to_string() == "(nil)");
    let mut tool = Tool::follow(&source.url(), &url(&server), &["--promote"]);
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert!(tool.stderr().contains("going on behind byte"), "{}", tool.stderr());
    assert_equal(&mut client, &mut server.connect());
    assert_eq!(server.connect().run("GET kept:29").to_string(), "\"2\"");
}

/// TLS on both sides, a user with a password at the source, a password here. The promotion is asked for by a signal.
#[test]
fn tls_and_passwords() {
    let (dir, authority) = (Dir::fresh(), Authority::new("authority of tests"));
    let files = Files::write(dir.path(), &authority.issue("server"), &authority);
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (certificate, key, ca) = (path(&files.certificate), path(&files.key), path(&files.authority));
    for product in [Product::Redis, Product::Valkey] {
        let tls_port = wire::free_address().port().to_string();
        let tls = [
            ["--tls-port", &tls_port],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &ca],
            ["--tls-auth-clients", "no"],
            ["--tls-replication", "yes"],
        ];
        // The Valkey of these tests is built without TLS: a relay speaks it.
        let has_tls = product == Product::Redis;
        let mut args = if has_tls { tls.concat() } else { Vec::new() };
        args.extend(["--requirepass", "of-the:source"]);
        let Some(source) = Source::start(product, &args) else { continue };
        let mut client = source.connect();
        client.run_args(&["AUTH", "of-the:source"]);
        client.run_args(&["ACL", "SETUSER", "mover", "on", ">m@ver", "~*", "&*", "+@all"]);
        for number in 0..50 {
            client.run(&format!("ZADD zset:{number} 1 a 2 b"));
        }
        let holdfast_port = wire::free_address().port().to_string();
        let server = target(&[
            "--tls-port",
            &holdfast_port,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
        ]);
        // From now on: whether it has started is asked without a password.
        server.connect().run("CONFIG SET requirepass new");
        let port = match has_tls {
            true => tls_port,
            false => tls_relay::start(source.address, &files).port().to_string(),
        };
        let from = format!("rediss://mover:m%40ver@localhost:{port}");
        let to = format!("rediss://:new@localhost:{holdfast_port}");
        // Without the authority's certificate nothing is trusted, and no password is sent.
        let mut refused = Tool::follow(&from, &to, &[]);
        assert_eq!(refused.wait_for_end().code(), Some(1), "{}", refused.stderr());
        let mut wrong = Tool::follow(&from.replace("m%40ver", "wrong"), &to, &["--tls-ca-cert-file", &ca]);
        assert_eq!(wrong.wait_for_end().code(), Some(1), "{}", wrong.stderr());
        assert!(wrong.stderr().contains("WRONGPASS") && !wrong.stderr().contains("wrong@"), "{}", wrong.stderr());
        let mut tool = Tool::follow(&from, &to, &["--tls-ca-cert-file", &ca]);
        tool.wait_to_say("all data has come");
        client.run("ZADD zset:1 5 late");
        tool.signal("USR1");
        assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
        assert!(tool.stdout().contains("digests are equal"), "{}", tool.stdout());
        let mut here = server.connect();
        here.run("AUTH new");
        assert_equal(&mut client, &mut here);
    }
}
