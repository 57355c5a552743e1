//! Faults at the wrong moment: a source that is not reached, replies that are lost, a pause that ends, a tool that is killed while a
//! promotion is asked for. Each waits or begins again, and nothing is lost.

use std::thread;
use std::time::Duration;

use wire::{Connection, Server};

use crate::compare::assert_equal;
use crate::load::Load;
use crate::moves::{end, start, target, url};
use crate::proxy::Proxy;
use crate::servers::{Product, Source};
use crate::support::{Dir, eventually};
use crate::tool::{Tool, promote, wait_until_following};

fn fill(client: &mut Connection) {
    for number in 0..30 {
        client.run(&format!("SET key:{number} {number}"));
    }
}

fn through(proxy: &Proxy) -> String {
    format!("redis://{}", proxy.address)
}

/// The history still comes, but nobody can ask how long it is: there may be more of it.
#[test]
fn a_source_that_does_not_say_how_far_it_is_is_waited_for() {
    let Some((source, server)) = start(Product::Redis, &[]) else { return };
    let (mut client, mut here) = (source.connect(), server.connect());
    fill(&mut client);
    let proxy = Proxy::to(source.address);
    let mut tool = Tool::follow(&through(&proxy), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut here);
    proxy.refuse(Some(b"replication"));
    let to = url(&server);
    let asker = thread::spawn(move || promote(&to, &["--pause-source", "60"]));
    tool.wait_to_say("the source does not say how far it is: waiting for it");
    assert_eq!(here.run("HGET holdfast:import state").to_string(), "\"following\"");
    assert_eq!(here.run("CONFIG GET import-mode").to_string(), r#"["import-mode", "yes"]"#);
    client.run("CLIENT UNPAUSE");
    client.run("SET late 1");
    proxy.refuse(None);
    let done = asker.join().expect("the tool is started");
    assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert_equal(&mut client, &mut here);
    assert_eq!(here.run("GET late").to_string(), "\"1\"");
}

/// Writers go on when the pause ends, and are held back again before the promotion.
#[test]
fn writers_are_held_back_once_more_if_comparing_takes_too_long() {
    let Some((source, server)) = start(Product::Redis, &[]) else { return };
    let load = Load::start(source.address, false);
    load.wait_for(500);
    let proxy = Proxy::to(source.address);
    let mut tool = Tool::follow(&through(&proxy), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    proxy.hold_up(b"DIGEST", Duration::from_secs(9));
    let done = promote(&url(&server), &["--pause-source", "8"]);
    assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
    // Before the second pause ends.
    assert_equal(&mut source.connect(), &mut server.connect());
    assert_eq!(tool.wait_for_end().code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
    assert!(tool.stderr().contains("they are held back once more"), "{}", tool.stderr());
    assert!(tool.stdout().contains("digests were not compared: that takes longer"), "{}", tool.stdout());
    assert_eq!(proxy.applied(), 1);
    source.connect().run("CLIENT UNPAUSE");
    load.stop();
}

#[test]
fn an_import_that_is_refused_leaves_the_settings_as_they_were() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    let nobody = format!("redis://{}", wire::free_address());
    // It has keys; it has nothing, and the source cannot be reached.
    for (line, from) in [("SET mine 1", source.url()), ("PING", nobody)] {
        let dir = Dir::fresh();
        let file = dir.write("holdfast.toml", "# ours\nmaxmemory-policy = \"allkeys-lru\"\n");
        let server = Server::start(dir.path(), &["--config", &file]);
        let mut here = server.connect();
        here.run(line);
        let mut tool = Tool::follow(&from, &format!("redis://{}", server.address()), &[]);
        assert_eq!(tool.wait_for_end().code(), Some(1), "{}", tool.stderr());
        assert_eq!(here.run("CONFIG GET import-mode").to_string(), r#"["import-mode", "no"]"#);
        assert!(!dir.read("holdfast.toml").contains("import-mode = true"), "{}", dir.read("holdfast.toml"));
        assert!(!dir.read("holdfast.toml").contains("import-mode = \"yes\""), "{}", dir.read("holdfast.toml"));
        assert_eq!(here.run("EXISTS holdfast:import").to_string(), ":0");
        if line != "PING" {
            assert_eq!(dir.read("holdfast.toml"), "# ours\nmaxmemory-policy = \"allkeys-lru\"\n");
            assert_eq!(here.run("KEYS *").to_string(), "[\"mine\"]");
        }
    }
}

#[test]
fn libraries_of_the_target_are_not_removed_unasked() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    fill(&mut source.connect());
    let server = target(&[]);
    let mut here = server.connect();
    here.run_args(&["FUNCTION", "LOAD", "#!lua name=mine\nredis.register_function('f', function() return 1 end)"]);
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    assert_eq!(tool.wait_for_end().code(), Some(1), "{}", tool.stderr());
    assert!(tool.stderr().contains("keys or functions") && tool.stderr().contains("--replace"), "{}", tool.stderr());
    assert_eq!(here.run("FCALL f 0").to_string(), ":1");
    let mut tool = Tool::follow(&source.url(), &url(&server), &["--replace", "--promote"]);
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert!(here.run("FCALL f 0").is_error());
}

/// A transaction whose reply is lost is applied once; so is the last one, which ends the import.
#[test]
fn a_transaction_without_a_reply_is_applied_once() {
    let Some((source, server)) = start(Product::Redis, &[]) else { return };
    let (mut client, mut here) = (source.connect(), server.connect());
    fill(&mut client);
    let proxy = Proxy::to(server.address());
    let mut tool = Tool::follow(&source.url(), &through(&proxy), &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut here);
    for round in 1..=3 {
        proxy.lose_reply_to(b"counter");
        client.run("INCR counter");
        client.run("RPUSH list x");
        eventually("its reply is lost", || proxy.applied() == round);
        eventually("it has come", || here.run("LLEN list").to_string() == format!(":{round}"));
    }
    assert_eq!(here.run("GET counter").to_string(), "\"3\"");
    assert!(tool.stderr().contains("going on behind byte"), "{}", tool.stderr());
    proxy.lose_reply_to(b"EXEC");
    end(tool, Product::Redis, &mut client, &server);
    assert_eq!(proxy.applied(), 4);

    // Without digests, the only transaction behind the data is the one that ends the import.
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    fill(&mut source.connect());
    source.connect().run("ACL SETUSER mover on >secret ~* &* +@all -debug");
    let server = target(&[]);
    let proxy = Proxy::to(server.address());
    let from = format!("redis://mover:secret@{}", source.address);
    let mut tool = Tool::follow(&from, &through(&proxy), &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut server.connect());
    proxy.lose_reply_to(b"EXEC");
    tool.signal("USR1");
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert_eq!(proxy.applied(), 1);
    assert_eq!(server.connect().run("CONFIG GET import-mode").to_string(), r#"["import-mode", "no"]"#);
    assert_equal(&mut source.connect(), &mut server.connect());
}

/// The request is in the target: whoever follows next finds it, also if all data comes once more.
#[test]
fn a_request_for_the_promotion_outlives_the_tool() {
    for forgets in [false, true] {
        let Some((source, server)) = start(Product::Redis, &["--repl-backlog-size", "16kb"]) else { return };
        let (mut client, mut here) = (source.connect(), server.connect());
        fill(&mut client);
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("all data has come");
        wait_until_following(&mut here);
        tool.kill();
        let to = url(&server);
        let asker = thread::spawn(move || promote(&to, &["--pause-source", "30"]));
        eventually("it is asked for", || here.run("EXISTS holdfast:import:promote").to_string() == ":1");
        client.run("SET late 1");
        if forgets {
            let filler = "x".repeat(4000);
            for number in 0..100 {
                client.run(&format!("SET filler:{} {filler}", number % 3));
            }
        }
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        let done = asker.join().expect("the tool is started");
        assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
        assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
        assert_eq!(tool.stderr().contains("all data has come"), forgets, "{}", tool.stderr());
        assert!(tool.stderr().contains("the source holds writers back for 30 s"), "{}", tool.stderr());
        assert_equal(&mut client, &mut here);
    }
}
