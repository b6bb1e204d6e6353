//! From the first registration to the last report, with centres of every lineage, working and broken.

mod kit;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::{Centre, Fault, TOKEN, builder, call, trigger, with};
use protocol::xxl::Lineage;
use serde_json::json;
use tickwright_executor::{Context, Error, Executor, Job, Stopped, Timestamp};
use timer::testing::ManualClock;
use tokio::sync::Semaphore;

const SOON: Duration = Duration::from_secs(120);

#[tokio::test]
async fn centres_of_every_lineage_are_served() {
    for lineage in Lineage::ALL {
        let centre = Centre::start(lineage).await;
        let directory = tempfile::tempdir().unwrap();
        let executor = builder(&centre, directory.path()).job(echo()).start().await.unwrap();
        let to = executor.local_address();
        centre.until("a registration", |centre| !centre.registered().is_empty()).await;
        assert_eq!(centre.registered()[0], format!("http://{to}/"));
        for run_id in [100, 200, 300] {
            let answer = call(to, lineage.trigger_path(), &trigger(run_id, "echo", "hi").to_string()).await;
            assert_eq!(answer["code"], 200);
            assert_eq!(centre.result(run_id).await, (200, "hi".to_owned()), "{lineage:?}");
        }
        // The wrong shape was tried once, and the right one remembered.
        assert_eq!(centre.refused(), usize::from(lineage == Lineage::Next));
        assert_eq!(executor.stop(SOON).await, Stopped::default());
        assert_eq!(centre.removed(), [format!("http://{to}/")]);
        assert_eq!(centre.results().len(), 3);
    }
}

#[tokio::test]
async fn the_first_node_that_answers_is_enough() {
    let centre = Centre::start(Lineage::L23).await;
    let directory = tempfile::tempdir().unwrap();
    let executor = Executor::builder("app")
        .centre(format!("http://127.0.0.1:1,{}", centre.url()))
        .centre("http://127.0.0.1:2")
        .token(TOKEN)
        .listen("127.0.0.1:0")
        .address("http://proxy:1234/job")
        .directory(directory.path())
        .job(echo())
        .start()
        .await
        .unwrap();
    centre.until("a registration", |centre| centre.registered() == ["http://proxy:1234/job"]).await;
    call(executor.local_address(), "/run", &trigger(1, "echo", "hi").to_string()).await;
    assert_eq!(centre.result(1).await.0, 200);
    executor.stop(SOON).await;
}

#[tokio::test]
async fn it_registers_every_thirty_seconds() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_794_744_000_000)));
    let executor = builder(&centre, directory.path())
        .clock(Arc::clone(&clock) as Arc<_>)
        // Nothing else may sleep on this clock.
        .log_retention(Duration::ZERO)
        .start()
        .await
        .unwrap();
    for count in 1..=3 {
        centre.until("a registration", |centre| centre.registered().len() == count).await;
        while clock.until_next_wake() != Some(Duration::from_secs(30)) {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(30));
    }
    drop(executor);
}

#[tokio::test]
async fn handlers_end_in_every_way() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let executor = builder(&centre, directory.path())
        .job(echo())
        .job(Job::new("fail", |_| async { Err::<(), _>("deliberate failure") }))
        .job(Job::new("panic", |_| async {
            if true {
                panic!("deliberate panic")
            }
        }))
        .job(Job::new("slow", |_| tokio::time::sleep(Duration::from_secs(3_600))))
        .job(Job::new("long", |_| async { "é".repeat(60_000) }))
        .job(Job::new("set", |ctx: Context| async move { ctx.set_message("set aside") }))
        .job(Job::new("shard", |ctx: Context| async move { format!("{} {:?}", ctx.shard(), ctx.attempt()) }))
        .job(Job::blocking("block", |ctx: Context| ctx.param().to_owned()))
        .job(Job::blocking("block-panic", |_| -> () { panic!("deliberate panic") }))
        .job(Job::blocking("block-slow", |ctx: Context| {
            while !ctx.is_cancelled() {
                std::thread::yield_now();
            }
        }))
        .start()
        .await
        .unwrap();
    let to = executor.local_address();
    let timed = |request| with(request, "executorTimeout", 1);
    let sharded = with(with(trigger(800, "shard", ""), "broadcastIndex", 2), "broadcastTotal", 3);
    let rows = [
        (trigger(100, "echo", "中文 \"x\"\n"), 200, "中文 \"x\"\n".to_owned()),
        (trigger(200, "fail", ""), 500, "deliberate failure".to_owned()),
        (trigger(300, "panic", ""), 500, "the handler panicked: deliberate panic".to_owned()),
        (timed(trigger(400, "slow", "")), 502, "job execute timeout ".to_owned()),
        (timed(trigger(500, "block-slow", "")), 502, "job execute timeout ".to_owned()),
        (trigger(600, "long", ""), 200, format!("{}...", "é".repeat(50_000))),
        (trigger(700, "set", ""), 200, "set aside".to_owned()),
        (sharded, 200, "2/3 None".to_owned()),
        (trigger(900, "block", "hi"), 200, "hi".to_owned()),
        (trigger(1_000, "block-panic", ""), 500, "the handler panicked: deliberate panic".to_owned()),
        (timed(trigger(1_100, "echo", "in time")), 200, "in time".to_owned()),
    ];
    for (request, _, _) in &rows {
        assert_eq!(call(to, "/run", &request.to_string()).await["code"], 200);
    }
    for (request, code, message) in &rows {
        assert_eq!(&centre.result(request["logId"].as_i64().unwrap()).await, &(*code, message.clone()));
    }
    executor.stop(SOON).await;
    assert_eq!(centre.results().len(), rows.len());
}

#[tokio::test]
async fn runs_of_a_job_wait_for_each_other_up_to_a_limit() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let job = {
        let (gate, busy, most) = (Arc::clone(&gate), Arc::clone(&busy), Arc::clone(&most));
        Job::new("gate", move |_| {
            let (gate, busy, most) = (Arc::clone(&gate), Arc::clone(&busy), Arc::clone(&most));
            async move {
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                busy.fetch_sub(1, Ordering::SeqCst);
            }
        })
    };
    let executor = builder(&centre, directory.path()).queue(3).job(job).start().await.unwrap();
    let to = executor.local_address();
    let run = async |run_id| call(to, "/run", &trigger(run_id, "gate", "").to_string()).await;
    assert_eq!(run(100).await["code"], 200);
    while busy.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for run_id in 101..=103 {
        assert_eq!(run(run_id).await["code"], 200);
    }
    let full = run(104).await;
    assert_eq!(full["code"], 500);
    assert!(full["msg"].as_str().unwrap().starts_with("job 1 has 3 runs waiting"), "{full}");
    // Another job has its own lane.
    assert_eq!(run(200).await["code"], 200);
    gate.add_permits(5);
    executor.stop(SOON).await;
    let mut order: Vec<_> = centre.results().iter().map(|item| item.log_id).collect();
    order.sort();
    assert_eq!(order, [100, 101, 102, 103, 200]);
    assert!(most.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn cover_early_stops_the_old_and_runs_the_new() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let executor = builder(&centre, directory.path())
        .job(Job::new("slow", |ctx: Context| async move {
            if ctx.param().is_empty() {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
            }
            ctx.param().to_owned()
        }))
        .start()
        .await
        .unwrap();
    let to = executor.local_address();
    call(to, "/run", &trigger(100, "slow", "").to_string()).await;
    call(to, "/run", &trigger(101, "slow", "").to_string()).await;
    // A duplicate never stops a run, with any block strategy.
    let cover = |request| with(request, "executorBlockStrategy", "COVER_EARLY");
    assert_eq!(call(to, "/run", &cover(trigger(100, "slow", "")).to_string()).await["code"], 500);
    assert!(centre.results().is_empty());
    assert_eq!(call(to, "/run", &cover(trigger(102, "slow", "new")).to_string()).await["code"], 200);
    let reason = "block strategy effect：Cover Early";
    assert_eq!(centre.result(100).await, (500, format!("{reason} [job running, killed]")));
    assert_eq!(
        centre.result(101).await,
        (500, format!("{reason} [job not executed, in the job queue, killed.]"))
    );
    assert_eq!(centre.result(102).await, (200, "new".to_owned()));
    executor.stop(SOON).await;
}

#[tokio::test]
async fn a_killed_run_is_dropped_at_its_next_await() {
    struct Dropped(Arc<Semaphore>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add_permits(1);
        }
    }
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let (started, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let job = {
        let (started, dropped) = (Arc::clone(&started), Arc::clone(&dropped));
        Job::new("slow", move |ctx: Context| {
            let (started, guard) = (Arc::clone(&started), Dropped(Arc::clone(&dropped)));
            async move {
                started.add_permits(1);
                std::future::pending::<()>().await;
                drop((guard, ctx));
            }
        })
    };
    let executor = builder(&centre, directory.path()).job(job).start().await.unwrap();
    let to = executor.local_address();
    call(to, "/run", &trigger(100, "slow", "").to_string()).await;
    started.acquire().await.unwrap().forget();
    call(to, "/kill", r#"{"jobId":1}"#).await;
    dropped.acquire().await.unwrap().forget();
    assert_eq!(centre.result(100).await.0, 500);
    executor.stop(SOON).await;
}

#[tokio::test]
async fn a_blocking_handler_that_does_not_listen_is_left_behind() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let executor = builder(&centre, directory.path())
        .stop_grace(Duration::from_millis(50))
        .job(echo())
        .job(Job::blocking("deaf", move |_| released.lock().unwrap().recv().unwrap_or(())))
        .start()
        .await
        .unwrap();
    let to = executor.local_address();
    call(to, "/run", &trigger(100, "deaf", "").to_string()).await;
    call(to, "/kill", r#"{"jobId":1}"#).await;
    call(to, "/run", &trigger(101, "echo", "next").to_string()).await;
    assert_eq!(centre.result(100).await.0, 500);
    assert_eq!(centre.result(101).await.0, 200);
    executor.stop(SOON).await;
    drop(release);
}

#[tokio::test]
async fn results_are_sent_until_they_are_taken() {
    let centre = Centre::start(Lineage::L23).await;
    let directory = tempfile::tempdir().unwrap();
    centre.plan([Fault::Status500, Fault::Refuse, Fault::SendAgain]);
    let executor = builder(&centre, directory.path()).job(echo()).start().await.unwrap();
    let to = executor.local_address();
    for run_id in 1..=5 {
        call(to, "/run", &trigger(run_id, "echo", "hi").to_string()).await;
    }
    for run_id in 1..=5 {
        assert_eq!(centre.result(run_id).await.0, 200);
    }
    executor.stop(SOON).await;
    let mut ids: Vec<_> = centre.results().iter().map(|item| item.log_id).collect();
    ids.sort();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn what_a_stop_could_not_report_is_reported_after_the_start() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_794_744_000_000)));
    centre.plan([Fault::Status500; 100]);
    let executor = builder(&centre, directory.path())
        .clock(Arc::clone(&clock) as Arc<_>)
        .job(echo())
        .start()
        .await
        .unwrap();
    let to = executor.local_address();
    assert_eq!(call(to, "/run", &trigger(7, "echo", "hi").to_string()).await["code"], 200);
    // The run is finished but not confirmed: the answer is success, and it is not executed again.
    let again = async {
        // Rejected as a duplicate until the run is finished.
        while call(to, "/run", &trigger(7, "echo", "other").to_string()).await["code"] != 200 {}
    };
    tokio::time::timeout(SOON, again).await.unwrap();
    let stopping = tokio::spawn(executor.stop(Duration::from_secs(1)));
    while !stopping.is_finished() {
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(stopping.await.unwrap(), Stopped { killed: 0, unreported: 1 });
    assert!(centre.results().is_empty());

    centre.plan([]);
    let healthy = Centre::start(Lineage::L33).await;
    let executor = builder(&healthy, directory.path()).job(echo()).start().await.unwrap();
    assert_eq!(healthy.result(7).await, (200, "hi".to_owned()));
    executor.stop(SOON).await;
    let executor = builder(&healthy, directory.path()).job(echo()).start().await.unwrap();
    let answer = call(executor.local_address(), "/run", &trigger(7, "echo", "hi").to_string()).await;
    assert_eq!(answer["msg"], "repeat trigger job, logId:7");
    executor.stop(SOON).await;
    assert_eq!(healthy.results().len(), 1);
}

#[tokio::test]
async fn a_stop_takes_nothing_new_and_ends_what_does_not_end() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&ended);
    let executor = builder(&centre, directory.path())
        .job(
            Job::new("slow", |_| tokio::time::sleep(Duration::from_secs(3_600)))
                .init_async(|| async {})
                .destroy(move || {
                    noted.fetch_add(1, Ordering::SeqCst);
                }),
        )
        .start()
        .await
        .unwrap();
    let to = executor.local_address();
    for run_id in [100, 101, 200] {
        call(to, "/run", &trigger(run_id, "slow", "").to_string()).await;
    }
    let stopping = tokio::spawn(executor.stop(Duration::from_millis(200)));
    centre.until("the executor leaves", |centre| !centre.removed().is_empty()).await;
    assert_eq!(stopping.await.unwrap(), Stopped { killed: 3, unreported: 0 });
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    let reason = "web container destroy and kill the job.";
    assert_eq!(centre.result(100).await, (500, format!("{reason} [job running, killed]")));
    assert_eq!(
        centre.result(101).await,
        (500, format!("{reason} [job not executed, in the job queue, killed.]"))
    );
    assert!(tokio::net::TcpStream::connect(to).await.is_err());
}

#[tokio::test]
async fn init_comes_before_the_first_run_and_is_tried_again() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let init = move || match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Err("no database"),
        _ => Ok(()),
    };
    let executor = builder(&centre, directory.path())
        .job(Job::new("copy", |_| async { "copied" }).init(init))
        .start()
        .await
        .unwrap();
    for (run_id, expected) in [
        (1, (500, "the init hook of the handler failed: no database")),
        (2, (200, "copied")),
        (3, (200, "copied")),
    ] {
        call(executor.local_address(), "/run", &trigger(run_id, "copy", "").to_string()).await;
        assert_eq!(centre.result(run_id).await, (expected.0, expected.1.to_owned()));
    }
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    executor.stop(SOON).await;
}

#[tokio::test]
async fn what_cannot_work_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let base = || Executor::builder("app").listen("127.0.0.1:0").directory(directory.path());
    let error = base().listen("0.0.0.0:0").token("default_token").start().await.unwrap_err();
    assert!(matches!(error, Error::WeakToken { .. }), "{error}");
    let error = base().listen("0.0.0.0:0").start().await.unwrap_err();
    assert!(error.to_string().contains("with an empty token"), "{error}");
    let error = base().job(echo()).job(echo()).start().await.unwrap_err();
    assert!(matches!(error, Error::HandlerTwice { .. }), "{error}");
    let error = base().centre("centre:8080").start().await.unwrap_err();
    assert!(matches!(error, Error::Centre { .. }), "{error}");
    let missing = directory.path().join("my.token");
    let error = base().token_file(&missing).start().await.unwrap_err();
    assert!(error.to_string().contains("tickwright app token app --to "), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string(), "a main that returns it shows the sentence");
    let error = base().token("a\nb").start().await.unwrap_err();
    assert!(matches!(error, Error::TokenText), "{error}");
    let error = Executor::builder(" ").start().await.unwrap_err();
    assert!(matches!(error, Error::App), "{error}");
    let error = base().listen("no such host:x").start().await.unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
    let running = base().start().await.unwrap();
    let error = base().start().await.unwrap_err();
    assert!(matches!(error, Error::DirectoryTaken { .. }), "{error}");
    running.stop(SOON).await;
    std::fs::write(&missing, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&missing, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = base().token_file(&missing).start().await.unwrap_err();
    assert!(error.to_string().contains("every user of this machine can read it"), "{error}");
    std::fs::set_permissions(&missing, std::fs::Permissions::from_mode(0o640)).unwrap();
    let strict = base().token_file(&missing).job(echo()).start().await.unwrap();
    assert_eq!(call(strict.local_address(), "/beat", "").await["code"], json!(200), "without its line's end");
    strict.stop(SOON).await;
    // Without a token, on loopback, any client is accepted.
    let open = base().job(echo()).start().await.unwrap();
    assert_eq!(call(open.local_address(), "/beat", "").await["code"], json!(200));
    open.stop(SOON).await;
}

fn echo() -> Job {
    Job::new("echo", |ctx: Context| async move { ctx.param().to_owned() })
}
