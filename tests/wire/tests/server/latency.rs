//! LATENCY.

use wire::check;

#[test]
fn spikes_are_kept_by_event() {
    check(
        r#"
        # config latency-monitor-threshold 10
        > LATENCY RESET
        :0..
        > DEBUG SLEEP 0.02
        +OK
        > LATENCY LATEST
        [["command", :1600000000.., :20.., :20..]]
        > LATENCY HISTORY command
        [[:1600000000.., :20..]]
        > LATENCY HISTORY nosuch
        []
        > LATENCY HISTORY COMMAND
        []
        > LATENCY GRAPH command
        ~"command - high * ms, low * ms (all time high * ms)\n------*"
        > LATENCY GRAPH nosuch
        -ERR No samples available for event 'nosuch'
        > LATENCY DOCTOR
        ~"*command: 1 latency spikes (average *ms, mean deviation *"
        > LATENCY RESET nosuch
        :0
        > LATENCY RESET command nosuch
        :1
        > LATENCY LATEST
        []
        "#,
    );
}

#[test]
fn without_a_threshold_nothing_is_kept() {
    check(
        r#"
        > LATENCY RESET
        :0..
        > DEBUG SLEEP 0.02
        +OK
        > LATENCY LATEST
        []
        > LATENCY DOCTOR
        ~"*latency-monitor-threshold*"
        "#,
    );
}

#[test]
fn histograms_count_calls() {
    check(
        r#"
        > CONFIG RESETSTAT
        +OK
        > SET a 1
        +OK
        > SET a 1
        +OK
        > CONFIG GET port
        *
        > LATENCY HISTOGRAM set
        ["set", ["calls", :2, "histogram_usec", [:1.., :1..2, ...]]]
        > LATENCY HISTOGRAM SET nosuch get
        ["set", ["calls", :2, "histogram_usec", *]]
        > LATENCY HISTOGRAM config|get
        ["config|get", ["calls", :1, "histogram_usec", [:1.., :1]]]
        // A container stands for its subcommands.
        > LATENCY HISTOGRAM config
        ~["config|get", ["calls", :1, "histogram_usec", *], "config|resetstat", ["calls", :1, "histogram_usec", *]]
        > LATENCY HISTOGRAM nosuch
        []
        > HELLO 3
        *
        > LATENCY HISTOGRAM config|get
        {"config|get" => {"calls" => :1, "histogram_usec" => {:1.. => :1}}}
        > LATENCY HISTOGRAM nosuch
        {}
        "#,
    );
}

#[test]
fn wrong_requests() {
    check(
        r#"
        LATENCY => -ERR wrong number of arguments for 'latency' command
        LATENCY NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try LATENCY HELP.
        LATENCY HISTORY => -ERR wrong number of arguments for 'latency|history' command
        LATENCY GRAPH => -ERR wrong number of arguments for 'latency|graph' command
        LATENCY DOCTOR x => -ERR wrong number of arguments for 'latency|doctor' command
        LATENCY HELP => [+"LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", ...]
        "#,
    );
}
