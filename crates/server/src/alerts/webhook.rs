//! Webhook notifications: to chat services, or as JSON to any program.

use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::{Channel, Notice, Undelivered};
use crate::client_tls::{self, Connector};

/// A URL that receives notifications.
pub struct Webhook {
    kind: Kind,
    url: Uri,
    client: Client<Connector, Full<Bytes>>,
}

/// Receiving service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    DingTalk,
    WeCom,
    Feishu,
    Slack,
}

const KINDS: [(&str, Kind); 5] = [
    ("json", Kind::Json),
    ("dingtalk", Kind::DingTalk),
    ("wecom", Kind::WeCom),
    ("feishu", Kind::Feishu),
    ("slack", Kind::Slack),
];

/// Invalid webhook configuration. The URL is not repeated: it usually contains a secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0}; use a kind and a URL, for example slack=https://…; kinds are json, dingtalk, wecom, feishu and slack"
)]
pub struct WebhookError(&'static str);

impl FromStr for Webhook {
    type Err = WebhookError;

    /// Parses `kind=url`, for example `slack=https://…`.
    fn from_str(written: &str) -> Result<Webhook, WebhookError> {
        let (kind, url) = written.split_once('=').ok_or(WebhookError("a webhook needs a kind"))?;
        let kind = KINDS.iter().find(|(word, _)| *word == kind.trim()).map(|(_, kind)| *kind);
        let kind = kind.ok_or(WebhookError("unknown kind of webhook"))?;
        let url: Uri = url.trim().parse().map_err(|_| WebhookError("invalid URL of a webhook"))?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
            return Err(WebhookError("the URL of a webhook must begin with http:// or https://"));
        }
        let is_https = url.scheme_str() == Some("https");
        let connector = client_tls::connector(is_https, HttpConnector::new())
            .map_err(|_| WebhookError("this machine has no trusted certificate authorities"))?;
        Ok(Webhook { kind, url, client: Client::builder(TokioExecutor::new()).build(connector) })
    }
}

impl Webhook {
    async fn post(&self, body: Value) -> Result<(), String> {
        let request = Request::post(&self.url).header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::from(body.to_string())).map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|_| "failed to connect".to_owned())?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        let answer = answer.map(|body| body.to_bytes()).unwrap_or_default();
        if !status.is_success() {
            return Err(format!("HTTP status {status}"));
        }
        refusal(&answer).map_or(Ok(()), Err)
    }
}

#[async_trait]
impl Channel for Webhook {
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Json => "webhook",
            kind => KINDS.iter().find(|(_, known)| *known == kind).map_or("webhook", |(word, _)| word),
        }
    }

    /// Only the host: the rest of the URL usually contains a secret.
    fn addressees(&self, _: &Notice) -> Vec<String> {
        vec![self.url.host().unwrap_or_default().to_owned()]
    }

    async fn deliver(&self, notice: &Notice, _: &str) -> Result<(), Undelivered> {
        let posted = tokio::time::timeout(PATIENCE, self.post(body(self.kind, notice)));
        let posted = posted.await.unwrap_or_else(|_| Err(format!("no response within {PATIENCE:?}")));
        posted.map_err(Undelivered::Now)
    }
}

/// Request body in the format of the receiving service.
fn body(kind: Kind, notice: &Notice) -> Value {
    match kind {
        Kind::Json => serde_json::to_value(notice).unwrap_or_default(),
        Kind::DingTalk | Kind::WeCom => json!({"msgtype": "text", "text": {"content": notice.text()}}),
        Kind::Feishu => json!({"msg_type": "text", "content": {"text": notice.text()}}),
        Kind::Slack => json!({"text": notice.text()}),
    }
}

/// Error in a response body: chat services reject with status 200 and a code in the body.
fn refusal(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let code = ["errcode", "code", "StatusCode"].iter().find_map(|field| answer.get(field)?.as_i64())?;
    let said = ["errmsg", "msg", "StatusMessage"].iter().find_map(|field| answer.get(field)?.as_str());
    (code != 0 && code != 200).then(|| format!("code {code}: {}", said.unwrap_or_default()))
}

/// Timeout for a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum response size in bytes.
const ANSWER_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use protocol::v1::AlertKind;

    use super::*;

    fn notice() -> Notice {
        Notice {
            kind: AlertKind::Failed,
            job: 7,
            job_name: "nightly \"report\"".into(),
            app: "shop".into(),
            run: Some(42),
            scheduled_at_ms: Some(1_794_767_956_742),
            executor: Some("http://10.0.0.7:9999/".into()),
            message: "no luck".into(),
            earlier: 0,
            mail_to: vec!["a@example.com".into()],
        }
    }

    #[test]
    fn each_listener_is_told_in_its_own_words() {
        let text = "Tickwright: nightly \"report\" (job 7) failed\nno luck\n\napp shop, job 7, run 42\n\
                    scheduled for 2026-11-15T18:39:16.742Z\nexecutor http://10.0.0.7:9999/";
        assert_eq!(body(Kind::Slack, &notice()), json!({"text": text}));
        assert_eq!(body(Kind::WeCom, &notice()), json!({"msgtype": "text", "text": {"content": text}}));
        assert_eq!(body(Kind::DingTalk, &notice()), body(Kind::WeCom, &notice()));
        assert_eq!(body(Kind::Feishu, &notice()), json!({"msg_type": "text", "content": {"text": text}}));
        let plain = body(Kind::Json, &notice());
        assert_eq!((plain["job"].as_i64(), plain["message"].as_str()), (Some(7), Some("no luck")));
        assert_eq!(plain["kind"], "failed");
        assert!(plain.get("mail_to").is_none());
    }

    #[test]
    fn the_title_says_what_happened() {
        let check = |kind, expected: &str| {
            let title = Notice { kind, ..notice() }.title();
            assert!(title.ends_with(expected), "{title}");
        };
        check(AlertKind::Failed, "(job 7) failed");
        check(AlertKind::TimedOut, "(job 7) timed out");
        check(AlertKind::Lost, "(job 7) was lost");
        check(AlertKind::Late, "(job 7) started late");
        check(AlertKind::NotRun, "(job 7) did not run");
        check(AlertKind::HistoryLost, "(job 7) has runs that the database has lost");
        let title = Notice { job_name: "a\r\nBcc: b@c\t\u{7}".into(), ..notice() }.title();
        assert_eq!(title, "Tickwright: a  Bcc: b@c   (job 7) failed");
        let text = Notice { run: None, executor: None, scheduled_at_ms: None, ..notice() }.text();
        assert!(text.ends_with("app shop, job 7"), "{text}");
        let text = Notice { earlier: 41, ..notice() }.text();
        assert!(text.contains("\n41 more alerts like this since the last notification\n"), "{text}");
    }

    #[test]
    fn a_refusal_with_a_200_is_noticed() {
        let check = |answer: &str, expected: Option<&str>| {
            assert_eq!(refusal(answer.as_bytes()), expected.map(Into::into), "{answer}");
        };
        check(r#"{"errcode":0,"errmsg":"ok"}"#, None);
        check(
            r#"{"errcode":310000,"errmsg":"keywords not in content"}"#,
            Some("code 310000: keywords not in content"),
        );
        check(r#"{"code":19001,"msg":"param invalid"}"#, Some("code 19001: param invalid"));
        check("ok", None);
        check("", None);
    }

    #[test]
    fn what_cannot_be_a_webhook_is_refused_without_repeating_it() {
        for written in [
            "https://hooks.example/secret",
            "teams=https://hooks.example/secret",
            "slack=secret",
            "slack=ftp://x/secret",
        ] {
            let error = written.parse::<Webhook>().err().expect(written).to_string();
            assert!(error.contains("slack=https://…") && !error.contains("secret"), "{error}");
        }
        assert!("slack=https://hooks.example/secret".parse::<Webhook>().is_ok());
    }
}
