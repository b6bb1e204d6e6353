//! `tickwright backfill`.

use serde_json::json;

use crate::kit::Centre;

#[test]
fn a_backfill_is_planned_followed_listed_and_shown() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("greet", "echo \"hello $1\"\n");
    let range = "backfill greet --from 2026-01-01 --to 2026-01-03";
    let plan = centre.says(&format!("{range} --dry-run"));
    assert!(plan.contains("3 scheduled times: 3 would run, 0 would be left out"), "{plan}");
    assert_eq!(centre.json("backfill list"), json!([]));

    let followed = centre.says(&format!("{range} --parallel 2 --order newest --param day --follow"));
    assert!(followed.ends_with("finished: 3 of 3 succeeded\n"), "{followed}");
    let id = centre.json("backfill list --job greet")[0]["id"].as_i64().unwrap();
    let shown = centre.json(&format!("backfill show {id}"));
    assert_eq!((&shown["backfill"]["order"], &shown["backfill"]["parallel"]), (&json!("newest"), &json!(2)));
    let run = shown["times"][0]["run"].as_i64().unwrap();
    let run = centre.says(&format!("run show {run}"));
    assert!(run.contains(&format!("backfill {id}")) && run.contains("day"), "{run}");
    let shown = centre.says(&format!("backfill show {id} --state succeeded"));
    assert!(shown.contains("3 of 3 succeeded") && shown.contains("SCHEDULED"), "{shown}");
    let listed = centre.says("backfill list");
    assert!(listed.starts_with("ID") && listed.contains("3/3"), "{listed}");
    let plan = centre.json(&format!("{range} --dry-run"));
    assert_eq!((&plan["run"], &plan["skip"]), (&json!(0), &json!(3)));
    centre.stop();
}

#[test]
fn a_backfill_is_paused_continued_retried_and_cancelled() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("broken", "exit 3\n");
    let start = "backfill broken --dates 2026-01-01,2026-01-02";
    centre.shell().run(&format!("{start} --follow")).fails(1, "2 of 2 scheduled times did not succeed");
    let id = centre.json("backfill list")[0]["id"].as_i64().unwrap();
    assert!(centre.says(&format!("backfill retry {id}")).starts_with(&format!("backfill {id} is running")));
    centre.json_once(&format!("backfill show {id}"), |shown| shown["backfill"]["failed"] == 2);

    centre.script_job("long", "sleep 1000\n");
    let id = centre.json("backfill long --dates 2026-01-01,2026-01-02")["id"].as_i64().unwrap();
    centre.json_once(&format!("backfill show {id}"), |shown| shown["times"][0]["state"] == "open");
    assert!(centre.says(&format!("backfill pause {id}")).contains("is paused"));
    assert!(centre.says(&format!("backfill continue {id}")).contains("is running"));
    assert!(centre.says(&format!("backfill cancel {id} --kill")).contains("is cancelled"));
    centre.json_once(&format!("backfill show {id}"), |shown| !shown["backfill"]["ended_at"].is_null());
    centre.shell().run(&format!("backfill continue {id}")).fails(1, "is cancelled already");
    centre.shell().run("backfill long --from tomorrow").fails(1, "neither a date nor a time");
    centre.shell().run("backfill missing --from 2026-01-01").fails(4, "this job does not exist");
    centre.shell().run("backfill show 999").fails(4, "this backfill does not exist");
    centre.stop();
}
