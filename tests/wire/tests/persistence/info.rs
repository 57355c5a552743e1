//! The settings of persistence, and what INFO tells of it.

use wire::check;

#[test]
fn settings_read_back() {
    check(
        r#"
        # config appendfsync always
        CONFIG GET appendfsync => ["appendfsync", "always"]
        CONFIG SET appendfsync EverySec => +OK
        CONFIG GET appendfsync => ["appendfsync", "everysec"]
        CONFIG SET appendfsync no => +OK
        CONFIG GET appendfsync => ["appendfsync", "no"]
        > CONFIG SET appendfsync sometimes
        -ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no
        CONFIG SET appendonly maybe => -ERR CONFIG SET failed (possibly related to argument 'appendonly') - argument must be 'yes' or 'no'
        "#,
    );
}

#[test]
fn save_points_read_back() {
    check(
        r#"
        # config save 60 1000000 300 1000
        CONFIG GET save => ["save", "60 1000000 300 1000"]
        CONFIG SET save "60" => -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
        CONFIG SET save "0 1" => -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
        CONFIG SET save "60 -1" => -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
        CONFIG SET save "sixty one" => -ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
        CONFIG GET save => ["save", "60 1000000 300 1000"]
        CONFIG SET save "" => +OK
        CONFIG GET save => ["save", ""]
        "#,
    );
}

#[test]
fn the_journal_is_turned_on_and_off_while_it_runs() {
    check(
        r#"
        # config appendonly no
        # until aof_enabled:0
        > CONFIG GET appendonly
        ["appendonly", "no"]
        > SET a 1
        +OK
        > CONFIG SET appendonly yes
        +OK
        # until aof_rewrite_in_progress:0
        > CONFIG GET appendonly
        ["appendonly", "yes"]
        > INFO persistence
        ~"*aof_enabled:1\r\n*"
        > CONFIG SET appendonly yes
        +OK
        > SET b 2
        +OK
        > CONFIG SET appendonly no
        +OK
        > SET c 3
        +OK
        > MGET a b c
        ["1", "2", "3"]
        "#,
    );
}

#[test]
fn a_journal_tells_its_size() {
    check(
        r#"
        # config appendonly yes
        # until aof_enabled:1
        # until aof_rewrite_in_progress:0
        > SET a 1
        +OK
        > INFO persistence
        ~"*\r\naof_current_size:*\r\naof_base_size:*\r\naof_pending_rewrite:?\r\naof_buffer_length:*\r\naof_pending_bio_fsync:?\r\naof_delayed_fsync:*"
        # holdfast only
        > INFO persistence
        ~"*\r\njournal_sequence:*\r\njournal_durable_sequence:*"
        "#,
    );
}
