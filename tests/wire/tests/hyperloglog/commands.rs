//! PFADD, PFCOUNT, PFMERGE, PFDEBUG and PFSELFTEST.

use wire::check;

#[test]
fn adding_and_counting() {
    check(
        r#"
        PFADD h => :1
        PFADD h => :0
        GET h => "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
        PFCOUNT h => :0
        GET h => "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff"
        PFADD h a b c d e f g => :1
        PFADD h a b c => :0
        PFADD h "" => :1
        PFCOUNT h => :8
        > GET h
        "HYLL\x01\x00\x00\x00\b\x00\x00\x00\x00\x00\x00\x00Fm\x80P\xc2\x84EH\x80D<\x848\x80P\xb1\x84I\x8c\x80Bm\x80BZ"
        PFCOUNT h => :8
        PFADD h h => :1
        > GET h
        "HYLL\x01\x00\x00\x00\b\x00\x00\x00\x00\x00\x00\x80Fm\x80P\xc2\x84EH\x80D<\x848\x80M\xc2\x80B\xed\x84I\x8c\x80Bm\x80BZ"
        TYPE h => +string
        OBJECT ENCODING h => "raw"
        STRLEN h => :44
        PFCOUNT nosuch => :0
        PFCOUNT nosuch other => :0
        EXISTS nosuch => :0
        EXPIRE h 100 => :1
        PFADD h another => :1
        PFCOUNT h => :10
        TTL h => :100
        "#,
    );
}

#[test]
fn sparse_becomes_dense() {
    check(
        r#"
        # config hll-sparse-max-bytes 30
        PFADD h a b c => :1
        PFDEBUG ENCODING h => +sparse
        PFDEBUG DECODE h => "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
        STRLEN h => :27
        PFADD h d e f g h i j => :1
        PFDEBUG ENCODING h => +dense
        PFDEBUG DECODE h => -ERR HLL encoding is not sparse
        STRLEN h => :12304
        PFCOUNT h => :10
        # config hll-sparse-max-bytes 3000
        PFADD h k l m => :1
        PFDEBUG ENCODING h => +dense
        PFADD h2 a b c => :1
        PFDEBUG TODENSE h2 => :1
        PFDEBUG TODENSE h2 => :0
        PFCOUNT h2 => :3
        PFADD h2 a b c => :0
        PFADD h2 d => :1
        PFCOUNT h2 => :4
        GETRANGE h2 0 15 => "HYLL\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00"
        "#,
    );
}

#[test]
fn runs_are_split_and_joined() {
    check(
        r#"
        PFADD h a b c d e f g h i j k l m n o p q r s t u v w x y z => :1
        > PFDEBUG DECODE h
        "Z:1094 v:4,1 Z:551 v:1,1 Z:138 v:3,1 Z:1769 v:6,1 Z:374 v:2,1 Z:237 v:2,1 z:15 v:1,1 Z:197 v:2,1 Z:1169 v:6,1 Z:1127 v:1,1 Z:611 v:1,1 Z:1085 v:2,1 z:57 v:1,1 Z:144 v:1,1 Z:429 v:1,1 Z:2002 v:1,1 Z:945 v:1,1 Z:750 v:2,1 Z:509 v:4,1 Z:916 v:2,1 Z:793 v:3,1 Z:224 v:1,1 Z:622 v:1,1 Z:465 v:1,1 Z:127 v:2,1 z:9"
        PFADD h 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 => :1
        > PFDEBUG DECODE h
        "Z:495 v:2,1 Z:598 v:4,1 Z:443 v:1,1 Z:107 v:1,1 Z:138 v:3,1 Z:794 v:1,1 Z:974 v:6,1 Z:112 v:1,1 Z:227 v:1,1 z:33 v:2,1 Z:212 v:3,1 z:24 v:2,1 z:15 v:1,1 Z:197 v:2,1 Z:290 v:1,1 Z:878 v:6,1 Z:358 v:1,1 Z:768 v:1,1 Z:611 v:1,1 z:13 v:5,1 Z:220 v:1,1 Z:850 v:2,1 z:3 v:1,1 z:53 v:1,1 Z:144 v:1,1 Z:429 v:1,1 Z:221 v:4,1 Z:273 v:1,1 Z:1317 v:1,1 Z:147 v:1,1 z:40 v:1,1 Z:945 v:1,1 Z:750 v:2,1 Z:509 v:4,1 Z:888 v:1,1 z:27 v:2,1 Z:700 v:1,1 Z:92 v:3,1 Z:224 v:1,1 Z:213 v:4,1 Z:185 v:1,1 z:22 v:2,1 Z:199 v:1,1 Z:465 v:1,1 Z:127 v:2,1 z:9"
        PFCOUNT h => :45
        SET full "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x80\x80\x80\x80\x7f\xfb" => +OK
        PFDEBUG DECODE full => "v:1,1 v:1,1 v:1,1 v:1,1 Z:16380"
        PFCOUNT full => :4
        PFADD full a => :1
        PFDEBUG DECODE full => "v:1,1 v:1,1 v:1,1 v:1,1 Z:12707 v:2,1 Z:3672"
        "#,
    );
}

#[test]
fn merging() {
    check(
        r#"
        PFADD a x y z => :1
        PFADD b z u v => :1
        PFMERGE c a b => +OK
        PFCOUNT c => :5
        PFCOUNT a b => :5
        PFCOUNT a b c nosuch => :5
        GET c => "HYLL\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00M\xe2\x94S\xa0\x80X\xcd\x88E \x80@~\x84\b"
        PFMERGE c => +OK
        GET c => "HYLL\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x80M\xe2\x94S\xa0\x80X\xcd\x88E \x80@~\x84\b"
        PFMERGE d nosuch => +OK
        GET d => "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
        PFCOUNT d => :0
        PFMERGE a b => +OK
        PFCOUNT a => :5
        PFDEBUG ENCODING a => +sparse
        PFDEBUG TODENSE b => :1
        PFMERGE a b => +OK
        PFDEBUG ENCODING a => +dense
        PFCOUNT a => :5
        PFMERGE new b => +OK
        PFDEBUG ENCODING new => +dense
        PFCOUNT new => :3
        EXPIRE a 100 => :1
        PFMERGE a b => +OK
        TTL a => :100
        "#,
    );
}

#[test]
fn strings_that_are_none() {
    check(
        r#"
        SET n 12345 => +OK
        -WRONGTYPE Key is not a valid HyperLogLog string value.
            PFADD n a
            PFCOUNT n
            PFMERGE n h
            PFMERGE h n
        SET s "HYLL" => +OK
        PFADD s a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET s "HYLX\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => +OK
        PFCOUNT s => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET s "HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => +OK
        PFADD s a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET s "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => +OK
        PFADD s a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET s "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => +OK
        PFADD s a => :1
        SET s "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xfe" => +OK
        -INVALIDOBJ Corrupted HLL object detected
            PFCOUNT s
            PFCOUNT s nosuch
            PFMERGE d s
            PFMERGE s d
            PFDEBUG GETREG s
            PFDEBUG TODENSE s
        PFDEBUG DECODE s => "Z:16383"
        SET s "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff\x00" => +OK
        PFCOUNT s => -INVALIDOBJ Corrupted HLL object detected
        SET s "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80" => +OK
        PFCOUNT s => -INVALIDOBJ Corrupted HLL object detected
        PFADD s a => -INVALIDOBJ Corrupted HLL object detected
        SET s "HYLL\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00" => +OK
        PFCOUNT s => :7
        PFCOUNT s nosuch => -INVALIDOBJ Corrupted HLL object detected
        HSET hash f v => :1
        PFDEBUG ENCODING hash => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXISTS h d => :0
        "#,
    );
}

#[test]
fn looking_inside() {
    check(
        r#"
        PFDEBUG GETREG nosuch => -ERR The specified key does not exist
        PFADD h a b c => :1
        PFDEBUG nosuch h => -ERR Unknown PFDEBUG subcommand 'nosuch'
        PFDEBUG encoding h => +sparse
        PFDEBUG DECODE h => "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
        PFDEBUG GETREG h => [:0, :0, ...]
        PFDEBUG DECODE h => -ERR HLL encoding is not sparse
        PFDEBUG ENCODING h => +dense
        PFSELFTEST => +OK
        "#,
    );
}

#[test]
fn a_count_is_kept_in_the_string() {
    check(
        r#"
        PFADD h a b c => :1
        WATCH h => +OK
        2> PFCOUNT h => :3
        MULTI => +OK
        GETRANGE h 8 15 => +QUEUED
        EXEC => (nil array)
        WATCH h => +OK
        2> PFCOUNT h => :3
        MULTI => +OK
        GETRANGE h 8 15 => +QUEUED
        EXEC => ["\x03\x00\x00\x00\x00\x00\x00\x00"]
        PFADD h d => :1
        MULTI => +OK
        PFCOUNT h => +QUEUED
        GETRANGE h 8 15 => +QUEUED
        EXEC => [:4, "\x04\x00\x00\x00\x00\x00\x00\x00"]
        PFADD h e => :1
        > EVAL "return {redis.call('PFCOUNT', KEYS[1]), redis.call('GETRANGE', KEYS[1], 8, 15)}" 1 h
        [:5, "\x05\x00\x00\x00\x00\x00\x00\x00"]
        PFADD h f => :1
        > EVAL_RO "return redis.call('PFCOUNT', KEYS[1])" 1 h
        -ERR Write commands are not allowed from read-only scripts. script: 3115b1080e876fdf7ce0c47ff7947c8d2fb404ef, on @user_script:1.
        PFCOUNT h h => :6
        GETRANGE h 15 15 => "\x80"
        PFCOUNT h => :6
        GETRANGE h 8 15 => "\x06\x00\x00\x00\x00\x00\x00\x00"
        "#,
    );
}
