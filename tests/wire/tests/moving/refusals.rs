//! What the tool does not do, and what it says about what it leaves out.

use crate::moves::{start, target, url};
use crate::servers::{Product, Source};
use crate::tool::{Tool, promote, wait_until_following};

#[test]
fn keys_of_the_target_are_not_removed_unasked() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    source.connect().run("SET a 1");
    let server = target(&[]);
    server.connect().run("SET mine 1");
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    assert_eq!(tool.wait_for_end().code(), Some(1));
    assert!(tool.stderr().contains("--replace"), "{}", tool.stderr());
    assert_eq!(server.connect().run("GET mine").to_string(), "\"1\"");
    let mut tool = Tool::follow(&source.url(), &url(&server), &["--replace", "--promote"]);
    assert_eq!(tool.wait_for_end().code(), Some(0), "{}", tool.stderr());
    assert_eq!(server.connect().run("KEYS *").to_string(), "[\"a\"]");
    // After that it is a server like any other, which is not replaced by the same command.
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    assert_eq!(tool.wait_for_end().code(), Some(1));
    let done = promote(&url(&server), &[]);
    assert_eq!(done.status.code(), Some(1), "nothing follows");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("too early, or done already"), "{said}");
}

#[test]
fn one_process_follows_into_a_target() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    source.connect().run("SET a 1");
    let server = target(&[]);
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    let mut other = Tool::follow(&source.url(), &url(&server), &[]);
    assert_eq!(other.wait_for_end().code(), Some(1));
    assert!(other.stderr().contains("another process follows"), "{}", other.stderr());
    // A write to the position by somebody else is noticed before anything is applied to it.
    server.connect().run("HSET holdfast:import offset 1");
    source.connect().run("INCR a");
    assert_eq!(tool.wait_for_end().code(), Some(1));
    assert!(tool.stderr().contains("another process has changed the position"), "{}", tool.stderr());
    assert_eq!(server.connect().run("GET a").to_string(), "\"1\"");
}

#[test]
fn what_is_left_out_is_said_and_is_exit_code_3() {
    let Some((source, server)) = start(Product::Redis, &["--databases", "32"]) else { return };
    let mut client = source.connect();
    client.run("SET a 1");
    client.run("SELECT 20");
    client.run("SET far 1");
    let mut tool = Tool::follow(&source.url(), &url(&server), &[]);
    tool.wait_to_say("all data has come");
    wait_until_following(&mut server.connect());
    client.run("SET far 2");
    client.run("SELECT 1");
    client.run("SET near 1");
    tool.signal("USR1");
    assert_eq!(tool.wait_for_end().code(), Some(3), "{}", tool.stderr());
    assert!(
        tool.stdout().contains("2 records of databases that do not exist here, the first of them 20"),
        "{}",
        tool.stdout()
    );
    let mut here = server.connect();
    assert_eq!(here.run("DBSIZE").to_string(), ":1");
    here.run("SELECT 1");
    assert_eq!(here.run("KEYS *").to_string(), "[\"near\"]");
}

#[test]
fn only_a_holdfast_keeps_a_position() {
    let Some(source) = Source::start(Product::Redis, &[]) else { return };
    let mut tool = Tool::follow(&source.url(), &source.url(), &[]);
    assert_eq!(tool.wait_for_end().code(), Some(1));
    assert!(tool.stderr().contains("is no Holdfast"), "{}", tool.stderr());
    let gone = wire::free_address();
    let mut tool = Tool::follow(&source.url(), &format!("redis://{gone}"), &[]);
    assert_eq!(tool.wait_for_end().code(), Some(1), "a mistyped address is said at once");
}
