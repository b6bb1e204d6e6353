//! The web API, in both dialects.

use std::time::Duration;

use engine::policy::Overlap;
use engine::{JobId, RunState, Store as _};
use executor::{Context, Job};
use serde_json::Value;

use crate::attacks::evidence::Trap;
use crate::kit::{Bench, echo, until};
use crate::script::{NEW, OLD, Script, job_form};

async fn add(script: &Script<'_>, changes: &[(&str, &str)]) -> String {
    let id = script.done(&script.path("/jobinfo/add", "/jobinfo/insert"), &job_form(changes)).await;
    id.as_str().expect("the id is a text").to_owned()
}

async fn stored(bench: &Bench, id: &str) -> Option<engine::Job> {
    bench.database.job(JobId(id.parse().unwrap())).await.unwrap()
}

#[tokio::test]
async fn jobs_are_managed_in_both_dialects() {
    let bench = Bench::start().await;
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let id = add(&script, &[]).await;
        let (rows, total) =
            script.page("/jobinfo/pageList", &[("jobGroup", "1"), ("triggerStatus", "-1")]).await;
        assert_eq!((rows[0]["id"].to_string(), rows.len() as u64), (id.clone(), total));
        for (field, value) in [
            ("jobDesc", Value::from("nightly report")),
            ("scheduleConf", "0 0 2 * * ?".into()),
            ("executorHandler", "echo".into()),
            ("glueType", "BEAN".into()),
            ("triggerStatus", 0.into()),
            ("triggerNextTime", 0.into()),
        ] {
            assert_eq!(rows[0][field], value, "{field}");
        }
        let time = rows[0]["addTime"].as_str().unwrap();
        assert_eq!(time.contains('T'), login == OLD, "{time}");

        let one = script.id_field();
        script.done("/jobinfo/start", &[(one, &id)]).await;
        let job = stored(&bench, &id).await.unwrap();
        assert!(job.enabled && job.next_fire_at.is_some());
        let edit = job_form(&[
            ("id", &id),
            ("scheduleType", "FIX_RATE"),
            ("scheduleConf", "30"),
            ("executorTimeout", "9"),
        ]);
        script.done("/jobinfo/update", &edit).await;
        let job = stored(&bench, &id).await.unwrap();
        assert_eq!((job.enabled, job.spec.timeout), (true, Some(Duration::from_secs(9))));
        assert!(matches!(job.spec.schedule, cron::Schedule::FixedRate { .. }));
        script.done("/jobinfo/stop", &[(one, &id)]).await;
        assert!(!stored(&bench, &id).await.unwrap().enabled);
        script.done(&script.path("/jobinfo/remove", "/jobinfo/delete"), &[(one, &id)]).await;
        assert!(stored(&bench, &id).await.is_none());
        script.done(&script.path("/jobinfo/remove", "/jobinfo/delete"), &[(one, &id)]).await;
        assert_eq!(script.page("/jobinfo/pageList", &[("jobDesc", "no such")]).await, (vec![], 0));
    }
    bench.stop().await;
}

#[tokio::test]
async fn answers_have_the_shape_of_their_dialect() {
    let bench = Bench::start().await;
    let preview = [("scheduleType", "CRON"), ("scheduleConf", "0 0 0 * * ?")];
    let keys = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(",");
    let old = bench.admin_script(OLD).await;
    let json = old.send("GET", "/xxl-job-admin/jobinfo/nextTriggerTime", &preview).await.json();
    assert_eq!((keys(&json).as_str(), json["content"].as_array().unwrap().len()), ("code,content,msg", 5));
    assert_eq!(json["content"][0].as_str().unwrap().len(), "2026-06-21 00:00:00".len());
    let new = bench.admin_script(NEW).await;
    let json = new.send("POST", "/jobinfo/nextTriggerTime", &preview).await.json();
    assert_eq!((keys(&json).as_str(), json["data"].as_array().unwrap().len()), ("code,data,msg,success", 5));
    // 3.2 signs in the new way and otherwise uses the old format.
    let json = new.send("POST", "/jobinfo/add", &job_form(&[])).await.json();
    assert_eq!((keys(&json).as_str(), json["success"].as_bool()), ("code,content,msg,success", Some(true)));
    let json = new.send("GET", "/jobinfo/pageList", &[("start", "0"), ("length", "5")]).await.json();
    assert_eq!(keys(&json), "data,recordsFiltered,recordsTotal");
    let json = new.send("GET", "/jobinfo/pageList", &[("offset", "0"), ("pagesize", "5")]).await.json();
    assert_eq!(keys(&json["data"]), "data,offset,pagesize,total");
    bench.stop().await;
}

#[tokio::test]
async fn parameters_may_come_in_parts() {
    let bench = Bench::start().await;
    let script = bench.admin_script(OLD).await;
    let parts: String = job_form(&[])
        .iter()
        .map(|(name, text)| {
            format!("--qq\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        })
        .collect();
    let body = format!("{parts}--qq--\r\n");
    let request = format!(
        "POST /jobinfo/add HTTP/1.1\r\nHost: centre\r\nConnection: close\r\nCookie: {}\r\n\
         Content-Type: multipart/form-data; boundary=qq\r\nContent-Length: {}\r\n\r\n{body}",
        script.cookie,
        body.len()
    );
    let json = bench.exchange(request.as_bytes()).await.json();
    assert!(json["code"] == 200 && json["content"].is_string(), "{json}");
    bench.stop().await;
}

#[tokio::test]
async fn a_job_added_as_started_fires_by_itself() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let script = bench.admin_script(OLD).await;
    let id = add(&script, &[("triggerStatus", "1"), ("scheduleConf", "* * * * * ?")]).await;
    let job = JobId(id.parse().unwrap());
    until("it has fired", async || {
        let runs = bench.database.runs(job, None, 10).await.unwrap();
        runs.into_iter().find(|run| run.state == RunState::Succeeded)
    })
    .await;
    let unstartable = job_form(&[("triggerStatus", "1"), ("scheduleType", "NONE"), ("scheduleConf", "")]);
    assert!(script.refused("/jobinfo/add", &unstartable).await.starts_with("scheduleType: "));
    bench.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_form_is_named() {
    let bench = Bench::start().await;
    let script = bench.admin_script(NEW).await;
    for (name, text) in [
        ("jobGroup", "77"),
        ("jobDesc", " "),
        ("author", ""),
        ("scheduleType", "FIX_DELAY"),
        ("scheduleConf", "0 0 24 * * ?"),
        ("glueType", "GLUE_COBOL"),
        ("executorHandler", " "),
        ("executorRouteStrategy", "NEAREST"),
        ("misfireStrategy", "CRY"),
        ("executorBlockStrategy", ""),
        ("executorTimeout", "soon"),
        ("childJobId", "x"),
    ] {
        let why = script.refused("/jobinfo/insert", &job_form(&[(name, text)])).await;
        assert!(why.starts_with(&format!("{name}: ")), "{name}: {why}");
    }
    assert_eq!(script.page("/jobinfo/pageList", &[]).await.1, 0, "nothing of that was added");
    let texts =
        ["${7*7}", "{{7*7}}", "<script>alert(1)</script>", "';DROP TABLE xxl_job_info;--", "日本語 \u{202e}"];
    for text in texts {
        let id = add(&script, &[("jobDesc", text), ("author", text), ("executorParam", text)]).await;
        let spec = stored(&bench, &id).await.unwrap().spec;
        assert_eq!((spec.name.as_str(), spec.author.as_str(), spec.param.as_str()), (text, text, text));
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_edit_keeps_what_the_form_cannot_say() {
    let bench = Bench::start().await;
    let script = bench.admin_script(OLD).await;
    let id = add(&script, &[]).await;
    let job = stored(&bench, &id).await.unwrap();
    let zone = cron::Zone::parse("Europe/London").unwrap();
    let cron = cron::Cron::parse("0 0 2 * * ?").unwrap();
    let mut spec = job.spec.clone();
    spec.overlap = Overlap::Skip;
    spec.schedule = cron::Schedule::cron(cron, zone.clone(), cron::DstRule::NATURAL);
    bench.engine.edit(job.id, spec, None).await.unwrap();
    script.done("/jobinfo/update", &job_form(&[("id", &id), ("scheduleConf", "0 0 3 * * ?")])).await;
    let spec = stored(&bench, &id).await.unwrap().spec;
    assert_eq!(spec.overlap, Overlap::Skip);
    let cron = cron::Cron::parse("0 0 3 * * ?").unwrap();
    assert_eq!(spec.schedule, cron::Schedule::cron(cron, zone, cron::DstRule::NATURAL));
    bench.stop().await;
}

#[tokio::test]
async fn a_run_goes_only_to_executors_that_are_registered() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    let script = bench.admin_script(NEW).await;
    let id = add(&script, &[]).await;
    let job = JobId(id.parse().unwrap());
    let trap = Trap::set().await;
    let foreign = trap.url();
    let mixed = format!("{},{foreign}", executor.address());
    for addresses in [foreign.as_str(), &mixed, "http://169.254.169.254/", "x"] {
        let form = [("id", id.as_str()), ("executorParam", "p"), ("addressList", addresses)];
        assert!(script.refused("/jobinfo/trigger", &form).await.starts_with("addressList: "));
    }
    assert!(bench.database.runs(job, None, 10).await.unwrap().is_empty());
    let here = executor.address().trim_end_matches('/').to_owned();
    script.done("/jobinfo/trigger", &[("id", &id), ("executorParam", "there"), ("addressList", &here)]).await;
    let runs = bench.over(job).await;
    assert_eq!(
        (runs[0].address.as_deref(), runs[0].message.as_deref()),
        (Some(executor.address()), Some("there 0/1"))
    );
    script.done("/jobinfo/trigger", &[("id", &id)]).await;
    until("both are over", async || {
        let runs = bench.database.runs(job, None, 10).await.unwrap();
        // A missing parameter means the empty one, not the job's own.
        runs.iter().any(|run| run.message.as_deref() == Some(" 0/1")).then_some(())
    })
    .await;
    trap.caught_nobody().await;
    bench.stop().await;
}

#[tokio::test]
async fn logs_come_from_the_run_s_own_executor() {
    let bench = Bench::start().await;
    let shout = Job::new("shout", |ctx: Context| async move { ctx.log("<script>alert('x')</script>") });
    let _executor = bench.executor(vec![shout]).await;
    let trap = Trap::set().await;
    let foreign = trap.url();
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let id = add(&script, &[("executorHandler", "shout")]).await;
        bench.run(JobId(id.parse().unwrap()), None).await;
        let (rows, _) =
            script.page("/joblog/pageList", &[("jobGroup", "1"), ("jobId", &id), ("logStatus", "1")]).await;
        let run = rows[0]["id"].to_string();
        assert_eq!((&rows[0]["handleCode"], &rows[0]["triggerCode"]), (&Value::from(200), &Value::from(200)));
        let told = rows[0]["triggerMsg"].as_str().unwrap();
        assert!(
            told.starts_with("address：http://127.0.0.1:") && told.contains("<br>code：200<br>"),
            "{told}"
        );
        let elsewhere =
            [("executorAddress", foreign.as_str()), ("address", &foreign), ("addressList", &foreign)];
        let form: Vec<_> =
            [("logId", run.as_str()), ("fromLineNum", "1")].into_iter().chain(elsewhere).collect();
        let log = script.done("/joblog/logDetailCat", &form).await;
        let text = log["logContent"].as_str().unwrap();
        assert!(text.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), "{text}");
        assert_eq!(log["end"], false);
        let next = (log["toLineNum"].as_i64().unwrap() + 1).to_string();
        let log = script.done("/joblog/logDetailCat", &[("logId", &run), ("fromLineNum", &next)]).await;
        assert_eq!((log["end"].as_bool(), log["logContent"].as_str()), (Some(true), Some("")));
        for strange in [
            ("logId", "../../etc/passwd"),
            ("logId", "-1"),
            ("logId", "9223372036854775808"),
            ("logId", "1e3"),
        ] {
            script.refused("/joblog/logDetailCat", &[strange]).await;
        }
    }
    trap.caught_nobody().await;
    bench.stop().await;
}

#[tokio::test]
async fn a_run_is_killed_and_not_tried_again() {
    let bench = Bench::start().await;
    let endless = Job::new("endless", |ctx: Context| async move { ctx.cancellation().cancelled().await });
    let _executor = bench.executor(vec![endless]).await;
    let script = bench.admin_script(OLD).await;
    let id = add(&script, &[("executorHandler", "endless"), ("executorFailRetryCount", "3")]).await;
    let job = JobId(id.parse().unwrap());
    script.done("/jobinfo/trigger", &[("id", &id)]).await;
    let running = until("it runs", async || {
        let runs = bench.database.runs(job, None, 10).await.unwrap();
        runs.into_iter().find(|run| run.state == RunState::Running)
    })
    .await;
    let run = running.id.to_string();
    // Scripts recognize by this that an executor has it.
    let (rows, _) = script.page("/joblog/pageList", &[("jobId", &id)]).await;
    assert_eq!((&rows[0]["triggerCode"], &rows[0]["handleCode"]), (&Value::from(200), &Value::from(0)));
    script.done("/joblog/logKill", &[("id", &run)]).await;
    let runs = bench.over(job).await;
    assert_eq!((runs.len(), runs[0].state), (1, RunState::Cancelled));
    // XXL-JOB has no code for that.
    let (rows, _) = script.page("/joblog/pageList", &[("jobId", &id)]).await;
    assert_eq!(rows[0]["handleCode"], 500);
    // The executor's answer or its report of the end, whichever came first.
    let text = runs[0].message.as_deref().unwrap();
    assert!(text == "cancelled by admin" || text.starts_with("cancelled on request"), "{text}");
    assert!(script.refused("/joblog/logKill", &[("id", &run)]).await.contains("has already finished"));
    bench.stop().await;
}

#[tokio::test]
async fn runs_are_found_and_cleared() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let (one, two) = (add(&script, &[]).await, add(&script, &[]).await);
        for id in [&one, &two] {
            bench.run(JobId(id.parse().unwrap()), None).await;
        }
        let count = async |form: &[(&str, &str)]| script.page("/joblog/pageList", form).await.1;
        assert_eq!(count(&[("jobId", &one)]).await, 1);
        assert_eq!(count(&[("jobId", &one), ("logStatus", "2")]).await, 0);
        let past = "2020-01-01 00:00:00 - 2020-12-31 23:59:59";
        assert_eq!(count(&[("jobId", &one), ("filterTime", past)]).await, 0);
        assert_eq!(count(&[("filterTime", "2020-01-01 00:00:00 - 2199-12-31 23:59:59")]).await, 2);
        script.refused("/joblog/clearLog", &[("jobGroup", "1"), ("jobId", "0"), ("type", "10")]).await;
        for keeps_all in ["1", "2", "3", "4", "5", "6", "7", "8"] {
            script.done("/joblog/clearLog", &[("jobGroup", "1"), ("jobId", &one), ("type", keeps_all)]).await;
        }
        assert_eq!(count(&[]).await, 2);
        script.done("/joblog/clearLog", &[("jobGroup", "1"), ("jobId", &one), ("type", "9")]).await;
        assert_eq!((count(&[("jobId", &one)]).await, count(&[]).await), (0, 1));
        script.done("/joblog/clearLog", &[("jobGroup", "1"), ("jobId", "0"), ("type", "9")]).await;
        assert_eq!(count(&[]).await, 0);
        let chart = script.done("/chartInfo", &[]).await;
        assert!(chart["triggerDayList"].as_array().is_some_and(|days| !days.is_empty()), "{chart}");
        let (old, listed) = (bench.admin_script(OLD).await, [("jobGroup", "1")]);
        let jobs = old.done("/joblog/getJobsByGroup", &listed).await;
        let first = one.parse::<i64>().unwrap();
        assert!(jobs.as_array().unwrap().iter().any(|job| job["id"] == first));
    }
    bench.stop().await;
}

#[tokio::test]
async fn groups_are_managed_in_both_dialects() {
    let bench = Bench::start().await;
    for (login, title) in [(OLD, "title"), (NEW, "name")] {
        let script = bench.admin_script(login).await;
        let name = if login == OLD { "shop.old" } else { "shop-new" };
        let form = [("appname", name), (title, "Shop"), ("addressType", "0"), ("addressList", "")];
        script.done(&script.path("/jobgroup/save", "/jobgroup/insert"), &form).await;
        let (rows, total) = script.page("/jobgroup/pageList", &[("appname", name), (title, "")]).await;
        assert_eq!((total, rows[0][title].as_str()), (1, Some("Shop")));
        let id = rows[0]["id"].to_string();
        let edit = [
            ("id", id.as_str()),
            ("appname", name),
            (title, "Store"),
            ("addressType", "1"),
            ("addressList", "http://127.0.0.1:9,http://127.0.0.1:10/"),
        ];
        script.done("/jobgroup/update", &edit).await;
        let loaded = script.done("/jobgroup/loadById", &[("id", &id)]).await;
        assert_eq!(
            (loaded[title].as_str(), loaded["registryList"].as_array().map(Vec::len)),
            (Some("Store"), Some(2))
        );
        for bad in
            ["", "x", "http://169.254.169.254/", "file:///etc/passwd", "http://a:1,,http://b:1", "http://0/"]
        {
            let form = [
                ("id", id.as_str()),
                ("appname", name),
                (title, "Store"),
                ("addressType", "1"),
                ("addressList", bad),
            ];
            let why = script.refused("/jobgroup/update", &form).await;
            assert!(why.starts_with("addressList: "), "{bad}: {why}");
        }
        let used = add(&script, &[("jobGroup", &id)]).await;
        let delete = script.path("/jobgroup/remove", "/jobgroup/delete");
        assert!(script.refused(&delete, &[(script.id_field(), &id)]).await.contains("is used by job"));
        script.done(&script.path("/jobinfo/remove", "/jobinfo/delete"), &[(script.id_field(), &used)]).await;
        script.done(&delete, &[(script.id_field(), &id)]).await;
        assert!(script.refused(&delete, &[(script.id_field(), "1")]).await.contains("only executor group"));
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_token_given_to_a_group_opens_it() {
    let bench = Bench::start().await;
    let script = bench.admin_script(NEW).await;
    let form = [("appname", "bank"), ("name", "Bank"), ("addressType", "0")];
    let with = |token: &'static str| form.iter().copied().chain([("accessToken", token)]).collect::<Vec<_>>();
    for weak in ["default_token", "short"] {
        script.refused("/jobgroup/insert", &with(weak)).await;
    }
    let token = "0123456789abcdef0123456789abcdef";
    script.done("/jobgroup/insert", &with(token)).await;
    let registration =
        r#"{"registryGroup":"EXECUTOR","registryKey":"bank","registryValue":"http://127.0.0.1:9/"}"#;
    let answer = bench.post("/api/registry", Some(token), registration).await;
    assert!(answer.contains(r#""code":200"#), "{answer}");
    let seen = script.send("GET", "/jobgroup/pageList", &[]).await;
    assert!(!seen.body.contains(token) && !seen.body.contains(&bench.token), "{}", seen.body);
    bench.stop().await;
}

#[tokio::test]
async fn scripts_are_saved_with_their_versions() {
    let bench = Bench::start().await;
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let form = [("glueType", "GLUE_SHELL"), ("glueSource", "echo 1\r\n"), ("executorHandler", "")];
        let id = add(&script, &form).await;
        let source = stored(&bench, &id).await.unwrap().spec.script.unwrap().source;
        assert_eq!(source, "echo 1\n");
        let save = |source, remark| [("id", id.as_str()), ("glueSource", source), ("glueRemark", remark)];
        script.done("/jobcode/save", &save("echo 2", "second")).await;
        assert_eq!(stored(&bench, &id).await.unwrap().spec.script.unwrap().source, "echo 2");
        let versions = bench.database.script_versions(JobId(id.parse().unwrap())).await.unwrap();
        let sources: Vec<&str> = versions.iter().map(|version| version.source.as_str()).collect();
        assert_eq!(sources, ["echo 2", "echo 1\n"], "the first is kept, too");
        assert!(script.refused("/jobcode/save", &save("echo 3", "x")).await.starts_with("glueRemark: "));
        assert!(script.refused("/jobcode/save", &save(" ", "third")).await.starts_with("glueSource: "));
        // A job that calls a handler has none.
        let bean = add(&script, &[]).await;
        script.refused("/jobcode/save", &[("id", &bean), ("glueSource", "x"), ("glueRemark", "first")]).await;
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_chart_counts_what_its_viewer_may_see() {
    let bench = Bench::start().await;
    let admin = bench.admin_script(NEW).await;
    let form = [("appname", "other-app"), ("name", "Other"), ("addressType", "0"), ("addressList", "")];
    admin.done("/jobgroup/insert", &form).await;
    bench.run(bench.job("nobody", |_| {}).await, None).await;
    for (name, groups) in [("insider", "1"), ("outsider", "2")] {
        let form = [("username", name), ("password", "correct horse"), ("role", "0"), ("permission", groups)];
        admin.done("/user/insert", &form).await;
    }
    bench.database.refresh_report(bench.engine.now()).await.unwrap();
    let failed = async |script: &Script<'_>| {
        script.done("/chartInfo", &[]).await["triggerCountFailTotal"].as_i64().unwrap()
    };
    assert_eq!(failed(&admin).await, 1);
    assert_eq!(failed(&bench.script(NEW, "insider", "correct horse").await).await, 1);
    assert_eq!(failed(&bench.script(NEW, "outsider", "correct horse").await).await, 0);
    drop(admin);
    bench.stop().await;
}
