//! PING, ECHO, SELECT, QUIT, HELLO and RESET.

use wire::{Session, check};

#[test]
fn ping_and_echo() {
    check(
        r#"
        PING => +PONG
        > ping hello
        "hello"
        PING "" => ""
        PING a b => -ERR wrong number of arguments for 'ping' command
        ECHO "a\x00b\r\n" => "a\x00b\r\n"
        ECHO => -ERR wrong number of arguments for 'echo' command
        "#,
    );
}

#[test]
fn each_database_is_its_own() {
    check(
        "
        > SET a 0
        +OK
        > SELECT 1
        +OK
        > GET a
        (nil)
        > SET a 1
        +OK
        2> GET a
        \"0\"
        > SELECT 0
        +OK
        > GET a
        \"0\"
        > SELECT 15
        +OK
        > SELECT 16
        -ERR DB index is out of range
        > SELECT -1
        -ERR DB index is out of range
        > SELECT x
        -ERR value is not an integer or out of range
        > SELECT 2147483648
        -ERR value is out of range, value must between -2147483648 and 2147483647
        > SELECT
        -ERR wrong number of arguments for 'select' command
        ",
    );
}

#[test]
fn quit_answers_what_came_before_and_nothing_after() {
    check(
        "
        > SET a 1
        > QUIT
        > SET a 2
        +OK
        +OK
        (closed)
        2> GET a
        \"1\"
        2> QUIT whatever
        +OK
        (closed)
        ",
    );
}

#[test]
fn hello_describes_the_server_in_the_protocol_it_chose() {
    check(
        r#"
        > HELLO
        ["server", "redis", "version", ~"*.*.*", "proto", :2, "id", :1.., "mode", "standalone", "role", "master",
         "modules", [...]]
        > HELLO 3
        {"server" => "redis", "version" => ~"*.*.*", "proto" => :3, "id" => :1.., "mode" => "standalone",
         "role" => "master", "modules" => [...]}
        > HELLO
        {"server" => "redis", "version" => *, "proto" => :3, "id" => *, "mode" => *, "role" => *, "modules" => *}
        > GET nosuch
        _
        > HELLO 2
        ["server", "redis", ...]
        > GET nosuch
        (nil)
        "#,
    );
}

#[test]
fn hello_takes_a_name_and_credentials() {
    check(
        r#"
        > HELLO 3 SETNAME jobs
        {"server" => *, "version" => *, "proto" => :3, "id" => *, "mode" => *, "role" => *, "modules" => *}
        > CLIENT GETNAME
        "jobs"
        // A user without a password takes any.
        > HELLO 2 AUTH default whatever SETNAME ""
        ["server", ...]
        > CLIENT GETNAME
        (nil)
        > hello 2 setname a auth default x setname b
        ["server", ...]
        > CLIENT GETNAME
        "b"
        "#,
    );
}

#[test]
fn a_refused_hello_changes_nothing() {
    // Redis 7.0 obeys each option as it reads it.
    check(
        r#"
        # needs redis >= 7.2
        CLIENT SETNAME before => +OK
        HELLO 1 => -NOPROTO unsupported protocol version
        HELLO 4 SETNAME after => -NOPROTO unsupported protocol version
        HELLO three => -ERR Protocol version is not an integer or out of range
        HELLO 3 SETNAME => -ERR Syntax error in HELLO option 'SETNAME'
        HELLO 3 AUTH default => -ERR Syntax error in HELLO option 'AUTH'
        HELLO 3 SETNAME after nonsense => -ERR Syntax error in HELLO option 'nonsense'
        HELLO 3 SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.
        HELLO 3 AUTH nobody x SETNAME after => -WRONGPASS invalid username-password pair or user is disabled.
        CLIENT GETNAME => "before"
        GET nosuch => (nil)
        "#,
    );
}

#[test]
fn reset_makes_a_connection_new() {
    check(
        r#"
        > SELECT 1
        +OK
        > SET a 1
        +OK
        > CLIENT SETNAME jobs
        +OK
        > HELLO 3
        {"server" => *, "version" => *, "proto" => :3, "id" => *, "mode" => *, "role" => *, "modules" => *}
        > RESET
        +RESET
        > GET a
        (nil)
        > CLIENT GETNAME
        (nil)
        > RESET now
        -ERR wrong number of arguments for 'reset' command
        > CLIENT INFO
        ~"*name= *flags=N db=0 *resp=2*"
        "#,
    );
}

#[test]
fn reset_forgets_modes_and_keeps_the_library() {
    check(
        r#"
        # needs redis >= 7.2
        > CLIENT SETINFO LIB-NAME worker
        +OK
        > CLIENT NO-EVICT ON
        +OK
        > CLIENT NO-TOUCH ON
        +OK
        > CLIENT INFO
        ~"*flags=eT *"
        > RESET
        +RESET
        > CLIENT INFO
        ~"*flags=N *lib-name=worker lib-ver=*"
        "#,
    );
}

#[test]
fn an_unknown_command_is_named_with_its_arguments() {
    check(
        r#"
        NOSUCH => -"ERR unknown command 'NOSUCH', with args beginning with: "
        NoSuch "a b" c => -"ERR unknown command 'NoSuch', with args beginning with: 'a b' 'c' "
        > "NO\r\nSUCH" "a\nb"
        -"ERR unknown command 'NO  SUCH', with args beginning with: 'a b' "
        > ""
        -"ERR unknown command '', with args beginning with: "
        CLIENT nosuch => -ERR unknown subcommand 'nosuch'. Try CLIENT HELP.
        COMMAND nosuch x => -ERR unknown subcommand 'nosuch'. Try COMMAND HELP.
        > client
        -ERR wrong number of arguments for 'client' command
        "#,
    );
}

#[test]
fn long_unknown_commands_are_cut() {
    let session = Session::start();
    let mut connection = session.connect();
    let (name, arg) = ("n".repeat(1000), "a".repeat(100));
    let error = connection.run_args(&[&name, &arg, &arg, &arg]).to_string();
    let expected = format!(
        "-\"ERR unknown command '{}', with args beginning with: '{arg}' '{}' \"",
        &name[..128],
        &arg[..128 - arg.len() - 3]
    );
    assert_eq!(error, expected);
}
