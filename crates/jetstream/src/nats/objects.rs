//! Objects in a bucket of NATS. Knows NATS; refuses to know what they contain.

use super::shared::Connection;
use crate::objects::{Objects, received};
use async_nats::jetstream::object_store::{ObjectMetadata, ObjectStore};
use futures_util::StreamExt;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// How long one object may take, or, when it is read, the next piece of it.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// The most room that is made for an object before it is read: its size is only told.
pub(super) const ROOM_MAX: usize = 8 * 1024 * 1024;

/// True when a message of the bucket could not be understood. The crate has no kind of its own for that.
pub(super) fn is_no_object(error: &async_nats::jetstream::object_store::ListerError) -> bool {
    error.to_string().contains("failed deserializing object info")
}

/// The bucket of a log.
pub(super) struct NatsObjects {
    pub(super) connection: Arc<Connection>,
    pub(super) bucket: ObjectStore,
}

impl NatsObjects {
    /// Runs a request on the runtime of the connection, which ends in time.
    fn begin_timed<T: Send + 'static>(
        &self,
        name: &str,
        done: impl Future<Output = Result<T, async_nats::Error>> + Send + 'static,
    ) -> mpsc::Receiver<io::Result<T>> {
        self.begin(name, async move { timed(done).await? })
    }

    /// Runs a request on the runtime of the connection.
    fn begin<T: Send + 'static>(
        &self,
        name: &str,
        done: impl Future<Output = Result<T, async_nats::Error>> + Send + 'static,
    ) -> mpsc::Receiver<io::Result<T>> {
        let ((send, result), name) = (mpsc::channel(), name.to_owned());
        self.connection.runtime.spawn(async move {
            let done = done.await.map_err(|error| io::Error::other(format!("{name}: {error}")));
            // Whoever waited may be gone.
            let _ = send.send(done);
        });
        result
    }
}

/// An error if it takes too long.
async fn timed<T>(done: impl Future<Output = T>) -> Result<T, async_nats::Error> {
    tokio::time::timeout(DONE_WITHIN, done).await.map_err(|_| "NATS does not answer".into())
}

impl Objects for NatsObjects {
    fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let bucket = self.bucket.clone();
        let chunk_size = Some(self.connection.client.max_payload().clamp(64 * 1024, 1024 * 1024) / 2);
        let metadata = ObjectMetadata { name: name.to_owned(), chunk_size, ..ObjectMetadata::default() };
        received(&self.begin_timed(name, async move {
            bucket.put(metadata, &mut bytes.as_slice()).await?;
            Ok(())
        }))
    }

    fn begin_get(&self, name: &str) -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (bucket, wanted) = (self.bucket.clone(), name.to_owned());
        self.begin(name, async move {
            let mut object = timed(bucket.get(&wanted)).await??;
            let mut bytes = Vec::with_capacity(object.info().size.min(ROOM_MAX));
            while timed(object.read_buf(&mut bytes)).await?? > 0 {}
            Ok(bytes)
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (bucket, unwanted) = (self.bucket.clone(), name.to_owned());
        received(&self.begin_timed(name, async move { Ok(bucket.delete(&unwanted).await?) }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let bucket = self.bucket.clone();
        received(&self.begin_timed("the list of objects", async move {
            let mut list = bucket.list().await?;
            let mut names = Vec::new();
            while let Some(object) = list.next().await {
                match object {
                    Ok(object) => names.push(object.name),
                    // What somebody else has put there must not hide the rest.
                    Err(error) if is_no_object(&error) => {
                        tracing::warn!(%error, "the bucket has a message that tells of no object: it is passed over");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(names)
        }))
    }
}
