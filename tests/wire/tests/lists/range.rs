//! LRANGE, LTRIM and LPOS.

use wire::check;

#[test]
fn lrange() {
    check(
        r#"
        ! RPUSH l a b c d e
        LRANGE l 0 -1 => ["a", "b", "c", "d", "e"]
        LRANGE l 1 3 => ["b", "c", "d"]
        LRANGE l -2 -1 => ["d", "e"]
        LRANGE l -100 100 => ["a", "b", "c", "d", "e"]
        LRANGE l 3 1 => []
        LRANGE l 5 9 => []
        LRANGE l 4 4 => ["e"]
        LRANGE l -1 -2 => []
        LRANGE l -9223372036854775808 9223372036854775807 => ["a", "b", "c", "d", "e"]
        LRANGE l 9223372036854775807 -9223372036854775808 => []
        -ERR value is not an integer or out of range
            LRANGE l x 1
            LRANGE l 1 x
            LRANGE nosuch x 1
        LRANGE nosuch 0 -1 => []
        ! SET s v
        > LRANGE s x 1
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn ltrim() {
    check(
        r#"
        ! RPUSH l a b c d e f
        > LTRIM l 1 -2
        +OK
        > LRANGE l 0 -1
        ["b", "c", "d", "e"]
        > LTRIM l 0 -1
        +OK
        > LRANGE l 0 -1
        ["b", "c", "d", "e"]
        > LTRIM l -3 -2
        +OK
        > LRANGE l 0 -1
        ["c", "d"]
        > LTRIM l 0 100
        +OK
        > LTRIM l -100 0
        +OK
        > LRANGE l 0 -1
        ["c"]
        > LTRIM l 1 0
        +OK
        > EXISTS l
        :0
        ! RPUSH l a b
        > LTRIM l 2 5
        +OK
        > EXISTS l
        :0
        ! RPUSH l a b
        > LTRIM l -9223372036854775808 -9223372036854775807
        +OK
        > EXISTS l
        :0
        ! RPUSH l a b
        > LTRIM l -9223372036854775808 9223372036854775807
        +OK
        LRANGE l 0 -1 => ["a", "b"]
        -ERR value is not an integer or out of range
            LTRIM l x 1
            LTRIM l 1 x
        > LTRIM nosuch 0 1
        +OK
        > LTRIM nosuch x 1
        -ERR value is not an integer or out of range
        ! SET s v
        > LTRIM s x 1
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn lpos() {
    check(
        r#"
        ! RPUSH l a b c 1 2 3 c c
        LPOS l c => :2
        LPOS l a => :0
        LPOS l nosuch => (nil)
        LPOS l 2 => :4
        LPOS l 02 => (nil)
        LPOS l c RANK 1 => :2
        LPOS l c RANK 2 => :6
        LPOS l c RANK 4 => (nil)
        LPOS l c RANK -1 => :7
        LPOS l c RANK -2 => :6
        LPOS l c COUNT 2 => [:2, :6]
        LPOS l c COUNT 0 => [:2, :6, :7]
        LPOS l c COUNT 100 => [:2, :6, :7]
        LPOS l nosuch COUNT 0 => []
        LPOS l c RANK 2 COUNT 0 => [:6, :7]
        LPOS l c RANK -1 COUNT 2 => [:7, :6]
        LPOS l c RANK -4 COUNT 2 => []
        LPOS l c MAXLEN 2 => (nil)
        LPOS l c MAXLEN 3 => :2
        LPOS l c MAXLEN 0 => :2
        LPOS l c MAXLEN 7 COUNT 0 => [:2, :6]
        LPOS l c RANK -1 MAXLEN 1 COUNT 0 => [:7]
        LPOS l c RANK -3 MAXLEN 5 COUNT 0 => []
        LPOS l c count 1 rank 2 maxlen 100 => [:6]
        LPOS l c COUNT 1 COUNT 2 => [:2, :6]
        LPOS l c RANK 9223372036854775807 => (nil)
        LPOS nosuch c => (nil)
        LPOS nosuch c COUNT 1 => []
        "#,
    );
}

#[test]
fn lpos_refuses() {
    check(
        r#"
        ! RPUSH l a
        -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
            LPOS l a RANK 0
            LPOS nosuch a RANK 0
        LPOS l a RANK x => -ERR value is not an integer or out of range
        -ERR syntax error
            LPOS l a RANK
            LPOS l a COUNT
            LPOS l a MAXLEN
            LPOS l a nosuch 1
            LPOS l a nosuch
            LPOS nosuch a x
        -ERR COUNT can't be negative
            LPOS l a COUNT -1
            LPOS l a COUNT x
        -ERR MAXLEN can't be negative
            LPOS l a MAXLEN -1
            LPOS l a MAXLEN x
        ! SET s v
        > LPOS s a RANK 0
        -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        > LPOS l a RANK -9223372036854775807
        (nil)
        # needs redis >= 7.2
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
            LPOS l a RANK -9223372036854775808
            LPOS nosuch a RANK -9223372036854775808
        "#,
    );
}
