//! The built program as a process: it starts, saves its credentials once, and locks its database file.

use std::net::TcpListener;
use std::time::Duration;

use tickwright_tests::process::{Centre, Journal, JournalExecutor, until};

#[tokio::test]
async fn a_second_centre_on_the_same_file_refuses_with_a_clear_word() {
    let folder = std::env::temp_dir().join(format!("tickwright-twice-{:08x}", fastrand::u32(..)));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("centre.db").display());
    let key_file = folder.join("key");
    let address = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();

    let first = Centre::start("first", address(), &url, &key_file).await.unwrap();
    let second = Centre::spawn("second", address(), &url, &key_file).unwrap();
    let (status, said) = second.ended().await.unwrap();
    assert!(!status.success(), "{said}");
    assert!(said.contains("another process"), "{said}");
    assert!(first.is_ready().await, "the first goes on");

    let token = first.first_token().expect("the first start saves a token");
    let executor =
        JournalExecutor::start("tickwright-sample", &token, &[first.address()], Journal::default())
            .await
            .unwrap();
    until("an executor registers with it", Duration::from_secs(120), async || executor.register().await.ok())
        .await
        .unwrap();
    first.stop().await.unwrap();

    std::fs::remove_file(folder.join("first-data/initial-credentials.txt")).unwrap();
    let again = Centre::start("first", address(), &url, &key_file).await.unwrap();
    assert_eq!(again.first_token(), None, "credentials are saved only once");
    again.stop().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
