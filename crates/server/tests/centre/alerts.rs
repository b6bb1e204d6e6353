//! Notifications by mail and by webhook.

use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp};
use engine::policy::Overlap;
use executor::{Context, Job};
use store::{AlertFilter, AlertState, Page};
use tickwright_server::alerts::{Mail, Webhook};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::kit::{Bench, until};

#[tokio::test]
async fn a_failure_is_told_by_mail_and_by_webhook_once_each_though_one_of_them_is_down_at_first() {
    let (mail, mut mails) = mail_server().await;
    let (hook, mut posts) = web_server().await;
    let bench = Bench::start_with(|settings| {
        settings.channels = vec![
            Arc::new(Mail::new(&format!("smtp://{mail}"), "Jobs <jobs@example.com>").unwrap()),
            Arc::new(format!("dingtalk=http://{hook}/robot").parse::<Webhook>().unwrap()),
        ];
    })
    .await;
    let job = bench.job("nightly report", |spec| {
        spec.alert = true;
        spec.alert_to = "night@example.com, day@example.com".into();
    });
    bench.run(job.await, None).await;

    let mut told = [next(&mut mails).await, next(&mut mails).await];
    told.sort();
    assert!(
        told[0].contains("RCPT TO:<day@example.com>") && told[1].contains("RCPT TO:<night@example.com>"),
        "{told:?}"
    );
    assert!(
        told.iter().all(|mail| mail.contains("Subject: Tickwright: nightly report (job 1) did not run")),
        "{told:?}"
    );
    // The first post is rejected with a 200, as chat rooms do; it is sent again, and the mails are not.
    for _ in 0..2 {
        let post = next(&mut posts).await;
        assert!(post.starts_with("POST /robot") && post.contains("no executor of the app"), "{post}");
    }
    assert!(mails.try_recv().is_err(), "nobody is told twice because another was not");
    let alert = until("all were told", async || {
        let page = bench.database.alert_page(&AlertFilter::default(), Page::first(10)).await.unwrap();
        page.rows.into_iter().find(|alert| alert.state == AlertState::Delivered)
    })
    .await;
    let mut to: Vec<(&str, &str)> =
        alert.deliveries.iter().map(|told| (told.channel.as_str(), told.to.as_str())).collect();
    to.sort_unstable();
    let expected = [("dingtalk", "127.0.0.1"), ("mail", "day@example.com"), ("mail", "night@example.com")];
    assert_eq!((alert.tries, &to[..]), (2, &expected[..]), "without the secrets of a URL");
    assert!(alert.deliveries.iter().all(|told| told.trouble.is_none()));
    bench.stop().await;
}

#[tokio::test]
async fn what_ran_too_long_began_late_or_was_in_the_way_is_told_by_its_name() {
    let (hook, mut posts) = web_server().await;
    let bench = Bench::start_with(|settings| {
        settings.late_after = Duration::ZERO;
        settings.channels = vec![Arc::new(format!("json=http://{hook}/").parse::<Webhook>().unwrap())];
    })
    .await;
    let endless = Job::new("endless", |ctx: Context| async move { ctx.cancellation().cancelled().await });
    let _executor = bench.executor(vec![endless]).await;
    let job = bench.job("endless", |spec| {
        spec.schedule = Schedule::fixed_rate(Timestamp::default(), Duration::from_secs(1)).unwrap();
        spec.alert = true;
        spec.overlap = Overlap::Skip;
        spec.timeout = Some(Duration::from_secs(3));
    });
    bench.engine.start(job.await).await.unwrap();
    let mut wanted = vec![r#""kind":"late""#, r#""kind":"not_run""#, r#""kind":"timed_out""#];
    while !wanted.is_empty() {
        let post = next(&mut posts).await;
        wanted.retain(|kind| !post.contains(kind));
    }
    bench.stop().await;
}

async fn next(of: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(Duration::from_secs(120), of.recv()).await.expect("it comes").unwrap()
}

/// Accepts every mail and passes on its content.
async fn mail_server() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (told, mails) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take_mails(stream, told.clone()));
        }
    });
    (address, mails)
}

async fn take_mails(stream: TcpStream, told: mpsc::UnboundedSender<String>) {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 mail\r\n").await.unwrap();
    let (mut said, mut in_data) = (String::new(), false);
    let mut line = String::new();
    while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
        said.push_str(&line);
        let answer = match line.trim_end() {
            "." if in_data => {
                in_data = false;
                told.send(std::mem::take(&mut said)).unwrap();
                "250 taken\r\n"
            }
            _ if in_data => "",
            "DATA" => {
                in_data = true;
                "354 go on\r\n"
            }
            _ => "250 ok\r\n",
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        line.clear();
    }
}

/// Rejects the first post as a chat room would, accepts the others, and passes on each.
async fn web_server() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (told, posts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answer = r#"{"errcode":130101,"errmsg":"send too fast"}"#;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 64 * 1024];
            let mut length = 0;
            while !String::from_utf8_lossy(&bytes[..length]).trim_end().ends_with('}') {
                length += stream.read(&mut bytes[length..]).await.unwrap();
            }
            told.send(String::from_utf8_lossy(&bytes[..length]).into_owned()).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
            stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
            answer = r#"{"errcode":0,"errmsg":"ok"}"#;
        }
    });
    (address, posts)
}
