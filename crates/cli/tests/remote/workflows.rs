//! `tickwright workflow`.

use serde_json::json;

use crate::kit::{APP, Centre};

#[test]
fn a_workflow_is_followed_and_resumed_where_it_failed() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("extract", "echo extracted\n");
    centre.script_job("load", "exit 3\n");
    let file = centre.file(
        "daily.yaml",
        &format!(
            "jobs:\n  daily:\n    app: {APP}\n    name: Daily\n    schedule: {{ kind: none }}\n    workflow:\n      steps:\n        \
             - {{ name: extract, job: extract }}\n        - {{ name: load, needs: [extract], job: load }}\n"
        ),
    );
    centre.says(&format!("import {}", file.display()));
    let followed = centre.shell().run("workflow run daily --follow");
    assert!(followed.stdout.contains("extract") && followed.stdout.contains("failed"), "{}", followed.stdout);
    followed.fails(1, "resume it with: tickwright workflow resume");
    let run = centre.json("run list --job daily")[0]["id"].as_i64().unwrap();

    let preview = centre.json(&format!("workflow resume {run} --dry-run"));
    assert_eq!(preview, json!({ "kept": ["extract"], "to_run": ["load"] }));
    let shown = centre.says(&format!("workflow resume {run} --dry-run --again extract"));
    assert_eq!(shown, "kept: none\nruns: extract, load\n");
    centre.shell().run(&format!("workflow resume {run} --set load")).fails(2, "STEP=JSON");

    let resumed = centre.shell().run(&format!("workflow resume {run} --set 'load={{\"rows\":5}}' --follow"));
    let resumed = resumed.succeeds();
    assert!(resumed.contains("kept: extract, load"), "{resumed}");
    let next = centre.json("run list --job daily")[0]["id"].as_i64().unwrap();
    let steps = centre.json(&format!("workflow steps {next}"));
    assert_eq!((&steps["resumed_of"], &steps["attempt"]), (&json!(run), &json!(2)));
    assert_eq!(centre.json(&format!("workflow steps {next} load"))["output"], json!({ "rows": 5 }));
    assert!(centre.says(&format!("workflow steps {next}")).contains("succeeded (kept)"));
    centre.shell().run(&format!("workflow resume {run}")).fails(1, "resume that one");
    centre.stop();
}

#[test]
fn a_job_with_children_is_written_as_a_workflow() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("last", "echo last\n");
    centre.script_job("middle", "echo middle\n");
    centre.script_job("first", "echo first\n");
    centre.says("job edit middle --child last");
    centre.says("job edit first --child middle --child last");
    let written = centre.shell().run("workflow from-children first whole/chain");
    let text = written.succeeds();
    let file = centre.file("chain.yaml", &text);
    assert_eq!(centre.says(&format!("workflow check {}", file.display())), "1 workflows, no problems\n");
    centre.says(&format!("import {}", file.display()));
    let followed = centre.shell().run("workflow run whole/chain --follow").succeeds();
    assert!(followed.contains("last"), "{followed}");
    let run = centre.json("run list --job whole/chain")[0]["id"].as_i64().unwrap();
    let steps = centre.json(&format!("workflow steps {run}"));
    let states: Vec<_> = steps["steps"].as_array().unwrap().iter().map(|step| &step["state"]).collect();
    assert_eq!(states, ["succeeded"; 3]);
    assert_eq!(centre.json("run list --job last"), json!([]), "the jobs themselves did not run");
    centre
        .shell()
        .run("workflow from-children whole/chain again")
        .fails(1, "is a workflow of 3 steps already");
    centre.stop();
}

#[test]
fn versions_are_listed_shown_and_restored() {
    let centre = Centre::signed_in();
    let save = |step: &str, wait: u32, remark: &str| {
        let text = format!(
            "workflows:\n  daily:\n    app: {APP}\n    name: Daily\n    remark: {remark}\n    \
             steps:\n      {step}: {{ wait: {wait}s }}\n"
        );
        centre.says(&format!("import {}", centre.file("daily.yaml", &text).display()));
    };
    save("first", 1, "as planned");
    save("second", 2, "renamed");
    let listed = centre.says("workflow versions daily");
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].contains("current") && lines[1].ends_with("renamed"), "{listed}");
    assert!(lines[2].starts_with('1') && lines[2].ends_with("as planned"), "{listed}");
    let shown = centre.says("workflow versions daily 1");
    assert!(shown.contains("name: first") && shown.contains("wait_ms: 1000"), "{shown}");
    centre.shell().run("workflow versions daily 3").fails(4, "no such version");
    let said = centre.says("workflow restore daily 1 --remark 'better so'");
    assert_eq!(said, "version 1 of daily restored\n");
    let versions = centre.json("workflow versions daily");
    assert_eq!((&versions[0]["remark"], &versions[0]["same_as"]), (&json!("better so"), &json!(1)));
    assert_eq!(centre.json("workflow versions daily 3")["workflow"]["steps"][0]["name"], "first");
    centre.stop();
}
