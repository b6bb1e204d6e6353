//! Email notifications, over SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use tokio::sync::Semaphore;

use super::{Channel, Notice, Undelivered};

/// Sends alerts through a mail server, over a new connection for each mail.
pub struct Mail {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    connections: Semaphore,
}

/// Invalid mail configuration.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The URL of the mail server is invalid.
    #[error(
        "invalid address of the mail server ({0}); use for example smtps://user:password@host:465 or \
         smtp://host:587?tls=required"
    )]
    Server(lettre::transport::smtp::Error),
    /// The sender is not a valid email address.
    #[error(
        "`{0}` is not a mail address for the sender of alerts; use for example `Tickwright <jobs@example.com>`"
    )]
    From(String),
}

impl Mail {
    /// Creates a channel that sends through the server at `url`, for example `smtps://user:password@host:465`.
    pub fn new(url: &str, from: &str) -> Result<Mail, MailError> {
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(MailError::Server)?;
        let from = from.parse().map_err(|_| MailError::From(from.to_owned()))?;
        let server = server.timeout(Some(CONNECT_MAX)).build();
        Ok(Mail { server, from, connections: Semaphore::new(CONNECTIONS_MAX) })
    }

    async fn send(&self, message: Message) -> Result<(), String> {
        let sent = async {
            let _connection = self.connections.acquire().await.expect("the semaphore is never closed");
            self.server.send(message).await.map(drop).map_err(|error| error.to_string())
        };
        tokio::time::timeout(SEND_MAX, sent).await.unwrap_or_else(|_| Err(no_answer()))
    }

    fn message(&self, to: &str, notice: &Notice) -> Result<Message, String> {
        let to: Mailbox =
            to.parse().map_err(|_| format!("`{to}` is not a mail address; correct it in the job"))?;
        Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(notice.title())
            .header(ContentType::TEXT_PLAIN)
            .body(notice.text())
            .map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Channel for Mail {
    fn kind(&self) -> &'static str {
        "mail"
    }

    fn addressees(&self, notice: &Notice) -> Vec<String> {
        notice.mail_to.clone()
    }

    async fn deliver(&self, notice: &Notice, to: &str) -> Result<(), Undelivered> {
        let message = self.message(to, notice).map_err(Undelivered::Ever)?;
        self.send(message).await.map_err(Undelivered::Now)
    }

    async fn check(&self) -> Option<Result<(), String>> {
        let checked = tokio::time::timeout(SEND_MAX, self.server.test_connection()).await;
        Some(match checked {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("it closed the connection".into()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(no_answer()),
        })
    }
}

fn no_answer() -> String {
    format!("the mail server did not respond within {SEND_MAX:?}")
}

/// Timeout for opening the connection. The SMTP library has no timeout for later steps.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Timeout for a whole mail, including the wait for a free connection. Shorter than the 25 s that the engine waits
/// for an alert, so that the reason is recorded and no task outlives the attempt.
const SEND_MAX: Duration = Duration::from_secs(20);

/// Maximum number of connections at once: mail servers commonly accept 10 to 20 from one client.
const CONNECTIONS_MAX: usize = 4;
