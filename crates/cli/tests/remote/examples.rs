//! The workflows in `examples/workflows`, with their executors.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{Centre, Process, TICKWRIGHT, repository, until};

/// The executor of an app of the examples.
fn workers(centre: &Centre, app: &str) -> Process {
    let program = Path::new(TICKWRIGHT).with_file_name("examples").join("workers");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.current_dir(repository()).args(["build", "-p", "tickwright-examples", "--example", "workers"]);
        assert!(build.status().unwrap().success());
    }
    centre.says(&format!("app add {app}"));
    let token = centre.says(&format!("app token {app}"));
    let mut command = Command::new(program);
    command.args([app, &centre.url, token.trim()]);
    Process::start(command)
}

fn output(centre: &Centre, workflow: &str) -> Value {
    let runs = centre.json(&format!("run list --job {workflow}"));
    serde_json::from_str(runs[0]["result_message"].as_str().unwrap()).unwrap()
}

#[test]
fn the_example_workflows_run() {
    let centre = Centre::signed_in();
    let apps = ["warehouse", "billing", "risk", "reports"];
    let _workers: Vec<Process> = apps.iter().map(|app| workers(&centre, app)).collect();
    until("all executors are registered", || {
        let listed = centre.json("app list");
        let of = |name: &str| listed.as_array()?.iter().find(|app| app["name"] == name);
        let is_there = |app: &&str| {
            of(app).is_some_and(|app| app["executors"].as_array().is_some_and(|all| !all.is_empty()))
        };
        apps.iter().all(is_there).then_some(())
    });
    for name in ["daily-sales", "billing", "recompute", "weekly"] {
        let file = repository().join(format!("examples/workflows/{name}.yaml"));
        let file = file.display();
        assert!(centre.says(&format!("workflow check {file}")).contains("no problems"));
        assert!(centre.says(&format!("workflow apply {file}")).contains("add"));
        assert_eq!(centre.says(&format!("workflow apply {file} --dry-run")), "", "nothing would change");
    }

    let followed = centre.shell().run("workflow run shop/daily-sales --follow").succeeds();
    assert!(followed.contains("load_new") && followed.contains("skipped"), "{followed}");
    assert_eq!(output(&centre, "shop/daily-sales"), json!({ "rows": 10 }));
    centre.says("workflow run risk/recompute --follow");
    assert_eq!(output(&centre, "risk/recompute"), json!({ "total": 138 }));

    let run = centre.json("workflow run finance/billing")["run"].as_i64().unwrap();
    let steps = centre.json_once(&format!("workflow steps {run}"), |view| {
        view["steps"].as_array().is_some_and(|steps| steps.iter().any(|step| step["state"] == "waiting"))
    });
    assert!(steps["steps"][1]["message"].as_str().unwrap().starts_with("120 invoices, 48000 CNY"), "{steps}");
    centre.says(&format!("workflow approve {run} approve"));
    centre.json_once(&format!("run show {run}"), |run| run["state"] == "succeeded");
    assert_eq!(centre.json(&format!("workflow steps {run} send"))["output"], json!({ "sent": 120 }));

    // The runs of the last scheduled times are missing, and started.
    centre.shell().input("a-t0ken").run("app secret set reports hook").succeeds();
    assert!(centre.says("app secret list reports").contains("hook"));
    let inputs = json!({ "hook": format!("{}/healthz", centre.url) });
    centre.shell().run(&format!("workflow run board/weekly --inputs '{inputs}' --follow")).succeeds();
    let done = output(&centre, "board/weekly");
    assert_eq!(done["status"], 200, "{done}");
    let graph = centre.says("workflow graph board/weekly --form mermaid");
    assert!(graph.contains("s_sales --> s_board"), "{graph}");
    centre.stop();
}
