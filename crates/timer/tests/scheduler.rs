//! Guarantees of the scheduler, tested on a manual clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::{Kit, eventually, ms};
use proptest::prelude::*;
use tickwright_timer::{
    CalendarInterval, Clock, Cron, DailyWindow, Day, DayEntry, FailureCause, IntervalUnit, Late, NthWorkday,
    OnDays, Past, Rule, Scheduler, Shift, Shutdown, Span, TimeOfDay, Timestamp, Timetable, Weekdays, When,
    WorkCalendar, Workdays, Zone,
};

#[tokio::test]
async fn each_rule_fires_at_its_instants_and_not_before() {
    let second = ms(1_000);
    let at = |millis| Timestamp::from_millis(kit::START + millis);
    check(When::at(at(500)), &[(499, ""), (1, "500"), (5_000, "")]).await;
    check(When::at(at(-1)), &[(0, "-1"), (5_000, "")]).await;
    check(When::after(ms(500)), &[(499, ""), (1, "500"), (5_000, "")]).await;
    check(When::after(Duration::MAX), &[(0, ""), (1_000_000_000_000, "")]).await;
    check(When::fixed_rate(second), &[(0, "0"), (999, ""), (1, "1000"), (1_000, "2000")]).await;
    check(When::fixed_rate(second).initial_delay(ms(300)), &[(299, ""), (1, "300"), (1_000, "1300")]).await;
    check(When::fixed_delay(second), &[(0, "0"), (999, ""), (1, "1000"), (1_000, "2000")]).await;
    check(When::fixed_delay(second).initial_delay(ms(300)), &[(299, ""), (1, "300"), (1_000, "1300")]).await;
    let minutely = || When::cron("0 * * * * ?", "UTC").unwrap();
    check(minutely(), &[(0, ""), (59_999, ""), (1, "60000"), (60_000, "120000")]).await;
    check(minutely().initial_delay(ms(60_000)), &[(119_999, ""), (1, "120000")]).await;
    // Finer than the tick: never early, and the rate is kept on average.
    check(When::fixed_rate(Duration::from_micros(1_500)), &[(0, "0"), (1, ""), (1, "2"), (1, "3")]).await;
}

#[tokio::test]
async fn a_timetable_follows_windows_intervals_and_work_calendars() {
    let hour = 3_600_000;
    let at = |text: &str| text.parse::<TimeOfDay>().unwrap();
    let utc = Zone::utc;
    // The clock starts on Sunday 21 June 2026, a make-up workday. Monday and Wednesday are holidays.
    let mut calendar = WorkCalendar::default();
    let day = |text: &str| text.parse::<Day>().unwrap();
    calendar.set(day("2026-06-21"), DayEntry::work("make-up day"));
    calendar.set(day("2026-06-22"), DayEntry::off("holiday"));
    calendar.set(day("2026-06-24"), DayEntry::off("holiday"));
    let calendar = Arc::new(calendar);
    let daily = || Rule::cron(Cron::parse("0 0 9 * * ?").unwrap(), utc());
    let on = |shift| Workdays::new(Arc::clone(&calendar), OnDays::Work, shift);

    let nine = |days: u64| ((24 * days + 9) * hour).to_string();
    let (first, third, fifth) = (nine(0), nine(2), nine(4));
    let skipping = When::timetable(daily().on(on(Shift::Skip)));
    check(
        skipping,
        &[(9 * hour, &first), (24 * hour, ""), (24 * hour, &third), (47 * hour, ""), (hour, &fifth)],
    )
    .await;
    // Monday's fire moves to Tuesday's and is the same; Wednesday's moves to Thursday's.
    let moving = When::timetable(daily().on(on(Shift::Next)));
    check(
        moving,
        &[(9 * hour, &first), (24 * hour, ""), (24 * hour, &third), (47 * hour, ""), (hour, &fifth)],
    )
    .await;

    let second = NthWorkday::new(2, Span::Week, at("09:00"), Arc::clone(&calendar)).unwrap();
    check(When::timetable(Rule::nth_workday(second, utc())), &[(105 * hour - 1, ""), (1, &fifth)]).await;

    let window = DailyWindow::new(at("01:00"), at("02:00"), ms(hour / 2), Weekdays::ALL).unwrap();
    let fires = [
        (hour, "3600000"),
        (hour / 2, "5400000"),
        (hour / 2, "7200000"),
        (23 * hour - 1, ""),
        (1, "90000000"),
    ];
    check(When::timetable(Rule::window(window, utc())), &fires).await;

    let two_days = CalendarInterval::new(day("2026-06-21"), at("09:00"), 2, IntervalUnit::Days).unwrap();
    let both = Timetable::new(vec![Rule::interval(two_days, utc()), daily().on(on(Shift::Skip))]).unwrap();
    check(When::timetable(both), &[(9 * hour, &first), (48 * hour, &third), (48 * hour, &fifth)]).await;
}

#[tokio::test]
async fn after_a_pause_a_rate_fires_once_unless_it_catches_up() {
    let rate = || When::fixed_rate(ms(1_000)).initial_delay(ms(1_000));
    check(rate(), &[(3_600_500, "1000"), (499, ""), (1, "3601000")]).await;
    check(rate().catch_up(), &[(4_500, "1000 2000 3000 4000"), (500, "5000")]).await;

    let cron = || When::cron("* * * * * ?", "UTC").unwrap();
    check(cron(), &[(3_600_500, "1000"), (499, ""), (1, "3601000")]).await;
    check(cron().catch_up(), &[(4_500, "1000 2000 3000 4000"), (500, "5000")]).await;

    let kit = Kit::new();
    let handle = kit.scheduler.spawn("rate", rate(), || async {});
    kit.pass(3_600_500).await;
    assert_eq!((handle.count(), handle.missed()), (1, 3_599));
    let late =
        Late::Started { task: "rate".into(), scheduled_at: kit::at(1_000), by: ms(3_599_500), missed: 3_599 };
    assert_eq!(kit.lates(), [late]);
}

#[tokio::test]
async fn a_slow_task_never_runs_beside_itself() {
    // Each run takes 2.5 s: ticks that pass meanwhile become one run.
    let slow = ms(2_500);
    check_slow(When::fixed_rate(ms(1_000)), slow, "0 1000@2500 3000@5000").await;
    check_slow(When::fixed_rate(ms(1_000)).catch_up(), slow, "0 1000@2500 2000@5000").await;
    check_slow(When::fixed_delay(ms(1_000)), slow, "0 3500 7000").await;
}

#[tokio::test]
async fn an_own_trigger_hears_the_past_and_decides() {
    let kit = Kit::new();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = Arc::clone(&heard);
    let trigger = move |past: Past| {
        tell.lock().unwrap().push(past);
        (past.last.is_none_or(|run| run.scheduled_at < kit::at(300))).then(|| past.now + ms(200))
    };
    let handle = kit.spawn("own", When::trigger(trigger), ms(50));
    for _ in 0..20 {
        kit.pass(50).await;
    }
    let last = |scheduled, completed| {
        let (scheduled_at, completed_at) = (kit::at(scheduled), kit::at(completed));
        Some(tickwright_timer::Run { scheduled_at, started_at: scheduled_at, completed_at })
    };
    let expected = [(0, None), (250, last(200, 250)), (500, last(450, 500))];
    assert_eq!(*heard.lock().unwrap(), expected.map(|(now, last)| Past { now: kit::at(now), last }));
    assert_eq!(handle.count(), 2);
    assert!(handle.is_over());
}

#[tokio::test]
async fn a_trigger_that_panics_ends_its_task_and_no_other() {
    let kit = Kit::new();
    let trigger = |past: Past| match past.last {
        None => Some(past.now),
        Some(_) => panic!("no idea"),
    };
    let broken = kit.scheduler.spawn("broken", When::trigger(trigger), || async {});
    let other = kit.scheduler.spawn("other", When::fixed_rate(ms(10)), || async {});
    kit.pass(10).await;
    assert!(broken.is_over());
    assert_eq!(kit.causes(), [("broken".to_string(), FailureCause::Trigger("no idea".into()))]);
    kit.pass(10).await;
    assert_eq!(other.count(), 3);
}

#[tokio::test]
async fn failures_and_panics_are_reported_and_the_task_goes_on() {
    let kit = Kit::new();
    let rate = || When::fixed_rate(ms(10));
    let fails = kit.scheduler.spawn("fails", rate(), || async { Err("disk full") });
    let panics = kit.scheduler.spawn("panics", rate(), || async { boom("late") });
    // Panics before there is a future at all.
    let early = kit.scheduler.spawn("early", rate(), || -> std::future::Ready<()> { panic!("early") });
    let blocking = kit.scheduler.spawn_blocking("blocking", rate(), || boom("thread"));
    let fine = kit.scheduler.spawn("fine", rate(), || async { Ok::<(), String>(()) });
    for round in 1..=2 {
        eventually(|| [&fails, &panics, &early, &blocking, &fine].iter().all(|task| task.count() == round))
            .await;
        kit.pass(10).await;
    }
    eventually(|| blocking.count() == 3).await;
    let mut causes = kit.causes();
    causes.sort_by(|a, b| a.0.cmp(&b.0));
    causes.dedup();
    let expected = [
        ("blocking", FailureCause::Panic("boom: thread".into())),
        ("early", FailureCause::Panic("early".into())),
        ("fails", FailureCause::Error("disk full".into())),
        ("panics", FailureCause::Panic("boom: late".into())),
    ];
    assert_eq!(causes, expected.map(|(task, cause)| (task.to_string(), cause)));
    assert_eq!((fails.failures(), fine.failures()), (3, 0));
}

#[tokio::test]
async fn a_panicking_hook_stops_nothing() {
    let clock = tickwright_timer::testing::ManualClock::new(kit::at(0));
    let builder = Scheduler::builder().clock(Arc::new(clock.clone())).max_running(1);
    let scheduler = builder.on_error(|_| panic!("hook")).on_late(|_| panic!("hook")).start();
    let tasks =
        ["a", "b"].map(|name| scheduler.spawn(name, When::fixed_rate(ms(10)), || async { Err("no") }));
    eventually(|| tasks.iter().all(|task| task.count() == 1)).await;
    clock.advance(ms(100));
    eventually(|| tasks.iter().all(|task| task.count() == 2)).await;
}

#[tokio::test]
async fn at_the_limit_runs_wait_in_order_and_are_reported() {
    let kit = Kit::limited(1);
    let first = kit.spawn("first", When::after(ms(0)), ms(2_500));
    kit.pass(0).await;
    assert!(first.is_running());
    let rate = kit.spawn("rate", When::fixed_rate(ms(1_000)), ms(0));
    let once = kit.spawn("once", When::after(ms(500)), ms(0));
    kit.pass(500).await;
    kit.pass(1_900).await;
    assert_eq!(kit.scheduler.load(), tickwright_timer::Load { tasks: 3, held: 2, running: 1 });
    assert_eq!((rate.count(), once.count()), (0, 0));
    kit.pass(100).await;
    assert_eq!(kit.runs(), ["first 0", "rate 0@2500", "once 500@2500"]);
    assert_eq!(rate.missed(), 2);
    let held = |task: &str, at, ahead| Late::Held { task: task.into(), scheduled_at: kit::at(at), ahead };
    let started = |task: &str, at, by, missed| Late::Started {
        task: task.into(),
        scheduled_at: kit::at(at),
        by: ms(by),
        missed,
    };
    let expected = [
        held("rate", 0, 0),
        held("once", 500, 1),
        started("rate", 0, 2_500, 2),
        started("once", 500, 2_000, 0),
    ];
    assert_eq!(kit.lates(), expected);
}

#[tokio::test]
async fn a_cancelled_task_runs_no_more() {
    let kit = Kit::limited(1);
    let waiting = kit.spawn("waiting", When::after(ms(100)), ms(0));
    assert_eq!(waiting.next_at(), Some(kit::at(100)));
    assert!(waiting.cancel());
    assert!(!waiting.cancel());
    assert_eq!(waiting.next_at(), None);
    waiting.over().await;

    let running = kit.spawn("running", When::fixed_rate(ms(10)), ms(50));
    kit.pass(0).await;
    let in_line = kit.spawn("in line", When::after(ms(0)), ms(0));
    kit.pass(0).await;
    assert!(in_line.cancel() && running.cancel());
    kit.pass(10).await;
    assert!(in_line.is_over() && !running.is_over());
    kit.pass(40).await;
    assert!(running.is_over());
    assert_eq!(running.count(), 1);
    kit.pass(1_000).await;
    assert_eq!(kit.runs(), ["running 0"]);
    assert_eq!(kit.scheduler.load().tasks, 0);
}

#[tokio::test]
async fn a_handle_tells_the_next_and_the_last_run() {
    let kit = Kit::new();
    let task = kit.spawn("task", When::fixed_rate(ms(1_000)).initial_delay(ms(500)), ms(0));
    assert_eq!((task.name(), task.count(), task.last_run()), ("task", 0, None));
    assert_eq!(task.next_at(), Some(kit::at(500)));
    kit.pass(600).await;
    assert_eq!(task.count(), 1);
    assert_eq!(task.next_at(), Some(kit::at(1_500)));
    let run = task.last_run().unwrap();
    assert_eq!(
        (run.scheduled_at, run.started_at, run.completed_at),
        (kit::at(500), kit::at(600), kit::at(600))
    );
}

#[tokio::test]
async fn a_step_of_the_wall_clock_moves_what_follows_it_and_nothing_else() {
    let kit = Kit::new();
    let at = kit.spawn("at", When::at(kit::at(3_600_000)), ms(0));
    let after = kit.spawn("after", When::after(ms(3_600_000)), ms(0));
    let rate = kit.spawn("rate", When::fixed_rate(ms(600_000)), ms(0));
    kit.pass(0).await;
    kit.clock.step_wall(-1_800_000);
    kit.pass(1_000).await;
    kit.clock.step_wall(3_600_000 + 1_800_000);
    assert_eq!((at.count(), after.count(), rate.count()), (0, 0, 1));
    // It is noticed within 250 ms.
    kit.pass(250).await;
    assert_eq!((at.count(), after.count(), rate.count()), (1, 0, 1));
    kit.clock.step_wall(-3_600_000);
    kit.pass(598_750).await;
    assert_eq!((at.count(), after.count(), rate.count()), (1, 0, 2));
    kit.pass(3_000_000).await;
    assert_eq!((at.count(), after.count(), rate.count()), (1, 1, 3));
    assert_eq!(rate.missed(), 4);
}

#[tokio::test]
async fn a_calendar_fires_no_instant_twice_and_none_is_lost_to_a_wrong_clock() {
    let minute = 60_000;
    let year = 365 * 24 * 60 * minute as i64;
    let kit = Kit::new();
    let task = kit.spawn("", When::cron("0 * * * * ?", "UTC").unwrap(), ms(0));
    kit.pass(minute).await;
    // Set back over a time that fired: it does not fire again, the one after it does.
    kit.clock.step_wall(-30_000);
    kit.pass(30_000).await;
    kit.pass(minute).await;
    assert_eq!(kit.runs(), [" 60000", " 120000"]);
    // Set a year ahead by mistake: the ticks in between become one run. After the correction the schedule continues.
    kit.clock.step_wall(year);
    kit.pass(1_000).await;
    assert_eq!((task.count(), task.missed()), (3, 10_000));
    assert_eq!(task.next_at(), Some(kit::at(year + 180_000)));
    kit.clock.step_wall(-year);
    kit.pass(1_000).await;
    assert_eq!(task.next_at(), Some(kit::at(240_000)));
    kit.pass(minute * 2).await;
    assert_eq!(task.last_run().unwrap().scheduled_at, kit::at(240_000));
}

#[tokio::test]
async fn a_clock_mended_during_a_run_is_noticed_at_its_end() {
    let hour = 3_600_000;
    let kit = Kit::new();
    let task = kit.spawn("", When::cron("0 * * * * ?", "UTC").unwrap(), ms(10_000));
    kit.clock.step_wall(10 * hour);
    kit.pass(1_000).await;
    assert!(task.is_running());
    kit.clock.step_wall(-10 * hour);
    for _ in 0..4 {
        kit.pass(5_000).await;
    }
    assert_eq!(task.count(), 1);
    assert_eq!(task.next_at(), Some(kit::at(120_000)));
}

#[tokio::test]
async fn blocking_tasks_run_on_threads_of_their_own() {
    let kit = Kit::new();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let blocked = kit.scheduler.spawn_blocking("blocked", When::after(ms(0)), move || {
        gate.recv().map_err(|_| "nobody opened the gate")
    });
    let quick = kit.scheduler.spawn("quick", When::fixed_rate(ms(10)), || async {});
    kit.pass(10).await;
    assert!(blocked.is_running());
    assert_eq!(quick.count(), 2);
    release.send(()).unwrap();
    blocked.over().await;
    assert_eq!((blocked.count(), blocked.failures()), (1, 0));
}

#[tokio::test]
async fn a_shutdown_says_what_ended_and_what_did_not() {
    let kit = Kit::limited(2);
    for (name, length) in [("short", 100), ("long", 100_000)] {
        kit.spawn(name, When::fixed_rate(ms(10)), ms(length));
    }
    kit.pass(0).await;
    let held = kit.spawn("held", When::after(ms(0)), ms(0));
    let waiting = kit.spawn("waiting", When::after(ms(50)), ms(0));
    kit.pass(0).await;
    let scheduler = Arc::clone(&kit.scheduler);
    let shutdown = tokio::spawn(async move { scheduler.shutdown(ms(1_000)).await });
    for _ in 0..10 {
        kit.pass(99).await;
        assert!(!shutdown.is_finished());
    }
    kit.pass(10).await;
    let names = |name: &str| vec![Arc::from(name)];
    let report = Shutdown { finished: names("short"), abandoned: names("long"), unstarted: names("held") };
    assert_eq!(shutdown.await.unwrap(), report);
    assert!(held.is_over() && waiting.is_over());
    assert_eq!(kit.runs(), ["short 0", "long 0"]);

    let too_late = kit.spawn("too late", When::after(ms(0)), ms(0));
    assert!(too_late.is_over());
    assert_eq!(kit.scheduler.shutdown(ms(0)).await, Shutdown::default());
}

#[tokio::test]
async fn an_idle_shutdown_takes_no_time() {
    let kit = Kit::new();
    kit.spawn("waiting", When::after(ms(50)), ms(0));
    assert_eq!(kit.scheduler.shutdown(Duration::MAX).await, Shutdown::default());
}

#[tokio::test]
async fn dropping_the_scheduler_ends_everything() {
    let Kit { clock, scheduler, .. } = Kit::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let running = scheduler.spawn("running", When::after(ms(0)), move || {
        let guard = OnDrop(Arc::clone(&count));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
        }
    });
    let waiting = scheduler.spawn("waiting", When::after(ms(50)), || async {});
    clock.sleepers(1).await;
    eventually(|| running.is_running()).await;
    drop(scheduler);
    running.over().await;
    waiting.over().await;
    eventually(|| dropped.load(Ordering::SeqCst) == 1).await;
}

fn boom(why: &str) {
    panic!("boom: {why}");
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Uses the real clock and several threads; the result does not depend on their speed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_runs_once_each_or_was_cancelled_before() {
    let scheduler = Scheduler::builder().max_running(8).on_late(|_| {}).start();
    let runs: Vec<_> = (0..2_000).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let spawn = |(number, runs): (u64, &Arc<AtomicUsize>)| {
        let runs = Arc::clone(runs);
        let when = When::after(Duration::from_micros(number * 7919 % 5_000));
        scheduler.spawn("one of many", when, move || {
            runs.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        })
    };
    let tasks: Vec<_> = (0..).zip(&runs).map(spawn).collect();
    for task in tasks.iter().step_by(2) {
        task.cancel();
    }
    for (number, (task, runs)) in tasks.iter().zip(&runs).enumerate() {
        task.over().await;
        let runs = runs.load(Ordering::SeqCst);
        assert_eq!(runs as u64, task.count());
        assert!(runs == 1 || runs == 0 && number % 2 == 0, "task {number} ran {runs} times");
    }
    eventually(|| scheduler.load().tasks == 0).await;
}

/// Advances step by step and compares the scheduled times of the runs in each step.
async fn check(when: When, steps: &[(u64, &str)]) {
    let kit = Kit::new();
    let rule = format!("{when:?}");
    kit.spawn("", when, ms(0));
    let mut seen = 0;
    for (length, expected) in steps {
        kit.pass(*length).await;
        let runs = kit.runs();
        let due: Vec<_> = runs[seen..].iter().map(|run| run.trim().split('@').next().unwrap()).collect();
        assert_eq!(due.join(" "), *expected, "{rule}: runs after {length} ms more");
        seen = runs.len();
    }
}

/// Compares the first three runs of a task that takes `length`, in steps of 100 ms.
async fn check_slow(when: When, length: Duration, expected: &str) {
    let kit = Kit::new();
    let rule = format!("{when:?}");
    kit.spawn("", when, length);
    for _ in 0..100 {
        kit.pass(100).await;
    }
    let runs: Vec<_> = kit.runs().iter().take(3).map(|run| run.trim().to_string()).collect();
    assert_eq!(runs.join(" "), expected, "{rule}");
}

#[derive(Clone, Debug)]
enum Disturbance {
    Pause(u64),
    StepWall(i64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_disturbance_makes_anything_early_doubled_or_lost(
        disturbances in proptest::collection::vec(
            prop_oneof![
                3 => (1u64..5_000).prop_map(Disturbance::Pause),
                1 => (-20_000i64..20_000).prop_map(Disturbance::StepWall),
            ],
            1..30,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(disturb(&disturbances));
    }
}

async fn disturb(disturbances: &[Disturbance]) {
    let kit = Kit::new();
    let every_second = || When::cron("* * * * * ?", "UTC").unwrap();
    let rate = kit.spawn("rate", When::fixed_rate(ms(700)), ms(0));
    let strict = kit.spawn("strict rate", When::fixed_rate(ms(700)).catch_up(), ms(0));
    let cron = kit.spawn("cron", every_second(), ms(0));
    let strict_cron = kit.spawn("strict cron", every_second().catch_up(), ms(0));
    let at = kit.spawn("at", When::at(kit::at(10_000)), ms(0));
    let mut latest = 0;
    let mut was_set_back = false;
    for disturbance in disturbances {
        match disturbance {
            Disturbance::Pause(millis) => kit.pass(*millis).await,
            Disturbance::StepWall(millis) => {
                was_set_back |= *millis < 0;
                kit.clock.step_wall(*millis);
                // Until the step is noticed.
                kit.pass(250).await;
            }
        }
        let now = kit.clock.now().as_millis() - kit::START;
        latest = now.max(latest);
        let ticks = (kit.clock.monotonic().as_millis() / 700) as u64 + 1;
        eventually(|| strict.count() == ticks).await;
        eventually(|| was_set_back || strict_cron.count() == latest as u64 / 1_000).await;
        assert_eq!(rate.count() + rate.missed(), ticks);
        assert!(was_set_back || cron.count() + cron.missed() == latest as u64 / 1_000);
        assert_eq!(at.count(), u64::from(latest >= 10_000));
        for task in ["cron", "strict cron"] {
            let fired = kit.due_instants(task);
            assert!(fired.is_sorted_by(|a, b| a < b), "{task} fired twice: {fired:?}");
            assert!(fired.last().is_none_or(|last| *last <= latest), "{task} fired early");
        }
    }
}
