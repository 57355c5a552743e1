//! RUN.LIST: pages of names, by prefix and by status.

use wire::own::{check, pages, run_all, start};

#[test]
fn runs_alone_are_listed_by_status_and_prefix() {
    check(
        r#"
        RUN.LIST                                    => ["0", []]
        RUN.APPEND eu:pending k t d                 => *
        RUN.APPEND eu:running k RunStarted d        => *
        RUN.APPEND eu:paused k RunPaused d          => *
        RUN.APPEND us:completed k RunCompleted d    => *
        RUN.APPEND us:failed k RunFailed d          => *
        RUN.APPEND us:cancelled k RunCancelled d    => *
        SET eu:s x                                  => *
        CELL.SET eu:c x                             => *
        > RUN.LIST
        ["0", ~["eu:pending", "eu:running", "eu:paused", "us:completed", "us:failed", "us:cancelled"]]
        RUN.LIST PREFIX eu:                         => ["0", ~["eu:pending", "eu:running", "eu:paused"]]
        RUN.LIST PREFIX eu:p                        => ["0", ~["eu:pending", "eu:paused"]]
        RUN.LIST status 3 pending RUNNING Paused    => ["0", ~["eu:pending", "eu:running", "eu:paused"]]
        RUN.LIST STATUS 1 completed PREFIX us:      => ["0", ["us:completed"]]
        RUN.LIST STATUS 2 failed failed LIMIT 10 CURSOR 0 => ["0", ["us:failed"]]
        RUN.LIST STATUS 1 cancelled PREFIX eu:      => ["0", []]
        RUN.LIST LIMIT 0                            => ["0", []]
        RUN.APPEND eu:running k2 RunCompleted d     => *
        RUN.LIST STATUS 1 running                   => ["0", []]
        RUN.LIST STATUS 1 completed                 => ["0", ~["eu:running", "us:completed"]]
        PEXPIRE us:completed 1                      => :1
        # eventually
        > RUN.LIST STATUS 1 completed
        ["0", ["eu:running"]]
        SELECT 1                                    => +OK
        RUN.LIST                                    => ["0", []]
        "#,
    );
}

#[test]
fn wrong_arguments_are_named() {
    check(
        r#"
        > RUN.LIST STATUS 1 done
        -ERR no run has the status 'done': there are pending, running, paused, completed, failed, cancelled
        RUN.LIST STATUS 2 failed                    => ~-ERR *STATUS*
        RUN.LIST STATUS 0 failed                    => ~-ERR unknown option 'failed'. *
        RUN.LIST STATUS x failed                    => ~-ERR *STATUS*
        RUN.LIST STATUS -1                          => ~-ERR *STATUS*
        RUN.LIST STATUS                             => ~-ERR *STATUS*
        RUN.LIST STATUS 1 failed STATUS 1 failed    => -ERR STATUS is given twice
        RUN.LIST STATUS 1 failed completed          => ~-ERR unknown option 'completed'. *
        RUN.LIST CURSOR x                           => -ERR the cursor 'x' is none of ours: begin with 0
        RUN.LIST LIMIT -1                           => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        RUN.LIST PREFIX                             => ~-ERR missing: the prefix. Usage: *
        RUN.LIST PREFIX a PREFIX b                  => -ERR PREFIX is given twice
        RUN.LIST eu:                                => ~-ERR unknown option 'eu:'. *
        "#,
    );
}

/// Runs that are there from the first page to the last, in the status that is asked for, come once; others come and go.
#[test]
fn pages_have_each_run_once_whatever_comes_and_goes() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let types = ["RunStarted", "RunCompleted", "RunFailed"];
    run_all(&mut connection, (0..900).map(|number| format!("RUN.APPEND run:{number} k {} d", types[number % 3])));
    for (limit, status, expected) in [
        (10, "", 900),
        (77, "", 900),
        (1_000_000, "", 900),
        (100, "STATUS 1 running", 300),
        (10, "STATUS 2 failed completed", 600),
        (100, "STATUS 1 paused", 0),
    ] {
        let mut turn = 0;
        let found = pages(&mut connection, &format!("RUN.LIST PREFIX run: {status}"), limit, |connection| {
            turn += 1;
            connection
                .pipeline(&[format!("RUN.APPEND other:{turn} k RunStarted d"), format!("DEL other:{}", turn / 2)]);
        });
        assert_eq!(found, expected, "{limit} {status}");
    }
}
