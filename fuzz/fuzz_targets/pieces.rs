//! Bytes that come as over a slow line.

use std::io::Read;

/// Gives up to three bytes at a time, as many as the next one says.
pub(crate) struct Pieces<'a>(pub(crate) &'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = 1 + usize::from(self.0.first().copied().unwrap_or(0) % 3);
        let len = len.min(buffer.len());
        self.0.read(&mut buffer[..len])
    }
}
