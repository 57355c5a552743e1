//! The number of arguments of every command, counted as Redis does: the command's name is one of them.

use wire::{Connection, Product, Reply, Session};

/// Commands that Redis 8.0 does not have, and how many arguments they take; below 0, at least so many. A test of `engine`
/// compares the others with Redis.
const NOT_OF_REDIS_8_0: &[(&str, i64)] = &[
    ("cell.cas", -4),
    ("cell.del", -2),
    ("cell.drop", 2),
    ("cell.fork", 3),
    ("cell.get", 2),
    ("cell.getv", -2),
    ("cell.history", -2),
    ("cell.init", -3),
    ("cell.list", -1),
    ("cell.mget", -2),
    ("cell.set", -3),
    ("claim", -5),
    ("delex", -2),
    ("delifeq", 3),
    ("digest", 2),
    ("hcas", -4),
    ("hfind", -2),
    ("hput", -6),
    ("idx.create", -6),
    ("idx.drop", 2),
    ("idx.groups", -2),
    ("idx.info", 2),
    ("idx.limit", -2),
    ("idx.list", 1),
    ("idx.range", -4),
    ("increx", -2),
    ("msetex", -4),
    ("reg.get", 2),
    ("reg.incrby", -4),
    ("reg.mget", -2),
    ("reg.put", -4),
    ("reg.restore", -2),
    ("reg.seal", 3),
    ("reg.snapshot", -1),
    ("run.append", -5),
    ("run.events", -2),
    ("run.info", 2),
    ("run.list", -1),
    ("run.project", -2),
    ("run.snapshot", 2),
    ("session.ack", 3),
    ("session.alive", 2),
    ("session.attach", 2),
    ("session.call", -6),
    ("session.close", 2),
    ("session.detach", 2),
    ("session.hasretry", 2),
    ("session.hook", -1),
    ("session.info", 2),
    ("session.list", -1),
    ("session.open", -1),
    ("session.pending", -2),
    ("session.push", 3),
    ("session.retry", -2),
    ("sweep", -7),
    ("txn.begin", -1),
    ("txn.commit", 1),
    ("txn.rollback", 1),
];

#[test]
fn command_tells_how_many_arguments_our_own_take() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return wire::skip("only Holdfast has these commands");
    }
    let mut connection = session.connect();
    for (name, arity) in NOT_OF_REDIS_8_0 {
        let info = connection.run(&format!("COMMAND INFO {name}"));
        assert_eq!(info.items()[0].items()[1].integer(), *arity, "{name}");
    }
}

#[test]
fn too_few_and_too_many_arguments_are_refused() {
    let session = Session::start();
    let mut connection = session.connect();
    for command in connection.run("COMMAND").items() {
        refuse(&mut connection, command);
        // Redis tells of subcommands in the tenth place.
        for subcommand in command.items()[9].items() {
            refuse(&mut connection, subcommand);
        }
    }
    assert_eq!(connection.run("DBSIZE").integer(), 0);
}

/// Sends a command with every wrong number of arguments, as far as it has any.
fn refuse(connection: &mut Connection, info: &Reply) {
    let (name, arity) = (info.items()[0].text(), info.items()[1].integer());
    // An EXEC that is wrong ends the transaction, and says so: `transactions` has the test.
    if name == "exec" {
        return;
    }
    let expected = format!("-ERR wrong number of arguments for '{name}' command");
    let args = arity.unsigned_abs() as usize;
    let wrong = if arity > 0 { vec![args - 1, args + 1, args + 5] } else { vec![args - 1] };
    // The name is written in small letters in the error however the client wrote it.
    for spelling in [name.to_owned(), name.to_uppercase()] {
        let words: Vec<&str> = spelling.split('|').collect();
        for args in wrong.iter().filter(|args| **args >= words.len()) {
            let mut request = words.clone();
            request.resize(*args, "x");
            let error = connection.run_args(&request).to_string();
            // Those of our own commands go on with the usage.
            let usage = error.strip_prefix(&expected).unwrap_or_else(|| panic!("{request:?}: {error}"));
            let is_usage = usage.starts_with(&format!(". Usage: {}", name.replace('|', " ").to_uppercase()));
            assert_eq!(is_usage, is_own(name), "{request:?}: {error}");
            assert!(is_usage || usage.is_empty(), "{request:?}: {error}");
        }
    }
}

fn is_own(name: &str) -> bool {
    name.contains('.') || ["claim", "client|durability", "hcas", "hfind", "hput", "sweep"].contains(&name)
}
