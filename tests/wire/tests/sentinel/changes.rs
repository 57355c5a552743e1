//! Another server becomes the writer: every server of the log names it, and tells those who listen. None names a follower.

use wire::{Connection, Reply};

use crate::group::{Group, Member, agree, field, hand_over, master};
use crate::support::{eventually, ok};

fn listen(member: &Member) -> Connection {
    let mut listener = member.ask();
    listener.run("SUBSCRIBE +switch-master");
    listener
}

#[track_caller]
fn told(listener: &mut Connection) -> String {
    listener.read().items()[2].text().to_owned()
}

fn switch(from: &Member, to: &Member) -> String {
    format!("holdfast 127.0.0.1 {} 127.0.0.1 {}", from.port(), to.port())
}

#[test]
fn all_servers_name_the_writer_and_tell_when_it_hands_over() {
    let Some(group) = Group::fresh() else { return };
    let (writer, first, second) = (group.writer(&[]), group.follower(&[]), group.follower(&[]));
    let all = [&writer, &first, &second];
    agree(&all, &writer);
    for member in all {
        let mut asks = member.ask();
        eventually("it knows the other two", || {
            let (replicas, sentinels) =
                (asks.run("SENTINEL REPLICAS holdfast"), asks.run("SENTINEL SENTINELS holdfast"));
            let mut ports: Vec<String> = replicas.items().iter().map(|replica| field(replica, "port")).collect();
            let mut sentinel_ports: Vec<String> = sentinels.items().iter().map(|known| field(known, "port")).collect();
            let mut wanted = [first.port(), second.port()].map(|port| port.to_string());
            let others = all.iter().filter(|other| other.sentinel != member.sentinel);
            let mut others: Vec<String> = others.map(|other| other.sentinel.port().to_string()).collect();
            [&mut ports, &mut sentinel_ports, &mut others].into_iter().for_each(|list| list.sort());
            wanted.sort();
            ports == wanted && sentinel_ports == others
        });
        assert_eq!(
            asks.run("SENTINEL CKQUORUM holdfast").to_string(),
            "+OK 3 usable Sentinels. Quorum and failover authorization can be reached"
        );
    }
    // All know each by the same id.
    let id = second.ask().run("SENTINEL MYID").text().to_owned();
    assert!(writer.ask().run("SENTINEL SENTINELS holdfast").to_string().contains(&id));
    assert!(first.ask().run("SENTINEL SENTINELS holdfast").to_string().contains(&id));
    let mut listeners = all.map(listen);
    hand_over(&writer, &first);
    agree(&all, &first);
    listeners.iter_mut().for_each(|listener| assert_eq!(told(listener), switch(&writer, &first)));
    // Asked of a follower, too.
    eventually("the writer knows of both", || first.connect().run("ROLE").items()[2].items().len() == 2);
    ok(&mut second.ask(), "SENTINEL FAILOVER holdfast");
    let mut next = None;
    eventually("another one writes", || {
        next = [&writer, &second].into_iter().find(|member| member.role() == "master");
        next.is_some()
    });
    let next = next.expect("it was found");
    agree(&all, next);
    listeners.iter_mut().for_each(|listener| assert_eq!(told(listener), switch(&first, next)));
}

/// Clients of a writer that hands over are sent away: pools keep connections that answer, whatever the answer is.
#[test]
fn clients_of_the_old_writer_are_sent_away() {
    let Some((_group, writer, follower)) = Group::with_pair() else { return };
    let (mut client, mut listener, mut at_follower) = (writer.connect(), writer.connect(), follower.connect());
    ok(&mut client, "SET a 1");
    listener.run("SUBSCRIBE news");
    eventually("the writer knows of it", || writer.connect().run("ROLE").items()[2].items().len() == 1);
    ok(&mut at_follower, "REPLICAOF NO ONE");
    assert_eq!((client.read(), listener.read()), (Reply::Closed, Reply::Closed));
    ok(&mut at_follower, "SET a 2");
    eventually("they may come back", || writer.connect().run("GET a") == Reply::Bulk(b"2".to_vec()));
}

/// Whoever is named while writers change is the writer, or was until then.
#[test]
fn no_follower_names_itself() {
    let Some((_group, mut writer, mut follower)) = Group::with_pair() else { return };
    for _ in 0..5 {
        eventually("the writer knows of it", || writer.connect().run("ROLE").items()[2].items().len() == 1);
        let (mut of_old, mut of_new, mut at_new) = (writer.ask(), follower.ask(), follower.connect());
        ok(&mut writer.connect(), "FAILOVER");
        loop {
            let named = (master(&mut of_old), master(&mut of_new));
            if [named.0, named.1].contains(&Some(follower.port())) {
                assert_eq!(at_new.run("ROLE").items()[0].text(), "master");
            }
            if named == (Some(follower.port()), Some(follower.port())) {
                break;
            }
        }
        std::mem::swap(&mut writer, &mut follower);
    }
}

#[test]
fn a_dead_writer_is_named_until_another_one_writes() {
    let Some((_group, writer, follower)) = Group::with_pair() else { return };
    let (mut asks, mut listener) = (follower.ask(), follower.ask());
    listener.run("PSUBSCRIBE *");
    let old = writer.port();
    writer.server.kill();
    let flags = |asks: &mut Connection| field(&asks.run("SENTINEL MASTER holdfast"), "flags");
    eventually("it counts as down", || flags(&mut asks) == "s_down,master,disconnected");
    assert_eq!(master(&mut asks), Some(old), "there is no other one");
    let request = format!("SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {old} 0 *");
    assert_eq!(asks.run(&request).to_string(), "[:1, \"*\", :0]");
    assert!(asks.run("INFO sentinel").text().contains(",status=sdown,"));
    let quorum = asks.run("SENTINEL CKQUORUM holdfast").to_string();
    assert!(quorum.starts_with("-NOQUORUM 1 usable Sentinels. Not enough"), "{quorum}");
    let refused = asks.run("SENTINEL FAILOVER holdfast").to_string();
    assert!(refused.starts_with("-ERR the writer does not answer"), "{refused}");
    ok(&mut follower.connect(), "REPLICAOF NO ONE");
    assert_eq!(master(&mut asks), Some(follower.port()));
    assert_eq!(flags(&mut asks), "master");
    let mut heard = Vec::new();
    while heard.last().is_none_or(|(channel, _)| channel != "+slave") {
        let message = listener.read();
        heard.push((message.items()[2].text().to_owned(), message.items()[3].text().to_owned()));
    }
    let new = follower.port();
    let expected = [
        ("+sdown", format!("master holdfast 127.0.0.1 {old}")),
        ("+switch-master", format!("holdfast 127.0.0.1 {old} 127.0.0.1 {new}")),
        ("+slave", format!("slave 127.0.0.1:{old} 127.0.0.1 {old} @ holdfast 127.0.0.1 {new}")),
    ];
    assert_eq!(heard, expected.map(|(channel, payload)| (channel.to_owned(), payload)));
}

/// A writer that was stopped, and wakes when another one writes.
#[test]
fn a_fenced_writer_names_the_other_one() {
    let Some((_group, writer, follower)) = Group::with_pair() else { return };
    let mut listener = listen(&writer);
    writer.server.signal("STOP");
    ok(&mut follower.connect(), "REPLICAOF NO ONE");
    assert_eq!(follower.master(), Some(follower.port()));
    writer.server.signal("CONT");
    assert_eq!(told(&mut listener), switch(&writer, &follower));
    agree(&[&writer, &follower], &follower);
}

#[test]
fn a_server_that_loads_does_not_claim_to_be_the_writer() {
    let Some((group, writer)) = Group::with_writer(&["--enable-debug-command", "yes"]) else { return };
    ok(&mut writer.connect(), "DEBUG POPULATE 2000");
    assert!(!writer.connect().run("SAVE").is_error());
    writer.server.kill();
    let sentinel = wire::free_address();
    let port = sentinel.port().to_string();
    // It takes two seconds to load.
    let server = group.home.launch(wire::free_address(), &["--sentinel-port", &port, "--key-load-delay", "1000"]);
    let writer = Member { server, sentinel };
    let mut asks = writer.ask();
    let mut was_null = false;
    let mut at_server = crate::group::connect(writer.server.address());
    eventually("it is the writer", || {
        // In this order: what it says last, it has said before.
        let (masters, role) = (asks.run("SENTINEL MASTERS"), asks.run("ROLE").to_string());
        let named = master(&mut asks);
        was_null |= named.is_none();
        if named.is_some() {
            assert_eq!(at_server.run("SET a 1").to_string(), "+OK", "it accepts writes when it says so");
        } else {
            assert_eq!((masters, role.as_str()), (Reply::Array(Vec::new()), "[\"sentinel\", []]"));
        }
        named.is_some()
    });
    assert!(was_null, "it was asked while it was loading");
}

#[test]
fn servers_are_named_as_they_announce_themselves() {
    let Some((group, writer)) =
        Group::with_writer(&["--replica-announce-ip", "db-1.example", "--replica-announce-port", "7001"])
    else {
        return;
    };
    let follower = group.follower(&["--replica-announce-ip", "db-2.example", "--replica-announce-port", "7002"]);
    for member in [&writer, &follower] {
        let mut asks = member.ask();
        eventually("it names both", || {
            let replicas = asks.run("SENTINEL REPLICAS holdfast");
            asks.run("SENTINEL GET-MASTER-ADDR-BY-NAME holdfast").to_string() == "[\"db-1.example\", \"7001\"]"
                && replicas
                    .to_string()
                    .contains("\"name\", \"db-2.example:7002\", \"ip\", \"db-2.example\", \"port\", \"7002\"")
        });
    }
    eventually("ROLE has it too", || writer.connect().run("ROLE").to_string().contains("\"db-2.example\", \"7002\""));
    ok(&mut follower.connect(), "CONFIG SET replica-announce-ip db-3.example");
    let mut asks = writer.ask();
    eventually("the writer is told", || {
        asks.run("SENTINEL REPLICAS holdfast").to_string().contains("db-3.example:7002")
    });
    ok(&mut writer.connect(), "FAILOVER TO db-3.example 7002");
    eventually("it hands over", || follower.role() == "master");
    let refused = writer.connect().run("CONFIG SET replica-announce-ip \"a b\"").to_string();
    assert!(refused.contains("has no spaces"), "{refused}");
}
