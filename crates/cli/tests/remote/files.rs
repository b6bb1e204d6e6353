//! `tickwright export` and `tickwright import`.

use serde_json::json;

use crate::kit::{APP, Centre};

#[test]
fn what_was_exported_is_imported_elsewhere_and_again_without_a_change() {
    let centre = Centre::signed_in();
    centre.script_job("reports/daily", "echo \"it's: $1\"\n\techo '# done'\n");
    centre.says("job edit reports/daily --cron '0 0 6 * * ?' --zone Asia/Shanghai --tag nightly");
    centre.says(&format!("job add reports/before --app {APP} --handler h --every 90s --child reports/daily"));
    centre.says("job start reports/before");
    let exported = centre.says("export");
    assert_eq!(exported, centre.says(&format!("export --app {APP}")));

    let again = centre.shell().input(&exported).run("import -");
    assert!(again.stderr.contains("2 jobs, 2 of them unchanged"), "{}", again.stderr);
    assert_eq!(again.succeeds(), "");

    let other = Centre::signed_in();
    let file = other.file("jobs.yaml", &exported);
    let dry = other.shell().run(&format!("import --dry-run {}", file.display()));
    assert!(dry.stderr.contains("dry run, nothing was changed"), "{}", dry.stderr);
    let dry = dry.succeeds();
    assert!(dry.contains("add     reports/before") && dry.contains("add     reports/daily"), "{dry}");
    assert_eq!(other.json("job list"), json!([]));
    other.says(&format!("import {}", file.display()));
    assert_eq!(other.says("export"), exported);
    let steps = other.json(&format!("import {}", file.display()));
    assert!(steps.as_array().unwrap().iter().all(|step| step["change"] == "none"), "{steps}");
    other.says(&format!("export {}", file.display()));
    assert_eq!(std::fs::read_to_string(file).unwrap(), exported);
    centre.stop();
    other.stop();
}

#[test]
fn an_import_names_what_it_changes_and_goes_on_after_what_is_refused() {
    let centre = Centre::signed_in();
    for key in ["one", "two"] {
        centre.says(&format!("job add {key} --app {APP} --handler h --every 1h"));
    }
    let exported = centre.says("export");
    let changed = exported.replacen("handler: h", "handler: other", 1).replacen("3600000", "0", 2);
    let (first, second) = changed.split_at(changed.find("  two:").unwrap());
    let changed = format!("{}{}", first.replace("every_ms: 0", "every_ms: 7200000"), second);
    let imported = centre.shell().input(&changed).run("import -");
    assert!(imported.stdout.contains("change    one  handler, schedule"), "{}", imported.stdout);
    assert!(imported.stdout.contains("rejected  two  schedule.every_ms: "), "{}", imported.stdout);
    imported.fails(1, "1 of 2 jobs were rejected");
    assert_eq!(centre.json("job show one")["handler"], "other");

    centre
        .shell()
        .input("jobs: {x: {app: a}}")
        .run("import -")
        .fails(1, "not a list of jobs and workflows by key");
    centre.shell().run("import nowhere.yaml").fails(1, "failed to read nowhere.yaml");
    centre.stop();
}

#[test]
fn an_import_takes_many_jobs_at_once_and_all_or_none_if_asked() {
    let centre = Centre::signed_in();
    let job = |number: usize, name: &str| {
        format!("  many/{number:05}: {{app: {APP}, name: '{name}', handler: h, schedule: {{kind: none}}}}\n")
    };
    let file = |jobs: std::ops::Range<usize>, bad: Option<usize>| {
        let each = jobs.map(|number| job(number, if bad == Some(number) { " " } else { "x" }));
        format!("jobs:\n{}", each.collect::<String>())
    };
    let atomic = centre.shell().input(&file(0..20, Some(7))).run("import - --atomic");
    assert!(atomic.stdout.contains("rejected  many/00007  name: "), "{}", atomic.stdout);
    atomic.fails(1, "20 of 20 jobs were rejected");
    assert_eq!(centre.json("job list"), json!([]));
    // More than one request.
    let imported = centre.shell().input(&file(0..2_300, Some(1_500))).run("import -");
    imported.fails(1, "1 of 2300 jobs were rejected");
    let again = centre.shell().input(&file(0..2_300, None)).run("import -");
    assert!(again.stderr.contains("2300 jobs, 2299 of them unchanged"), "{}", again.stderr);
    let too_many = centre.shell().input(&file(0..1_001, None)).run("import - --atomic");
    too_many.fails(1, "at most 1000 jobs");
    assert_eq!(centre.json("job list --all").as_array().unwrap().len(), 2_300);
    centre.stop();
}
