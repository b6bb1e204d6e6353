//! Output of a process, line by line.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// All lines so far, of one or more streams. With `TICKWRIGHT_TEST_ECHO` they are also printed.
#[derive(Clone, Default)]
pub struct Output(Arc<Mutex<Vec<String>>>);

impl Output {
    /// Reads a stream of the process with this name to its end.
    pub fn follow(&self, name: &str, stream: impl AsyncRead + Send + Unpin + 'static) {
        let lines = self.0.clone();
        let echo = std::env::var_os("TICKWRIGHT_TEST_ECHO").is_some().then(|| name.to_owned());
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                if let Some(name) = &echo {
                    eprintln!("{name}| {line}");
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() < LINES_MAX {
                    lines.push(line);
                }
            }
        });
    }

    /// All lines as one text.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// The first value that `look` finds in a line.
    pub fn find<T>(&self, look: impl FnMut(&String) -> Option<T>) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(look)
    }
}

/// Enough to see the cause of a failure.
const LINES_MAX: usize = 20_000;
