//! DEBUG. Signatures are in `digest`.

use std::thread;
use std::time::Duration;
use wire::{Reply, Session, check};

#[test]
fn sleep_stops_everybody() {
    let session = Session::start();
    let (mut sleeper, mut other) = (session.connect(), session.connect());
    other.run("SET a 1");
    sleeper.queue_line("DEBUG SLEEP 0.3");
    sleeper.flush();
    thread::sleep(Duration::from_millis(50));
    // The reply to GET cannot come before DEBUG SLEEP has ended, and then that reply is there, too.
    assert_eq!(other.run("GET a"), Reply::Bulk(b"1".to_vec()));
    assert_eq!(sleeper.read(), Reply::Simple(b"OK".to_vec()));
}

#[test]
fn sleep_takes_any_number() {
    check(
        r#"
        > DEBUG SLEEP 0
        +OK
        > DEBUG SLEEP 0.001
        +OK
        > DEBUG SLEEP -1
        +OK
        > DEBUG SLEEP x
        +OK
        > DEBUG SLEEP
        -ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.
        > DEBUG SLEEP 0 0
        -ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn object_describes_a_value() {
    check(
        r#"
        SET a v => +OK
        DEBUG OBJECT a => ~+Value at:0x* refcount:1 encoding:embstr serializedlength:2 lru:* lru_seconds_idle:0
        SET a 123456 => +OK
        DEBUG OBJECT a => ~+Value at:0x* refcount:1 encoding:int serializedlength:5 lru:* lru_seconds_idle:*
        HSET h a 1 b 22222222222 c ddddddddddddddddddddd => :3
        DEBUG OBJECT h => ~+Value at:0x* refcount:1 encoding:listpack serializedlength:39 lru:* lru_seconds_idle:0
        DEBUG OBJECT nosuch => -ERR no such key
        DEBUG OBJECT => -ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn a_small_hash_with_deadlines_is_packed_too() {
    check(
        r#"
        # needs redis >= 7.4
        > HSET h f v
        :1
        > HEXPIRE h 100 FIELDS 1 f
        [:1]
        > DEBUG LISTPACK h
        +Listpack structure printed on stdout
        "#,
    );
}

#[test]
fn values_in_their_forms() {
    check(
        r#"
        SET s abc => +OK
        SET n 5 => +OK
        HSET h f v => :1
        DEBUG SDSLEN s => ~+key_sds_len:1, key_sds_avail:0, key_zmalloc: *, val_sds_len:3, val_sds_avail:0, val_zmalloc: *
        DEBUG SDSLEN n => -ERR Not an sds encoded string.
        DEBUG SDSLEN h => -ERR Not an sds encoded string.
        DEBUG SDSLEN nosuch => -ERR no such key
        DEBUG LISTPACK h => +Listpack structure printed on stdout
        DEBUG LISTPACK s => -ERR Not a listpack encoded object.
        DEBUG LISTPACK nosuch => -ERR no such key
        DEBUG QUICKLIST s => -ERR Not a quicklist encoded object.
        DEBUG QUICKLIST nosuch => -ERR no such key
        DEBUG HTSTATS-KEY h => -ERR The value stored at the specified key is not represented using an hash table
        DEBUG HTSTATS-KEY nosuch => -ERR no such key
        HSET h f 0123456789012345678901234567890123456789012345678901234567890123456789 => :0
        DEBUG HTSTATS-KEY h => ~"*Hash table 0 stats*number of elements: 1\n*"
        DEBUG HTSTATS 0 => ~"[Dictionary HT]\nHash table 0 stats*number of elements: 3\n*[Expires HT]\n*"
        DEBUG HTSTATS 99 => -ERR Out of range database
        DEBUG HTSTATS x => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn expired_keys_stay_while_active_expiry_is_off() {
    check(
        r#"
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > SET a 1 PX 1
        +OK
        # sleep 300ms
        > DBSIZE
        :1
        > GET a
        (nil)
        > DBSIZE
        :0
        > SET a 1 PX 1
        +OK
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        # eventually
        > DBSIZE
        :0
        > DEBUG SET-ACTIVE-EXPIRE
        -ERR unknown subcommand or wrong number of arguments for 'SET-ACTIVE-EXPIRE'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn reload_keeps_the_data() {
    check(
        r#"
        > SET a 1
        +OK
        > SET b text PXAT 9999999999999
        +OK
        > SELECT 5
        +OK
        > HSET h f v g 17
        :2
        > DEBUG RELOAD
        +OK
        > HGETALL h
        ["f", "v", "g", "17"]
        > SELECT 0
        +OK
        > MGET a b
        ["1", "text"]
        > PEXPIRETIME b
        :9999999999999
        > DEBUG RELOAD NOSUCH
        -ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.
        "#,
    );
}

#[test]
fn populate_makes_keys() {
    check(
        r#"
        DEBUG POPULATE 3 => +OK
        MGET key:0 key:2 key:3 => ["value:0", "value:2", (nil)]
        DEBUG POPULATE 2 wide 10 => +OK
        GET wide:1 => "value:1\x00\x00\x00"
        DEBUG POPULATE 2 narrow 3 => +OK
        GET narrow:1 => "val"
        DEBUG POPULATE 2 plain 0 => +OK
        GET plain:1 => "value:1"
        // What is there stays.
        SET key:1 mine => +OK
        DEBUG POPULATE 4 => +OK
        MGET key:1 key:3 => ["mine", "value:3"]
        DBSIZE => :10
        DEBUG POPULATE x => -ERR value is out of range, must be positive
        DEBUG POPULATE -1 => -ERR value is out of range, must be positive
        DEBUG POPULATE 1 a x => -ERR value is out of range, must be positive
        DEBUG POPULATE 1 a 1 1 => -ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn every_kind_of_reply_in_resp2() {
    check(
        r#"
        DEBUG PROTOCOL string => "Hello World"
        DEBUG PROTOCOL integer => :12345
        DEBUG PROTOCOL double => "3.141"
        DEBUG PROTOCOL null => (nil)
        DEBUG PROTOCOL array => [:0, :1, :2]
        DEBUG PROTOCOL set => [:0, :1, :2]
        DEBUG PROTOCOL map => [:0, :0, :1, :1, :2, :0]
        DEBUG PROTOCOL attrib => "Some real reply following the attribute"
        DEBUG PROTOCOL push => -ERR RESP2 is not supported by this command
        DEBUG PROTOCOL verbatim => "This is a verbatim\nstring"
        DEBUG PROTOCOL true => :1
        DEBUG PROTOCOL FALSE => :0
        DEBUG PROTOCOL bignum => "1234567999999999999999999999999999999"
        > DEBUG PROTOCOL nosuch
        -ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false
        "#,
    );
}

#[test]
fn every_kind_of_reply_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > DEBUG PROTOCOL string
        "Hello World"
        > DEBUG PROTOCOL integer
        :12345
        > DEBUG PROTOCOL double
        ,3.141
        > DEBUG PROTOCOL null
        _
        > DEBUG PROTOCOL array
        [:0, :1, :2]
        > DEBUG PROTOCOL set
        set[:0, :1, :2]
        > DEBUG PROTOCOL map
        {:0 => #f, :1 => #t, :2 => #f}
        > DEBUG PROTOCOL verbatim
        txt:"This is a verbatim\nstring"
        > DEBUG PROTOCOL true
        #t
        > DEBUG PROTOCOL false
        #f
        > DEBUG PROTOCOL bignum
        (1234567999999999999999999999999999999
        > DEBUG PROTOCOL attrib
        << "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n"
        # needs redis >= 7.2
        > DEBUG PROTOCOL push
        "Some real reply following the push reply"
        push["server-cpu-usage", :42]
        "#,
    );
}

#[test]
fn errors_to_order() {
    check(
        r#"
        DEBUG ERROR "MYERR some thing" => -MYERR some thing
        DEBUG ERROR "a\r\nb" => -a  b
        DEBUG ERROR => -ERR unknown subcommand or wrong number of arguments for 'ERROR'. Try DEBUG HELP.
        "#,
    );
}

#[test]
fn switches_for_other_peoples_tests() {
    check(
        r#"
        DEBUG QUICKLIST-PACKED-THRESHOLD 200b => +OK
        DEBUG QUICKLIST-PACKED-THRESHOLD 0 => +OK
        DEBUG QUICKLIST-PACKED-THRESHOLD x => -ERR argument must be a memory value bigger than 1 and smaller than 4gb
        DEBUG REPLYBUFFER PEAK-RESET-TIME 100 => +OK
        DEBUG REPLYBUFFER PEAK-RESET-TIME RESET => +OK
        DEBUG REPLYBUFFER PEAK-RESET-TIME x => -ERR value is not an integer or out of range
        DEBUG REPLYBUFFER RESIZING 1 => +OK
        DEBUG PAUSE-CRON 0 => +OK
        DEBUG SET-SKIP-CHECKSUM-VALIDATION 0 => +OK
        DEBUG AOF-FLUSH-SLEEP 0 => +OK
        DEBUG SET-DISABLE-DENY-SCRIPTS 0 => +OK
        DEBUG LOG hello => +OK
        DEBUG CHANGE-REPL-ID => +OK
        DEBUG STRUCTSIZE => ~"bits:64 *"
        DEBUG CLIENT-EVICTION => -ERR maxmemory-clients is disabled.
        # needs redis >= 7.2
        DEBUG DICT-RESIZING 1 => +OK
        "#,
    );
}

#[test]
fn debug_knows_its_subcommands() {
    check(
        r#"
        DEBUG => -ERR wrong number of arguments for 'debug' command
        DEBUG NoSuch a b => -ERR unknown subcommand or wrong number of arguments for 'NoSuch'. Try DEBUG HELP.
        DEBUG HELP x => -ERR unknown subcommand or wrong number of arguments for 'HELP'. Try DEBUG HELP.
        DEBUG HELP => [+"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", ...]
        "#,
    );
}

#[test]
fn nobody_can_crash_holdfast() {
    check(
        r#"
        # holdfast only
        DEBUG SEGFAULT => -ERR this DEBUG subcommand would harm the server: refused
        DEBUG PANIC => -ERR this DEBUG subcommand would harm the server: refused
        DEBUG ASSERT => -ERR this DEBUG subcommand would harm the server: refused
        DEBUG OOM => -ERR this DEBUG subcommand would harm the server: refused
        DEBUG RESTART => -ERR this DEBUG subcommand would harm the server: refused
        DEBUG STRINGMATCH-LEN a*c abc => :1
        DEBUG STRINGMATCH-LEN a*c abd => :0
        DEBUG JMAP => +OK
        PING => +PONG
        "#,
    );
}
