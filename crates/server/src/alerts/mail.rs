//! By mail, over SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::{Channel, Notice, Undelivered};

/// A mail server that takes our alerts.
pub struct Mail {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// Why mail cannot be sent this way.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The address of the server is none.
    #[error(
        "the mail server's address cannot be used ({0}); write smtps://user:password@host:465 or smtp://host:587?tls=required"
    )]
    Server(lettre::transport::smtp::Error),
    /// The sender is no mail address.
    #[error(
        "`{0}` is not a mail address to send alerts from; write one such as `Tickwright <jobs@example.com>`"
    )]
    From(String),
}

impl Mail {
    /// Mail through the server at `url`, from that sender.
    pub fn new(url: &str, from: &str) -> Result<Mail, MailError> {
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(MailError::Server)?;
        let from = from.parse().map_err(|_| MailError::From(from.to_owned()))?;
        Ok(Mail { server: server.timeout(Some(PATIENCE)).build(), from })
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
        let sent = self.server.send(message).await;
        sent.map(drop).map_err(|error| Undelivered::Now(error.to_string()))
    }
}

/// How long a mail server may take for each step.
const PATIENCE: Duration = Duration::from_secs(10);
