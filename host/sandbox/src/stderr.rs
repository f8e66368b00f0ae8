//! What a plugin writes to standard error: the words of its panic, mostly. They end in the call's log, and
//! the plugin never learns what became of them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::limits::STDERR_BYTES_MAX;

/// The bytes so far; every clone is the same stream.
#[derive(Clone, Default)]
pub(crate) struct Stderr(Arc<Mutex<Vec<u8>>>);

impl Stderr {
    /// The bytes so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().map(|bytes| bytes.clone()).unwrap_or_default()
    }

    fn keep(&self, bytes: &[u8]) {
        let Ok(mut kept) = self.0.lock() else { return };
        let room = STDERR_BYTES_MAX.saturating_sub(kept.len());
        kept.extend(bytes.iter().take(room));
    }
}

/// The lines that say something, each as text.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

impl IsTerminal for Stderr {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stderr {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Stderr {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.keep(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Pollable for Stderr {
    async fn ready(&mut self) {}
}

impl OutputStream for Stderr {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.keep(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(STDERR_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_kept_in_lines_and_within_bounds() {
        let mut stderr = Stderr::default();
        let told = stderr.clone();
        stderr.write(Bytes::from_static(b"panicked at\n\nsrc/lib.rs:1")).unwrap();
        assert_eq!(lines(&told.bytes()), ["panicked at", "src/lib.rs:1"]);
        stderr.write(Bytes::from(vec![b'x'; 2 * STDERR_BYTES_MAX])).unwrap();
        assert_eq!(told.bytes().len(), STDERR_BYTES_MAX);
    }
}
