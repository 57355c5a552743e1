//! kill -9 of the source, of the target and of the tool, under load: nothing is lost, nothing is applied twice.

use wire::Server;

use crate::compare::assert_equal;
use crate::load::Load;
use crate::moves::{assert_digests, end, start, target, url};
use crate::servers::{Product, Source};
use crate::support::{Dir, eventually};
use crate::tool::{Tool, promote, wait_until_following};

#[test]
fn the_tool_is_killed() {
    for product in [Product::Redis, Product::Valkey] {
        let Some((source, server)) = start(product, &[]) else { continue };
        let load = Load::start(source.address, product == Product::Valkey);
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        // Somewhere, the first time perhaps within the load.
        load.wait_for(300);
        for _ in 0..5 {
            tool.kill();
            tool = Tool::follow(&source.url(), &url(&server), &[]);
            load.wait_for(400);
            wait_until_following(&mut server.connect());
        }
        load.stop();
        end(tool, product, &mut source.connect(), &server);
    }
}

#[test]
fn the_target_is_killed() {
    for product in [Product::Redis, Product::Valkey] {
        let Some(source) = Source::start(product, &[]) else { continue };
        let dir = Dir::fresh();
        let args = ["--enable-debug-command", "yes", "--import-mode", "yes"];
        let mut server = Server::start(dir.path(), &args);
        let address = server.address();
        let to = format!("redis://{address}");
        let load = Load::start(source.address, product == Product::Valkey);
        let mut tool = Tool::follow(&source.url(), &to, &[]);
        tool.wait_to_say("all data has come");
        for _ in 0..3 {
            load.wait_for(400);
            server.kill();
            server = Server::launch(address, dir.path(), |command| {
                command.args(args);
            });
            eventually("it answers", || {
                wire::Connection::open(address)
                    .is_ok_and(|mut client| client.run("HGET holdfast:import state").to_string() == "\"following\"")
            });
        }
        load.wait_for(200);
        tool.wait_to_say("going on behind byte");
        load.stop();
        let done = promote(&to, &[]);
        assert!(done.status.success(), "{}", tool.stderr());
        assert_eq!(tool.wait_for_end().code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
        assert!(!tool.stderr().contains("comes again"), "the position was good: {}", tool.stderr());
        assert_digests(product, &tool);
        assert_equal(&mut source.connect(), &mut server.connect());
        drop(server);
    }
}

/// A source that was killed begins another history: everything comes again, and what it has lost goes.
#[test]
fn the_source_is_killed() {
    for product in [Product::Redis, Product::Valkey] {
        let Some(mut source) = Source::start(product, &["--appendonly", "yes"]) else { continue };
        let server = target(&[]);
        let load = Load::start(source.address, product == Product::Valkey);
        let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
        tool.wait_to_say("all data has come");
        load.wait_for(500);
        source.crash();
        load.stop();
        tool.wait_to_say("has not kept what came since");
        let load = Load::start(source.address, product == Product::Valkey);
        load.wait_for(400);
        load.stop();
        end(tool, product, &mut source.connect(), &server);
    }
}

/// A target that was started without `import-mode` has removed keys whose new deadline had not come yet: everything comes again.
#[test]
fn a_target_that_has_expired_keys_by_itself_gets_everything_again() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    let dir = Dir::fresh();
    let args = ["--enable-debug-command", "yes"];
    let mut server = Server::start(dir.path(), &args);
    let address = server.address();
    let to = format!("redis://{address}");
    let mut client = source.connect();
    for number in 0..30 {
        client.run(&format!("SET kept:{number} 1 PX 1500"));
    }
    let mut tool = Tool::follow(&source.url(), &to, &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut server.connect());
    tool.kill();
    server.kill();
    for number in 0..30 {
        client.run(&format!("PEXPIRE kept:{number} 100000"));
    }
    server = Server::launch(address, dir.path(), |command| {
        command.args(args);
    });
    eventually("keys expire in the target", || {
        wire::Connection::open(address).is_ok_and(|mut client| client.run("DBSIZE").to_string() == ":1")
    });
    let mut tool = Tool::follow(&source.url(), &to, &["--promote"]);
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert!(tool.stderr().contains("started without import-mode"), "{}", tool.stderr());
    assert_equal(&mut client, &mut server.connect());
}
