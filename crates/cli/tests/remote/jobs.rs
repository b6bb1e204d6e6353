//! `tickwright job` and `tickwright app`.

use serde_json::json;

use crate::kit::{APP, Centre};

#[test]
fn a_job_is_added_shown_changed_started_stopped_and_deleted() {
    let centre = Centre::signed_in();
    let add = format!(
        "job add orders/sync --app {APP} --name 'Sync orders' --handler sync --cron '0 0/5 9-17 ? * MON-FRI' \
         --zone Europe/London --retries 2 --timeout 30s --tag nightly"
    );
    let added = centre.says(&add);
    assert_eq!(added, "orders/sync added; start its schedule with: tickwright job start orders/sync\n");
    centre.shell().run(&add).fails(1, "the job `orders/sync` already exists");

    let shown = centre.says("job show orders/sync");
    for expected in ["name      Sync orders", "state     stopped", "handler   sync", "timeout   30.0 s"] {
        assert!(shown.contains(expected), "no `{expected}` in\n{shown}");
    }
    let view = centre.json("job show orders/sync");
    assert_eq!(view["schedule"]["zone"], "Europe/London");
    assert_eq!((&view["retry"]["count"], &view["tags"]), (&json!(2), &json!(["nightly"])));
    assert_eq!(centre.json(&format!("job show id:{}", view["id"]))["key"], "orders/sync");

    assert_eq!(centre.says("job edit orders/sync --param full --overlap skip"), "orders/sync changed\n");
    assert_eq!(centre.says("job edit orders/sync --param full"), "orders/sync unchanged\n");
    let edited = centre.json("job show orders/sync");
    assert_eq!((&edited["param"], &edited["overlap"]), (&json!("full"), &json!("skip")));
    assert_eq!(edited["schedule"], view["schedule"], "what was not said stays");
    centre.shell().run("job edit orders/sync").fails(1, "nothing to change");

    assert_eq!(centre.says("job start orders/sync"), "orders/sync started\n");
    let next = centre.says("job next orders/sync -n 3");
    assert_eq!(next.lines().count(), 4, "{next}");
    assert!(next.contains("Europe/London"), "{next}");
    assert_eq!(centre.json("job next orders/sync -n 3")["fires"].as_array().unwrap().len(), 3);
    assert_eq!(centre.says("job stop orders/sync"), "orders/sync stopped\n");

    centre.shell().run("job rm orders/sync").fails(1, "add --yes to confirm");
    assert_eq!(centre.says("job rm orders/sync --yes"), "orders/sync deleted\n");
    centre.shell().run("job show orders/sync").fails(4, "job `orders/sync`");
    centre.stop();
}

#[test]
fn lists_can_be_narrowed_and_say_when_there_is_more() {
    let centre = Centre::signed_in();
    for key in ["a/one", "a/two", "b/three"] {
        centre.says(&format!(
            "job add {key} --app {APP} --handler h-{} --every 1h --tag {}",
            &key[2..],
            &key[..1]
        ));
    }
    centre.says("job start b/three");
    let keys = |line: &str| -> Vec<String> {
        let jobs = centre.json(line);
        let key = |job: &serde_json::Value| job["key"].as_str().unwrap().to_owned();
        let mut keys: Vec<String> = jobs.as_array().unwrap().iter().map(key).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("job list"), ["a/one", "a/two", "b/three"]);
    assert_eq!(keys("job list --started"), ["b/three"]);
    assert_eq!(keys("job list --stopped --tag a"), ["a/one", "a/two"]);
    assert_eq!(keys("job list --handler h-two"), ["a/two"]);
    assert_eq!(keys("job list --app nobody"), Vec::<String>::new());
    let short = centre.shell().run("job list --limit 2");
    assert_eq!(short.stdout.lines().count(), 3, "a head and two rows");
    assert!(short.stderr.contains("there are more rows; use --all"), "{}", short.stderr);
    let all = centre.says("job list --all");
    assert!(all.starts_with("JOB      APP                NAME     SCHEDULE"), "{all}");
    let started = all.lines().find(|line| line.starts_with("b/three")).unwrap();
    assert!(started.contains("  started  "), "{started}");
    centre.stop();
}

#[test]
fn an_app_is_added_and_its_executors_get_a_token() {
    use std::os::unix::fs::PermissionsExt;

    let centre = Centre::signed_in();
    let added = centre.says("app add my-app --title Mine");
    assert_eq!(added, "my-app added; create a token for its executors with: tickwright app token my-app\n");
    centre.shell().run("app add my-app").fails(1, "the app `my-app` already exists");
    let listed = centre.says("app list");
    assert!(listed.contains("my-app             Mine    0     none"), "{listed}");
    assert_eq!(centre.json("app list").as_array().unwrap().len(), 2);

    assert!(centre.says("app token my-app").trim().len() >= 32);
    assert!(centre.json("app token my-app")["id"].is_number());
    let file = centre.folder.path().join("my-app.token");
    centre.says(&format!("app token my-app --to {}", file.display()));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().trim().len() >= 32);
    centre.shell().run("app token nobody").fails(4, "app `nobody`");
    centre.stop();
}

#[test]
fn many_jobs_are_started_stopped_and_deleted_by_what_they_have_in_common() {
    let centre = Centre::signed_in();
    for (key, tag) in [("a/one", "nightly"), ("a/two", "nightly"), ("b/three", "daily")] {
        centre.says(&format!("job add {key} --app {APP} --handler h --every 1h --tag {tag}"));
    }
    assert_eq!(centre.says("job start --tag nightly --yes"), "2 jobs started\n");
    assert_eq!(centre.json("job list --started").as_array().unwrap().len(), 2);
    assert_eq!(centre.says("job stop --text a/ --yes"), "2 jobs stopped\n");
    centre.shell().run("job stop --all").fails(1, "add --yes to confirm");
    centre.shell().run("job start --tag weekly --yes").fails(1, "no job matches");
    centre.shell().run("job start").fails(2, "required");
    centre.shell().run("job stop a/one --all --yes").fails(2, "cannot be used with");
    centre.says(&format!("job add by/hand --app {APP} --handler h --manual"));
    let started = centre.shell().run("job start --all --yes");
    assert!(started.stdout.contains("3 jobs started"), "{}", started.stdout);
    started.fails(1, "1 of 4 jobs were rejected");
    assert_eq!(centre.says(&format!("job rm --app {APP} --yes")), "4 jobs deleted\n");
    centre.stop();
}
