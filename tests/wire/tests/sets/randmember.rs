//! How the choices of SRANDMEMBER are spread. The rest is in `collections`.

use std::collections::BTreeSet;

use wire::{Connection, Reply, Session};

/// No member is picked far more or far less often than others. Of 20,000 picks among 10 members each gets about 2,000, with a
/// standard deviation of 42; Redis's own choice among the members of a table is uneven by a factor of less than
/// three (it picks a chain first). The bounds of 200 and 8,000 are dozens of deviations away from either.
#[test]
fn picks_are_spread() {
    let session = Session::start();
    let mut connection = session.connect();
    for names in ["", "m"] {
        let members = fill(&mut connection, names, 10);
        for command in ["SRANDMEMBER s -20000", "SRANDMEMBER s"] {
            let picks: Vec<Reply> = match command {
                "SRANDMEMBER s" => connection.pipeline(&vec![command; 20_000]),
                _ => connection.run(command).items().to_vec(),
            };
            for member in &members {
                let times = picks.iter().filter(|pick| pick.text() == member).count();
                assert!((200..8000).contains(&times), "{command} picked {member} {times} times of 20000");
            }
        }
    }
}

/// A set that has shrunk from very many members to a few still finds these.
#[test]
fn a_set_that_has_shrunk() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, "m", 20_000);
    let gone: Vec<&[u8]> = members.iter().skip(3).map(|member| member.as_bytes()).collect();
    assert_eq!(connection.run_with("SREM s", &gone).integer(), 19_997);
    let left: BTreeSet<String> = members.iter().take(3).cloned().collect();
    assert_eq!(texts(&connection.run("SRANDMEMBER s 5")), left);
    assert!(left.contains(connection.run("SRANDMEMBER s").text()));
    assert!(texts(&connection.run("SRANDMEMBER s -10")).is_subset(&left));
    assert_eq!(texts(&connection.run("SPOP s 2")).len(), 2);
    assert_eq!(connection.run("SCARD s").integer(), 1);
}

/// Makes `s` a set of this many members: these letters and a number.
fn fill(connection: &mut Connection, letters: &str, len: usize) -> BTreeSet<String> {
    let members: BTreeSet<String> = (0..len).map(|i| format!("{letters}{i}")).collect();
    connection.run("DEL s");
    connection.run_with("SADD s", &members.iter().map(String::as_bytes).collect::<Vec<_>>());
    members
}

fn texts(reply: &Reply) -> BTreeSet<String> {
    reply.items().iter().map(|item| item.text().to_owned()).collect()
}
