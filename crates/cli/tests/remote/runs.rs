//! `tickwright job trigger` and `tickwright run`.

use serde_json::json;

use crate::kit::{APP, Centre, Process};

#[test]
fn a_run_is_triggered_and_its_log_is_on_the_screen() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("greet", "echo \"hello $1\"\necho done\n");
    let log = centre.shell().run("job trigger greet --param world --follow");
    assert!(log.stderr.contains("succeeded after"), "{}", log.stderr);
    let log = log.succeeds();
    assert!(log.contains("hello world") && log.contains("done"), "{log}");

    let runs = centre.json("run list --job greet");
    let run = runs[0]["id"].as_i64().unwrap();
    assert_eq!((&runs[0]["state"], &runs[0]["param"]), (&json!("succeeded"), &json!("world")));
    assert!(centre.says(&format!("run logs {run}")).contains("hello world"));
    assert_eq!(centre.says("run logs greet"), centre.says(&format!("run logs {run}")), "the newest");
    assert_eq!(centre.says("run logs -f greet"), centre.says("run logs greet"));
    let first = centre.says(&format!("run logs {run} --from 1"));
    let second = centre.says(&format!("run logs {run} --from 2"));
    assert_eq!(first.split_once('\n').unwrap().1, second);

    let shown = centre.says(&format!("run show {run}"));
    assert!(shown.contains("state      succeeded") && shown.contains("trace      "), "{shown}");
    assert_eq!(centre.json(&format!("run show {run}"))["job_key"], "greet");
    let listed = centre.says("run list --state succeeded");
    assert!(listed.starts_with("RUN") && listed.contains("greet"), "{listed}");
    assert_eq!(centre.json("run list --state failed"), json!([]));
    centre.stop();
}

#[test]
fn a_run_that_fails_fails_the_command_that_follows_it() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("broken", "echo 'no luck'\nexit 3\n");
    let followed = centre.shell().run("job trigger broken --follow");
    assert!(followed.stdout.contains("no luck"), "{}", followed.stdout);
    followed.fails(1, "did not succeed");
    let run = centre.json("job trigger broken")["run"].as_i64().unwrap();
    centre.json_once(&format!("run show {run}"), |run| run["state"] == "failed");
    centre.stop();
}

#[test]
fn a_run_is_followed_while_it_goes_on_and_killed() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("long", "echo started\nsleep 1000\n");
    centre.shell().run("run logs long").fails(1, "add -f to wait for the first one");
    let run = centre.json("job trigger long")["run"].as_i64().unwrap();
    let following = Process::start(centre.shell().command(&format!("run logs -f {run}")));
    following.wait_for(" started");
    assert_eq!(centre.json(&format!("run show {run}"))["state"], "running", "its line came meanwhile");
    assert_eq!(centre.says(&format!("run cancel {run}")), format!("run {run} cancelled\n"));
    following.wait_for(&format!("run {run} "));
    centre.json_once(&format!("run show {run}"), |run| !run["ended_at"].is_null());
    centre.shell().run(&format!("run kill {run}")).fails(1, "has already finished");
    centre.stop();
}

#[test]
fn whoever_waits_for_the_first_run_sees_it() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("later", "echo 'here I am'\n");
    let followed = std::thread::scope(|scope| {
        let shell = centre.shell();
        let follow = scope.spawn(move || shell.run("run logs -f later"));
        centre.says("job edit later --every 1s");
        centre.says("job start later");
        follow.join().unwrap()
    });
    assert!(followed.succeeds().contains("here I am"));
    centre.stop();
}

#[test]
fn without_an_executor_the_trigger_says_so() {
    let centre = Centre::signed_in();
    centre.says(&format!("job add lonely --app {APP} --handler nobody"));
    let triggered = centre.shell().run("job trigger lonely --follow");
    assert_eq!(triggered.code, Some(1), "{}{}", triggered.stdout, triggered.stderr);
    assert!(triggered.stderr.contains("did not succeed"), "{}", triggered.stderr);
    assert!(triggered.stderr.contains("no executor of the app"), "it says why: {}", triggered.stderr);
    centre.stop();
}

#[test]
fn a_handler_that_nobody_has_is_named_when_the_job_is_added_and_when_it_runs() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    // The agent has `http`, but no allowed URL, and no other handler.
    let added = centre.shell().run(&format!("job add typo --app {APP} --handler htpp"));
    assert!(
        added.stderr.contains("no executor of tickwright-sample has reported a handler `htpp`"),
        "{}",
        added.stderr
    );
    let triggered = centre.shell().run("job trigger typo --follow");
    assert!(triggered.stderr.contains("job handler [htpp] not found."), "{}", triggered.stderr);
    assert!(!triggered.stderr.contains("no log lines"), "{}", triggered.stderr);
    triggered.fails(1, "did not succeed");
    centre.stop();
}
