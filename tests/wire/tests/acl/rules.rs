//! Rules: what they allow, how they are shown, and which are refused.

use crate::support::{Own, allowed, denied, ok};

#[test]
fn rules_are_shown_as_they_were_given() {
    let Some(mut own) = Own::start(&[]) else { return };
    let admin = &mut own.admin;
    ok(admin, "ACL SETUSER bob on >pw ~a:* %R~r:* %W~w:* &ch* +@all -@dangerous +config|get -get \"(~x +set)\"");
    let hash = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    let expected = format!(
        "user bob on sanitize-payload #{hash} ~a:* %R~r:* %W~w:* resetchannels &ch* +@all -@dangerous +config|get -get \
         (~x resetchannels -@all +set)"
    );
    let list = admin.run("ACL LIST");
    let lines: Vec<&str> = list.items().iter().map(|line| line.text()).collect();
    assert_eq!(lines, [expected.as_str(), "user default on nopass sanitize-payload ~* &* +@all"]);
    // What is listed makes the same user.
    let rules = expected.strip_prefix("user bob ").expect("it is bob's").to_owned();
    ok(admin, &format!("ACL SETUSER twin {}", rules.replace("(", "\"(").replace(")", ")\"")));
    assert_eq!(admin.run("ACL GETUSER bob").to_string(), admin.run("ACL GETUSER twin").to_string());
    // A rule replaces those that it makes useless.
    for (rules, shown) in [
        ("+@all -@string +incr -debug +debug|digest", "+@all -@string +incr -debug +debug|digest"),
        ("-@all +@hash -@slow +hget -@hash", "-@all -@slow +hget -@hash"),
        ("+config|get +config", "-@all +config"),
        ("+config -config|set", "-@all +config -config|set"),
        ("+GET -Get +get", "-@all +get"),
        ("+@read allcommands", "+@all"),
        ("+@all -@all +get", "-@all +get"),
    ] {
        ok(admin, &format!("ACL SETUSER u reset {rules}"));
        assert_eq!(admin.run("ACL GETUSER u").items()[5].text(), shown, "{rules}");
    }
    assert_eq!(admin.run("ACL USERS").items().len(), 4);
    assert_eq!(admin.run("ACL DELUSER u twin nobody").integer(), 2);
    assert_eq!(admin.run("ACL DELUSER default").to_string(), "-ERR The 'default' user cannot be removed");
}

/// As in Redis, a rule without a pattern is one with the empty pattern.
#[test]
fn rights_without_a_pattern_reach_the_key_without_a_name() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "+@all %RW") else { return };
    assert_eq!(own.admin.run("ACL GETUSER bob").items()[7].text(), "~");
    denied(&mut bob, "SET x 5");
    allowed(&mut bob, "SET \"\" 5");
    let mut bob = own.user("bob", "+@all %R");
    denied(&mut bob, "SET \"\" 5");
    allowed(&mut bob, "GET \"\"");
    assert!(own.admin.run("ACL SETUSER bob %").to_string().ends_with("modifier '%': Syntax error"));
    let reply = own.admin.run("ACL cat hash more").to_string();
    assert_eq!(reply, "-ERR unknown subcommand or wrong number of arguments for 'cat'. Try ACL HELP.");
}

#[test]
fn wrong_rules_change_nothing() {
    let Some(mut own) = Own::start(&[]) else { return };
    let admin = &mut own.admin;
    ok(admin, "ACL SETUSER bob on ~a +get");
    let before = admin.run("ACL LIST").to_string();
    for (rule, why) in [
        ("+nosuch", "Unknown command or category name in ACL"),
        ("+@nosuch", "Unknown command or category name in ACL"),
        ("+config|nosuch", "Unknown command or category name in ACL"),
        ("+config|get|x", "Allowing first-arg of a subcommand is not supported"),
        ("+debug|", "Syntax error"),
        ("foo", "Syntax error"),
        ("%X~b", "Syntax error"),
        ("%~b", "Syntax error"),
        ("\"+select|1 2\"", "Syntax error"),
        // In a file, the selector would end at the first parenthesis.
        ("\"(~x) allkeys +@all)\"", "Syntax error"),
        ("<nope", "The password you are trying to remove from the user does not exist"),
        ("#abc", "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"),
    ] {
        let reply = admin.run(&format!("ACL SETUSER bob off ~b {rule}")).to_string();
        assert_eq!(reply, format!("-ERR Error in ACL SETUSER modifier '{}': {why}", rule.trim_matches('"')));
    }
    assert!(admin.run("ACL SETUSER bob ~* ~b").to_string().contains("Adding a pattern after the * pattern"));
    assert!(admin.run("ACL SETUSER bob &* &b").to_string().contains("'allchannels' flag"));
    assert_eq!(
        admin.run("ACL SETUSER bob (~a").to_string(),
        "-ERR Unmatched parenthesis in acl selector starting at '(~a'."
    );
    assert_eq!(
        admin.run("ACL SETUSER \"b ob\" on").to_string(),
        "-ERR Usernames can't contain spaces or null characters"
    );
    assert_eq!(admin.run("ACL LIST").to_string(), before);
}

#[test]
fn commands_keys_and_channels_are_allowed_by_rules() {
    let Some(mut own) = Own::start(&[]) else { return };
    let mut bob = own
        .user("bob", "~a:* %R~r:* %W~w:* &ch* +@all -@dangerous +config|get -getdel +select|0 -select \"(~x +set)\"");
    allowed(&mut bob, "SET a:1 v");
    assert_eq!(bob.run("SET b:1 v").to_string(), "-NOPERM No permissions to access a key");
    assert_eq!(bob.run("GETDEL a:1").to_string(), "-NOPERM User bob has no permissions to run the 'getdel' command");
    denied(&mut bob, "SET r:1 v");
    allowed(&mut bob, "GET r:1");
    allowed(&mut bob, "SET w:1 v");
    denied(&mut bob, "GET w:1");
    denied(&mut bob, "SET w:1 v GET");
    denied(&mut bob, "COPY w:1 a:1");
    allowed(&mut bob, "COPY r:1 w:1");
    allowed(&mut bob, "SET x v");
    denied(&mut bob, "GET x");
    denied(&mut bob, "MSET a:1 v b:1 v");
    denied(&mut bob, "FLUSHALL");
    denied(&mut bob, "CONFIG SET maxmemory 1");
    allowed(&mut bob, "CONFIG GET maxmemory");
    assert_eq!(bob.run("PUBLISH zz 1").to_string(), "-NOPERM No permissions to access a channel");
    allowed(&mut bob, "PUBLISH ch1 1");
    denied(&mut bob, "PSUBSCRIBE *");
    denied(&mut bob, "SSUBSCRIBE zz");
    denied(&mut bob, "SORT a:l BY nosuch");
    denied(&mut bob, "ACL LIST");
    allowed(&mut bob, "ACL WHOAMI");
    own.set("bob", "~* +select|0 +get");
    allowed(&mut bob, "SELECT 0");
    denied(&mut bob, "SELECT 1");
    // Of a user that is off, connections stay, and no new ones are made.
    ok(&mut own.admin, "ACL SETUSER bob off");
    allowed(&mut bob, "GET a");
    assert!(own.server.connect().run("AUTH bob pw").to_string().starts_with("-WRONGPASS"));
}

#[test]
fn a_dry_run_says_what_would_be_refused() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("bob", "~a:* &ch* +@all -get");
    for (line, reply) in [
        ("set a:1 2", "+OK"),
        ("get a:1", "\"User bob has no permissions to run the 'get' command\""),
        ("set b:1 2", "\"User bob has no permissions to access the 'b:1' key\""),
        ("publish zz 1", "\"User bob has no permissions to access the 'zz' channel\""),
        ("nosuch", "-ERR Command 'nosuch' not found"),
        ("set a", "-ERR wrong number of arguments for 'set' command"),
    ] {
        assert_eq!(own.admin.run(&format!("ACL DRYRUN bob {line}")).to_string(), reply, "{line}");
    }
    assert_eq!(own.admin.run("ACL DRYRUN nobody get x").to_string(), "-ERR User 'nobody' not found");
}

#[test]
fn categories_have_our_own_commands_too() {
    let Some(mut own) = Own::start(&[]) else { return };
    let admin = &mut own.admin;
    for (category, command) in [
        ("cell", "cell.cas"),
        ("run", "run.append"),
        ("register", "reg.put"),
        ("session", "session.call"),
        ("record", "claim"),
    ] {
        let listed = admin.run(&format!("ACL CAT {category}"));
        assert!(listed.items().iter().any(|name| name.text() == command), "{category}: {listed}");
    }
    assert_eq!(admin.run("ACL CAT nosuch").to_string(), "-ERR Unknown category 'nosuch'");
    // A worker that appends to runs, and removes none.
    let mut worker = own.user("worker", "~run:* +@run +@connection");
    allowed(&mut worker, "RUN.APPEND run:1 k RunStarted {}");
    allowed(&mut worker, "RUN.EVENTS run:1");
    denied(&mut worker, "DEL run:1");
    denied(&mut worker, "RUN.APPEND other:1 k RunStarted {}");
    denied(&mut worker, "EXPIRE run:1 1");
}
