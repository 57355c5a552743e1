//! The worker of docs/jobs.md, with work that cancels its own job if the job says so.

use std::time::Duration;

use holdfast_client::{Error, Exchange, Fields, Job, Queue};

/// Does a job. One that is to be cancelled is, and then fails.
async fn resize(job: &Job) -> Result<Result<String, String>, Error> {
    if job.fields.text("cancelled_by").is_none() {
        return Ok(Ok("small".into()));
    }
    job.update(&Exchange::new().set("state", "cancelled")).await?;
    Ok(Err("no image".into()))
}

pub(super) async fn run(queue: &Queue, name: &str) -> Result<(), Error> {
    worker(queue, name).await
}

// From docs/jobs.md.
/// Works until another error than those of a single job or of a server that is away.
async fn worker(queue: &Queue, name: &str) -> Result<(), Error> {
    loop {
        match work(queue, name).await {
            Err(Error::Lost(lost)) => eprintln!("{lost}"), // cancelled, or another worker has it: nothing was written
            Err(error) if error.is_temporary() => eprintln!("{error}"), // the job, if there was one, comes again
            ended => ended?,
        }
    }
}

/// Does one job, if one comes within five seconds.
async fn work(queue: &Queue, name: &str) -> Result<(), Error> {
    let Some(job) = queue.next(name, Duration::from_secs(5)).await? else { return Ok(()) };
    match resize(&job).await? {
        Ok(image) => job.complete(&Fields::new().with("result", image)).await,
        Err(error) => job.retry(Duration::from_secs(10), &Fields::new().with("error", error)).await.map(drop),
    }
}
