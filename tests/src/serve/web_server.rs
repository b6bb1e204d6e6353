//! A web server that sends the same response to every request and records it: an executor, or the receiver of a
//! webhook.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::WAIT_MAX;
use crate::process::Wire;

/// A running server. Dropping it stops it.
pub struct WebServer {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<(String, String)>,
    serving: JoinHandle<()>,
}

impl WebServer {
    /// Starts a server that answers each request with this JSON; with `None` it never answers.
    pub async fn start(answer: Option<&'static str>) -> Result<WebServer> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (tell, requests) = mpsc::unbounded_channel();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut wire = Wire::new(stream);
                    while let Ok(Some(request)) = wire.receive().await {
                        let body = String::from_utf8_lossy(&request.body).into_owned();
                        let _ = tell.send((request.path().to_owned(), body));
                        if let Some(answer) = answer {
                            let _ = wire.answer(answer).await;
                        }
                    }
                });
            }
        });
        Ok(WebServer { address, requests, serving })
    }

    /// URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits for the next request to a path; returns its body.
    pub async fn next(&mut self, path: &str) -> Result<String> {
        let found = async {
            while let Some((found, body)) = self.requests.recv().await {
                if found == path {
                    return Some(body);
                }
            }
            None
        };
        let found = tokio::time::timeout(WAIT_MAX, found).await;
        found.ok().flatten().with_context(|| format!("no request to {path} comes"))
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
