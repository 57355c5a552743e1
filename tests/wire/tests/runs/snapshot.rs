//! RUN.SNAPSHOT, RUN.PROJECT and RUN.INFO: what each type of event comes to. Random events are in `model`.

use wire::own::check;

#[test]
fn the_status_of_a_run_follows_its_events() {
    check(
        r#"
        RUN.SNAPSHOT r       => (nil)
        RUN.PROJECT r        => (nil)
        RUN.PROJECT r UPTO 5 => (nil)
        RUN.INFO r           => (nil)
        RUN.APPEND r k1 Anything d1 => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "pending", "lastEventSeq", :1, "startedAt", (nil), "updatedAt", (nil), "steps", [], "data", (nil)]
        RUN.APPEND r k2 RunStarted d2 => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "running", "lastEventSeq", :2, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d2"]
        RUN.APPEND r k3 RunPaused d3 => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "paused", "lastEventSeq", :3, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d3"]
        RUN.APPEND r k4 RunResumed "" => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "running", "lastEventSeq", :4, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", ""]
        RUN.APPEND r k5 RunCompleted d5 => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "completed", "lastEventSeq", :5, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d5"]
        // What is final stays.
        RUN.APPEND r k6 RunFailed d6 => *
        RUN.APPEND r k7 RunStarted d7 => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "completed", "lastEventSeq", :7, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d5"]
        > RUN.INFO r
        ["runId", "r", "status", "completed", "events", :7, "lastEventSeq", :7, "firstAt", :17.., "lastAt", :17.., "bytes", :100..1000]
        > RUN.PROJECT r UPTO 0
        ["runId", "r", "status", "pending", "lastEventSeq", :0, "startedAt", (nil), "updatedAt", (nil), "steps", [], "data", (nil)]
        > RUN.PROJECT r UPTO 3
        ["runId", "r", "status", "paused", "lastEventSeq", :3, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d3"]
        > RUN.PROJECT r upto 99
        ["runId", "r", "status", "completed", "lastEventSeq", :7, "startedAt", :17.., "updatedAt", :17.., "steps", [], "data", "d5"]
        RUN.APPEND f k RunFailed x => *
        > RUN.SNAPSHOT f
        ["runId", "f", "status", "failed", "lastEventSeq", :1, "startedAt", (nil), "updatedAt", :17.., "steps", [], "data", "x"]
        RUN.APPEND c k RunCancelled x => *
        > RUN.SNAPSHOT c
        ["runId", "c", "status", "cancelled", "lastEventSeq", :1, "startedAt", (nil), "updatedAt", :17.., "steps", [], "data", "x"]
        "#,
    );
}

#[test]
fn steps_follow_their_events() {
    check(
        r#"
        RUN.APPEND r k1 StepStarted d1 STEP a => *
        RUN.APPEND r k2 StepFailed d2 STEP a  => *
        RUN.APPEND r k3 StepRetried d3 STEP a => *
        > RUN.SNAPSHOT r
        ["runId", "r", "status", "pending", "lastEventSeq", :3, "startedAt", (nil), "updatedAt", :17.., "steps",
         ["a", ["status", "retrying", "attempts", :1, "startedAt", :17.., "updatedAt", :17.., "data", "d3"]], "data", (nil)]
        RUN.APPEND r k4 StepStarted d4 STEP a    => *
        RUN.APPEND r k5 StepSkipped d5 STEP b    => *
        RUN.APPEND r k6 StepCompleted d6 STEP a  => *
        RUN.APPEND r k7 StepCorrected d7 STEP a  => *
        RUN.APPEND r k8 StepCorrected d8 STEP "" => *
        RUN.APPEND r k9 StepStarted d9           => *
        RUN.APPEND r k10 Step d10 STEP c         => *
        RUN.APPEND r k11 stepstarted d10 STEP c  => *
        HELLO 3                                  => *
        > RUN.SNAPSHOT r
        {"runId" => "r", "status" => "pending", "lastEventSeq" => :11, "startedAt" => _, "updatedAt" => :17.., "steps" =>
         {"a" => {"status" => "completed", "attempts" => :2, "startedAt" => :17.., "updatedAt" => :17.., "data" => "d7"},
          "b" => {"status" => "skipped", "attempts" => :0, "startedAt" => _, "updatedAt" => :17.., "data" => "d5"},
          "" => {"status" => "pending", "attempts" => :0, "startedAt" => _, "updatedAt" => :17.., "data" => "d8"}}, "data" => _}
        > RUN.PROJECT r UPTO 5
        {"runId" => "r", "status" => "pending", "lastEventSeq" => :5, "startedAt" => _, "updatedAt" => :17.., "steps" =>
         {"a" => {"status" => "running", "attempts" => :2, "startedAt" => :17.., "updatedAt" => :17.., "data" => "d4"},
          "b" => {"status" => "skipped", "attempts" => :0, "startedAt" => _, "updatedAt" => :17.., "data" => "d5"}}, "data" => _}
        > RUN.INFO r
        {"runId" => "r", "status" => "pending", "events" => :11, "lastEventSeq" => :11, "firstAt" => :17.., "lastAt" => :17.., "bytes" => :100..}
        RUN.SNAPSHOT nosuch => _
        > RUN.INFO nosuch
        _
        "#,
    );
}
