//! Each model as a test.

#![forbid(unsafe_code)]

use interleavings::{index_heads, journal_watermarks, script_kills, wait_states};

#[test]
fn a_wait_ends_once() {
    wait_states::a_wait_ends_once();
}

#[test]
fn a_wait_that_is_given_back_is_not_lost() {
    wait_states::a_wait_that_is_given_back_is_not_lost();
}

#[test]
fn a_late_claim_leaves_the_next_wait_alone() {
    wait_states::a_late_claim_leaves_the_next_wait_alone();
}

#[test]
fn a_record_and_a_waiting_client_meet() {
    index_heads::a_record_and_a_waiting_client_meet();
}

#[test]
fn a_head_is_lowered_before_it_is_counted() {
    index_heads::a_head_is_lowered_before_it_is_counted();
}

#[test]
fn a_killed_script_does_not_write() {
    script_kills::a_killed_script_does_not_write();
}

#[test]
fn what_is_durable_was_written() {
    journal_watermarks::what_is_durable_was_written();
}

#[test]
fn a_log_that_is_accepted_has_its_marks() {
    journal_watermarks::a_log_that_is_accepted_has_its_marks();
}
