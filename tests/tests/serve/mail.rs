//! Alerts by mail, through a real SMTP server.

use anyhow::Result;
use executor::{Executor, Job};
use serde_json::{Value, json};
use tickwright_tests::process::free_address;
use tickwright_tests::serve::{Certificate, Client, MailServer, Security, Serve, Served};
use tokio::net::TcpListener;

const USER: (&str, &str) = ("alerts", "p@ss/word");
const URL_USER: &str = "alerts:p%40ss%2Fword";

#[tokio::test]
async fn a_failed_run_is_mailed_and_no_name_or_address_adds_headers_or_recipients() {
    let Some(mut server) = MailServer::start(Security::Plain, None).await.unwrap() else { return };
    let serve = Serve::new().unwrap().with("alert-mail", &format!("smtp://127.0.0.1:{}", server.port));
    let serve = serve.with("alert-from", "Job alerts <jobs@example.com>");
    let failing = Failing::start(serve).await.unwrap();
    let name = "nightly\r\nBcc: spy@example.com\r\n\r\nreport";
    let injected = "ops@example.com>\r\nRCPT TO:<spy@example.com";
    failing.fail(name, &["day@example.com", injected]).await.unwrap();

    let mail = server.next().await.unwrap();
    assert_eq!((mail.from.as_str(), &mail.to[..]), ("jobs@example.com", &["day@example.com".to_owned()][..]));
    assert_eq!(mail.header("From"), ["Job alerts <jobs@example.com>"]);
    assert_eq!(mail.header("To"), ["day@example.com"]);
    assert_eq!(mail.header("Bcc"), [""; 0], "{:?}", mail.headers);
    let [subject] = mail.header("Subject")[..] else { panic!("{:?}", mail.headers) };
    assert!(subject.starts_with("Tickwright: nightly") && subject.ends_with("failed"), "{subject:?}");
    assert!(!subject.contains(['\r', '\n']), "{subject:?}");
    assert!(mail.text.contains("deliberate failure"), "{}", mail.text);

    let alert = failing.alert(|alert| alert["state"] != "waiting").await.unwrap();
    let troubles: Vec<&Value> =
        alert["deliveries"].as_array().unwrap().iter().map(|told| &told["trouble"]).collect();
    let refused =
        |trouble: &&&Value| trouble.as_str().is_some_and(|why| why.contains("is not a mail address"));
    assert_eq!(troubles.iter().filter(refused).count(), 1, "{alert}");
    assert_eq!(troubles.iter().filter(|trouble| trouble.is_null()).count(), 1, "{alert}");
}

#[tokio::test]
async fn mail_is_sent_encrypted_and_with_a_password() {
    for scheme in ["starttls", "smtps"] {
        let serve = Serve::new().unwrap();
        let certificate = Certificate::create(&serve.path(".")).unwrap();
        let security = match scheme {
            "smtps" => Security::Smtps(&certificate),
            _ => Security::StartTls(&certificate),
        };
        let Some(mut server) = MailServer::start(security, Some(USER)).await.unwrap() else { return };
        let url = match scheme {
            "smtps" => format!("smtps://{URL_USER}@localhost:{}", server.port),
            _ => format!("smtp://{URL_USER}@localhost:{}?tls=required", server.port),
        };
        let serve = serve.with("alert-mail", &url);
        // Without the certificate in the trust store, no mail is sent.
        let (well, said) = serve.run("doctor").await.unwrap();
        assert!(
            !well && said.contains("failed to connect to the mail server for alerts"),
            "{scheme}: {said}"
        );

        let serve = serve.variable("SSL_CERT_FILE", &certificate.certificate.display().to_string());
        let (well, said) = serve.run("doctor").await.unwrap();
        assert!(well && said.contains("connected to the mail server"), "{scheme}: {said}");
        let failing = Failing::start(serve).await.unwrap();
        failing.fail("nightly", &["day@example.com"]).await.unwrap();
        let mail = server.next().await.unwrap();
        assert!(mail.encrypted, "{scheme}: {mail:?}");
        assert_eq!(mail.user.as_deref(), Some(USER.0), "{scheme}");
        assert_eq!(mail.from, "tickwright@localhost", "{scheme}: the default");
    }
}

#[tokio::test]
async fn a_refused_password_is_shown_with_the_alert_and_by_doctor() {
    let Some(server) = MailServer::start(Security::Plain, Some(USER)).await.unwrap() else { return };
    let url = format!("smtp://alerts:a-wrong-one@127.0.0.1:{}", server.port);
    let serve = Serve::new().unwrap().with("alert-mail", &url);
    let (well, said) = serve.run("doctor").await.unwrap();
    assert!(
        !well
            && said.contains("fail   failed to connect to the mail server for alerts: permanent error (535)"),
        "{said}"
    );
    assert!(!said.contains("a-wrong-one"), "{said}");

    let failing = Failing::start(serve).await.unwrap();
    failing.fail("nightly", &["day@example.com"]).await.unwrap();
    let alert = failing.alert(|alert| alert["tries"] == 1).await.unwrap();
    assert_eq!(alert["state"], "waiting", "{alert}");
    let trouble = alert["deliveries"][0]["trouble"].as_str().unwrap();
    assert!(trouble.starts_with("permanent error (535)"), "{alert}");
    assert!(!failing.served.said().contains("a-wrong-one"), "{}", failing.served.said());
}

#[tokio::test]
async fn a_mail_server_that_is_down_is_tried_again_until_it_is_back() {
    let port = free_address().unwrap().port();
    let serve = Serve::new().unwrap().with("alert-mail", &format!("smtp://127.0.0.1:{port}"));
    let (well, said) = serve.run("doctor").await.unwrap();
    assert!(
        !well && said.contains("fail   failed to connect to the mail server for alerts: Connection error"),
        "{said}"
    );
    let failing = Failing::start(serve).await.unwrap();
    failing.fail("nightly", &["day@example.com"]).await.unwrap();
    let alert = failing.alert(|alert| alert["tries"] == 1).await.unwrap();
    assert!(alert["deliveries"][0]["trouble"].as_str().unwrap().contains("Connection error"), "{alert}");

    let Some(mut server) = MailServer::start_at(port, Security::Plain, None).await.unwrap() else { return };
    assert_eq!(server.next().await.unwrap().to, ["day@example.com"]);
    failing.alert(|alert| alert["state"] == "delivered").await.unwrap();
}

#[tokio::test]
async fn a_mail_server_that_never_answers_holds_up_no_alert_for_ever() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", silent.local_addr().unwrap());
    let failing = Failing::start(Serve::new().unwrap().with("alert-mail", &url)).await.unwrap();
    failing.fail("nightly", &["day@example.com"]).await.unwrap();
    let (mut held, _) = silent.accept().await.unwrap();
    let alert = failing.alert(|alert| alert["tries"] == 1).await.unwrap();
    let trouble = alert["deliveries"][0]["trouble"].as_str().unwrap();
    assert!(trouble.contains("the mail server did not respond within"), "{alert}");
    // The connection is closed too: an abandoned attempt leaves nothing behind.
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut held, &mut rest).await.unwrap();
}

/// A centre and an executor with one handler, which fails.
struct Failing {
    served: Served,
    client: Client,
    _executor: Executor,
}

impl Failing {
    async fn start(serve: Serve) -> Result<Failing> {
        let served = serve.start().await?;
        let client = served.sign_in().await?;
        let executor = Executor::builder(APP)
            .centre(&served.url)
            .token(served.credential("xxl.job.accessToken")?)
            .listen("127.0.0.1:0")
            .directory(served.path("executor"))
            .job(Job::new("fail", |_| async { Err::<(), _>("deliberate failure") }))
            .start()
            .await?;
        let is_there = |app: &Value| app["executors"].as_array().is_some_and(|all| !all.is_empty());
        client.get_until(&format!("/v1/apps/{APP}"), is_there).await?;
        Ok(Failing { served, client, _executor: executor })
    }

    /// Runs a failing job of this name, with alerts sent to these addresses.
    async fn fail(&self, name: &str, alert_to: &[&str]) -> Result<()> {
        let job = json!({
            "app": APP, "name": name, "handler": "fail", "schedule": { "kind": "none" },
            "alert": true, "alert_to": alert_to
        });
        self.client.done("PUT", "/v1/jobs/nightly", &job).await?;
        self.client.done("POST", "/v1/jobs/nightly/trigger", &json!({})).await.map(drop)
    }

    /// Waits until the alert is as expected.
    async fn alert(&self, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let page = self.client.get_until("/v1/alerts", |page| is_so(&page["items"][0])).await?;
        Ok(page["items"][0].clone())
    }
}

const APP: &str = "tickwright-sample";
