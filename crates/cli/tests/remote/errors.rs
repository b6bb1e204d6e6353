//! Error messages of failed commands.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::kit::{APP, Centre, Shell};

#[test]
fn without_a_centre_the_error_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let shell =
        |url: String| Shell { home: folder.path().into(), url: Some(url), key: None, input: String::new() };
    shell(format!("http://{free}")).run("job list").fails(5, "start one with `tickwright serve`");
    shell("somewhere".into()).run("job list").fails(1, "`somewhere` is not the URL of a scheduling centre");
    // A server that is not a scheduling centre.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
        }
    });
    shell(format!("http://{address}/")).run("job list").fails(5, "is not that of a scheduling centre");
}

#[test]
fn what_the_centre_refuses_is_one_sentence_with_a_way_out() {
    let centre = Centre::signed_in();
    let check = |line: &str, code: i32, expected: &str| centre.shell().run(line).fails(code, expected);
    check(
        "job show nobody",
        4,
        "job `nobody`: this job does not exist; list the jobs with: tickwright job list",
    );
    check("run show 99999", 4, "run 99999: this run does not exist; list the runs with: tickwright run list");
    check("run logs 99999", 4, "run 99999: ");
    check("run logs -f nobody", 4, "job `nobody`: ");
    check("job trigger nobody", 4, "job `nobody`: ");
    check("job add x --handler h", 1, "missing --app");
    check(&format!("job add x --app {APP}"), 1, "handler: ");
    check(&format!("job add x --app {APP} --handler h --cron '0 60 * * * ?'"), 1, "schedule.expression: ");
    check(
        "job add x --app nobody --handler h",
        1,
        "job `x`: app: this app does not exist; list the apps with: tickwright app list",
    );
    check(&format!("job add x --app {APP} --script nowhere.sh"), 1, "failed to read the script nowhere.sh");
    check(&format!("job add x --app {APP} --script nowhere.txt"), 1, "set it with --language");
    check("job list --limit 0", 2, "");
    check("job add x --every soon", 2, "`500ms`, `5s`, `2m`, `1h`, `1d` or `1h30m`");
    centre.stop();
}

#[test]
fn completions_come_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell { home: folder.path().into(), url: None, key: None, input: String::new() };
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = shell.run(&format!("completions {name}")).succeeds();
        assert!(script.contains("tickwright") && script.contains("trigger"), "{name}");
    }
}
