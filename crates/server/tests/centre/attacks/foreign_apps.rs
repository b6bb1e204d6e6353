//! Apps, jobs, runs and users of others, requested by id, in lists, in bodies and in queries.

use engine::{AppId, JobId, RunId, Store as _};
use serde_json::{Value, json};
use store::{Addresses, AppSpec, Rights};
use tickwright_server::web_routes;

use super::evidence::Evidence;
use crate::kit::{Bench, echo, until};
use crate::script::{NEW, OLD, Script, job_form};
use crate::v1::client::{PASSWORD, body};

/// An app of another user, with a job and a run of it.
struct Foreign {
    app: AppId,
    job: JobId,
    run: RunId,
}

/// An id that does not exist.
const MISSING: i64 = 471_147_114_711;

impl Foreign {
    async fn of(bench: &Bench) -> Foreign {
        let spec = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
        let app = bench.database.create_app(&spec).await.unwrap();
        let job = bench.job("foreign", |spec| spec.app = app).await;
        let run = bench.run(job, None).await[0].id;
        Foreign { app, job, run }
    }
}

/// X8 (CVE-2022-36157), X13 (CVE-2023-27087): every path of the web API, for unauthenticated callers and
/// non-administrators. The same for every path of `/v1`: `every_route_lets_in_exactly_who_may`.
#[tokio::test]
async fn administrators_paths_are_closed_to_others_and_all_paths_to_strangers() {
    let bench = Bench::start().await;
    bench.person("member", Rights::MEMBER).await;
    for login in [OLD, NEW] {
        let script = bench.script(login, "member", PASSWORD).await;
        let before = Evidence::before(&bench).await;
        let mut attempts = 0;
        for route in web_routes().iter().filter(|route| route.needs == "admin") {
            // The form is not even read.
            let form =
                [("id", "1"), ("ids[]", "1"), ("username", "evil"), ("role", "1"), ("appname", "evil")];
            assert_eq!(script.refused(route.path, &form).await, "only administrators may do this");
            attempts += 1;
        }
        before.refused(attempts);
    }
    let before = Evidence::before(&bench).await;
    for route in web_routes().iter().filter(|route| route.needs != "nobody") {
        for method in ["GET", "POST"] {
            let there = bench.request(method, route.path, "", &[("id", "1"), ("logId", "1")]).await;
            let gone = bench.request(method, route.path, "", &[("id", "4711"), ("logId", "4711")]).await;
            assert!([302, 405].contains(&there.status) || there.json()["code"] == 500, "{there:?}");
            assert_eq!(there.body, gone.body, "{} tells strangers what is there", route.path);
        }
    }
    // Unauthenticated calls are audited up to a limit, or they could fill the database.
    before.refused(20);
    bench.stop().await;
}

/// X9 (CVE-2023-33779), X12 (CVE-2025-9263, CVE-2025-9264): jobs of other apps can be neither used nor moved, and
/// look like jobs that do not exist; in both dialects of the web API and the calls of programs. `/v1` is tested in
/// `a_foreign_app_cannot_be_reached_through_a_body_or_a_query`.
#[tokio::test]
async fn jobs_of_other_apps_can_be_neither_used_nor_seen() {
    let bench = Bench::start().await;
    let foreign = Foreign::of(&bench).await;
    bench.person("member", Rights::MEMBER).await;
    let own = bench.job("own", |_| {}).await.to_string();
    for login in [OLD, NEW] {
        let script = bench.script(login, "member", PASSWORD).await;
        let before = Evidence::before(&bench).await;
        same_as_missing(&script, &foreign).await;
        let (job, group) = (foreign.job.to_string(), foreign.app.0.to_string());
        // Nor may a job be created there, or moved there.
        let change = ("jobGroup", group.as_str());
        script.refused(&script.path("/jobinfo/add", "/jobinfo/insert"), &job_form(&[change])).await;
        script.refused("/jobinfo/update", &job_form(&[("id", &own), change])).await;
        before.refused(6 * 2 + 3);
        for filter in [("jobGroup", group.as_str()), ("jobGroup", "0"), ("jobGroup", "-1"), ("jobId", &job)] {
            for list in ["/jobinfo/pageList", "/joblog/pageList"] {
                let (rows, _) = script.page(list, &[filter]).await;
                assert!(rows.iter().all(|row| row["jobGroup"] == 1), "{list} {filter:?}");
            }
        }
        let chosen = script.done("/joblog/getJobsByGroup", &[("jobGroup", &group)]).await;
        assert_eq!(chosen, json!([]));
    }
    let before = Evidence::before(&bench).await;
    for name in ["updateJob", "removeJob", "startJob", "stopJob", "triggerJob"] {
        let ask = async |id: i64| {
            let mut call: serde_json::Map<String, Value> =
                job_form(&[]).into_iter().map(|(name, text)| (name.into(), text.into())).collect();
            call.insert("id".into(), id.into());
            call.insert("name".into(), "forged".into());
            let call = Value::Object(call).to_string();
            bench.post(&format!("/api/{name}"), Some(&bench.token), &call).await
        };
        let (theirs, missing) = (ask(foreign.job.0).await, ask(MISSING).await);
        assert!(theirs.contains(r#""code":500"#), "{name}: {theirs}");
        assert_eq!(theirs.replace(&foreign.job.to_string(), &MISSING.to_string()), missing, "{name}");
    }
    before.refused(10);
    bench.stop().await;
}

/// Every call that names a job or a run answers the same for one of another app as for one that does not exist.
async fn same_as_missing(script: &Script<'_>, foreign: &Foreign) {
    let check = async |path: &str, field: &str, theirs: &str, form: &[(&str, &str)]| {
        let missing = MISSING.to_string();
        let ask = async |id: &str| {
            let named: Vec<_> = form.iter().copied().chain([(field, id)]).collect();
            script.refused(path, &named).await
        };
        assert_eq!(ask(theirs).await.replace(theirs, &missing), ask(&missing).await, "{path}");
    };
    let (job, run) = (foreign.job.to_string(), foreign.run.to_string());
    let form = job_form(&[]);
    let remove = script.path("/jobinfo/remove", "/jobinfo/delete");
    for path in ["/jobinfo/start", "/jobinfo/stop", &remove] {
        check(path, script.id_field(), &job, &[]).await;
    }
    for path in ["/jobinfo/update", "/jobinfo/trigger", "/jobcode/save"] {
        check(path, "id", &job, &form).await;
    }
    check("/joblog/logKill", "id", &run, &[]).await;
    check("/joblog/logDetailCat", "logId", &run, &[]).await;
    check("/joblog/clearLog", "jobId", &job, &[("jobGroup", "1"), ("type", "9")]).await;
}

/// X10 (CVE-2024-42681): children of a job must exist, be jobs that its author may run, and form no cycle.
#[tokio::test]
async fn children_exist_are_the_author_s_own_and_never_lead_back() {
    let bench = Bench::start().await;
    let foreign = Foreign::of(&bench).await;
    let member = bench.person("member", Rights::MEMBER).await;
    let (first, second) = (bench.job("first", |_| {}).await, bench.job("second", |_| {}).await);
    let mut follows = bench.database.job(first).await.unwrap().unwrap().spec;
    follows.children = vec![second];
    bench.engine.edit(first, follows, None).await.unwrap();

    let many = vec![first.to_string(); 10_000].join(",");
    let (missing, theirs) = (MISSING.to_string(), foreign.job.to_string());
    let (itself, circle) = (second.to_string(), first.to_string());
    let wrong =
        [theirs.as_str(), &itself, &circle, &missing, "-1", "0", "1,,2", "x", "99999999999999999999", &many];
    let scripts = [bench.script(OLD, "member", PASSWORD).await, bench.script(NEW, "member", PASSWORD).await];
    let before = Evidence::before(&bench).await;
    for children in wrong {
        for script in &scripts {
            let form = job_form(&[("id", &itself), ("childJobId", children)]);
            assert!(script.refused("/jobinfo/update", &form).await.starts_with("childJobId: "), "{children}");
        }
        let mut job = body(&bench.app, "second");
        job["children"] = children.split(',').map(Value::from).collect();
        let path = format!("/v1/jobs/id:{second}");
        assert_eq!(member.refused("PUT", &path, &job).await, "invalid_fields", "{children}");
        let mut call = json!({ "id": second.0, "childJobId": children });
        for (name, text) in job_form(&[]).into_iter().filter(|(name, _)| *name != "childJobId") {
            call[name] = text.into();
        }
        let answer = bench.post("/api/updateJob", Some(&bench.token), &call.to_string()).await;
        assert!(answer.contains("childJobId: "), "{children}: {answer}");
    }
    before.refused(wrong.len() * 4);
    bench.stop().await;
}

/// X11 (CVE-2023-48087 and five reports since): a caller that tries one id after another reads no log of other apps,
/// clears none, and is audited.
#[tokio::test]
async fn logs_of_other_apps_are_neither_read_nor_cleared() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let spec = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
    let other = bench.database.create_app(&spec).await.unwrap();
    let job = bench.job("echo", |_| {}).await;
    let run = bench.run(job, Some("a secret of theirs")).await[0].id;
    until("its log is kept", async || bench.database.kept_run_log(run).await.unwrap()).await;
    let run = run.0;
    let grants = [(other, Rights::ALL)].into();
    bench.user("neighbour", &store::Access { grants, ..Default::default() }).await;
    let neighbour = bench.client("neighbour", PASSWORD).await;
    for login in [OLD, NEW] {
        let script = bench.script(login, "neighbour", PASSWORD).await;
        let before = Evidence::before(&bench).await;
        for number in 1..run + 3 {
            let number = number.to_string();
            let form = [("logId", number.as_str()), ("fromLineNum", "1")];
            let why = script.refused("/joblog/logDetailCat", &form).await;
            assert_eq!(why, format!("run {number} does not exist"));
        }
        let (theirs, own, job) = ("1", other.0.to_string(), job.to_string());
        for form in [
            [("jobGroup", theirs), ("jobId", "0")],
            [("jobGroup", &own), ("jobId", &job)],
            [("jobGroup", "0"), ("jobId", &job)],
            [("jobGroup", "-1"), ("jobId", &job)],
            [("jobGroup", "0"), ("jobId", "0")],
        ] {
            script.refused("/joblog/clearLog", &[form[0], form[1], ("type", "9")]).await;
        }
        before.refused(1 + 5);
    }
    let before = Evidence::before(&bench).await;
    for path in ["", "/log", "/log/live", "/log/download"] {
        let ask =
            async |run: i64| neighbour.send("GET", &format!("/v1/runs/{run}{path}"), &Value::Null).await;
        let (theirs, missing) = (ask(run).await, ask(MISSING).await);
        assert_eq!((theirs.status, &theirs.body), (404, &missing.body), "{path}");
    }
    before.refused(4);
    let page = bench.admin().await.get("/v1/audit?principal=neighbour").await;
    assert_eq!(page["items"][0]["object"], format!("run:{run}"), "what was tried is named: {page}");
    bench.stop().await;
}
