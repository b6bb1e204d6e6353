//! Measures one million pending timers, and how late timers fire on an idle machine: the wheel and the scheduler,
//! compared with a binary heap, tokio-util's `DelayQueue` and one tokio task per timer.
//!
//! `cargo bench -p tickwright-timer` prints a readable table, then one line of JSON per figure. Under `cargo test`
//! it does the same with small sizes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::hint::black_box;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tickwright_timer::testing::ManualClock;
use tickwright_timer::{Clock, Scheduler, SystemClock, Timestamp, Wheel, When};
use tokio::runtime::Runtime;
use tokio_util::time::DelayQueue;

fn main() {
    let size = if std::env::args().any(|argument| argument == "--bench") { FULL } else { SMALL };
    let delays: Vec<u64> = (0..size.pending).map(|_| fastrand::u64(1..SPAN_MS)).collect();
    let mut figures = Figures::default();
    wheel(&delays, &mut figures);
    heap(&delays, &mut figures);
    delay_queue(&delays, &mut figures);
    sleeps(&delays, &mut figures);
    scheduler(&delays, &mut figures);

    let waits: Vec<Duration> =
        (0..size.waits).map(|_| Duration::from_micros(fastrand::u64(1_000..8_000))).collect();
    figures.lateness("scheduler, after", scheduler_after(&waits));
    figures.lateness("scheduler, at", scheduler_at(&waits));
    figures.lateness("binary heap, thread", heap_thread(&waits));
    figures.lateness("DelayQueue", delay_queue_waits(&waits));
    figures.lateness("tokio sleep", sleep_waits(&waits));
    figures.print(&size);
}

struct Size {
    pending: usize,
    waits: usize,
}

const FULL: Size = Size { pending: 1_000_000, waits: 500 };
const SMALL: Size = Size { pending: 1_000, waits: 5 };
/// Pending timers are due within a minute.
const SPAN_MS: u64 = 60_000;

fn wheel(delays: &[u64], figures: &mut Figures) {
    let mut wheel = Wheel::new(at(0));
    let keys = figures.each("insert", "wheel", delays.len(), || {
        delays.iter().map(|delay| wheel.insert(at(*delay), *delay)).collect::<Vec<_>>()
    });
    figures.each("cancel", "wheel", delays.len(), || {
        for key in keys {
            black_box(wheel.cancel(key));
        }
    });
    for delay in delays {
        wheel.insert(at(*delay), *delay);
    }
    figures.each("fire", "wheel", delays.len(), || {
        let mut due = Vec::new();
        for now in 0..SPAN_MS {
            wheel.advance(at(now), &mut due);
            black_box(&due);
            due.clear();
        }
    });
    assert!(wheel.is_empty());
}

/// A heap cannot remove an entry from its middle, so cancelling marks it dead and firing skips it.
fn heap(delays: &[u64], figures: &mut Figures) {
    let mut heap = BinaryHeap::new();
    figures.each("insert", "binary heap", delays.len(), || {
        for (id, delay) in delays.iter().enumerate() {
            heap.push(Reverse((*delay, id)));
        }
    });
    let mut dead = HashSet::new();
    figures.each("cancel", "binary heap", delays.len(), || {
        for id in 0..delays.len() {
            dead.insert(id);
        }
    });
    dead.clear();
    figures.each("fire", "binary heap", delays.len(), || {
        for now in 0..SPAN_MS {
            while heap.peek().is_some_and(|Reverse((at, _))| *at <= now) {
                let fired = heap.pop().filter(|Reverse((_, id))| !dead.contains(id));
                black_box(fired);
            }
        }
    });
    assert!(heap.is_empty());
}

fn delay_queue(delays: &[u64], figures: &mut Figures) {
    paused().block_on(async {
        let mut queue = DelayQueue::new();
        let keys = figures.each("insert", "DelayQueue", delays.len(), || {
            delays.iter().map(|delay| queue.insert(*delay, Duration::from_millis(*delay))).collect::<Vec<_>>()
        });
        figures.each("cancel", "DelayQueue", delays.len(), || {
            for key in keys {
                black_box(queue.remove(&key));
            }
        });
        for delay in delays {
            queue.insert(*delay, Duration::from_millis(*delay));
        }
        let started = Instant::now();
        while !queue.is_empty() {
            tokio::time::advance(Duration::from_millis(1)).await;
            let mut context = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some(fired)) = queue.poll_expired(&mut context) {
                black_box(fired);
            }
        }
        figures.took("fire", "DelayQueue", delays.len(), started);
    });
}

fn sleeps(delays: &[u64], figures: &mut Figures) {
    let spawn = |delay: &u64| tokio::spawn(tokio::time::sleep(Duration::from_millis(*delay)));
    paused().block_on(async {
        let started = Instant::now();
        let tasks: Vec<_> = delays.iter().map(spawn).collect();
        // A sleep counts from its first poll.
        tokio::task::yield_now().await;
        figures.took("insert", "tokio sleep", delays.len(), started);
        let started = Instant::now();
        tasks.iter().for_each(|task| task.abort());
        for task in tasks {
            black_box(task.await.is_err());
        }
        figures.took("cancel", "tokio sleep", delays.len(), started);
        let tasks: Vec<_> = delays.iter().map(spawn).collect();
        tokio::task::yield_now().await;
        let started = Instant::now();
        for task in tasks {
            black_box(task.await.is_ok());
        }
        figures.took("fire", "tokio sleep", delays.len(), started);
    });
}

/// Measures the whole scheduler: names, handles, hooks, and one run on the runtime per timer.
fn scheduler(delays: &[u64], figures: &mut Figures) {
    paused().block_on(async {
        let clock = ManualClock::new(at(0));
        let scheduler = Scheduler::builder().clock(Arc::new(clock.clone())).start();
        let name: Arc<str> = "task".into();
        let spawn = |delay: &u64| {
            let when = When::after(Duration::from_millis(*delay));
            scheduler.spawn(Arc::clone(&name), when, || async {})
        };
        let settled = async |tasks| {
            while scheduler.load().tasks != tasks {
                tokio::task::yield_now().await;
            }
        };
        let started = Instant::now();
        let tasks: Vec<_> = delays.iter().map(spawn).collect();
        settled(tasks.len()).await;
        figures.took("insert", "scheduler", delays.len(), started);
        let started = Instant::now();
        for task in &tasks {
            task.cancel();
        }
        settled(0).await;
        figures.took("cancel", "scheduler", delays.len(), started);
        let tasks: Vec<_> = delays.iter().map(spawn).collect();
        settled(tasks.len()).await;
        let started = Instant::now();
        while scheduler.load().tasks > 0 {
            clock.advance(Duration::from_millis(1));
            // The driver wakes, starts the runs and receives their completions.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        figures.took("fire", "scheduler", delays.len(), started);
    });
}

fn scheduler_after(waits: &[Duration]) -> Vec<Duration> {
    one_by_one(waits, |scheduler, wait, answer| {
        let due = Instant::now() + wait;
        scheduler.spawn("after", When::after(wait), move || answer(due));
    })
}

fn scheduler_at(waits: &[Duration]) -> Vec<Duration> {
    let clock = SystemClock::new();
    one_by_one(waits, move |scheduler, wait, answer| {
        // The wall clock shows milliseconds, so a millisecond begins when the shown time changes.
        let shown = clock.now();
        while clock.now() == shown {}
        let wait = Duration::from_millis(wait.as_millis() as u64);
        let due = Instant::now() + wait;
        let at = shown + Duration::from_millis(1) + wait;
        scheduler.spawn("at", When::at(at), move || answer(due));
    })
}

/// Lets an idle scheduler wait for one timer after the other; returns how late each was.
fn one_by_one(waits: &[Duration], start: impl Fn(&Scheduler, Duration, Answer)) -> Vec<Duration> {
    real().block_on(async {
        let scheduler = Scheduler::new();
        let mut late = Vec::new();
        for wait in waits {
            let (answer, answered) = mpsc::channel();
            let answer = move |due: Instant| {
                // The receiver waits for exactly this message.
                let _ = answer.send(Instant::now() - due);
                std::future::ready(())
            };
            start(&scheduler, *wait, Box::new(answer));
            late.push(tokio::task::block_in_place(|| answered.recv()).expect("the timer fires"));
        }
        late
    })
}

type Answer = Box<dyn Fn(Instant) -> std::future::Ready<()> + Send>;

fn heap_thread(waits: &[Duration]) -> Vec<Duration> {
    let shared = Arc::new((Mutex::new(BinaryHeap::<Reverse<Instant>>::new()), Condvar::new()));
    let (answer, answered) = mpsc::channel();
    let owner = Arc::clone(&shared);
    thread::spawn(move || {
        let (heap, added) = &*owner;
        let mut heap = heap.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let wait = heap.peek().map(|Reverse(due)| due.saturating_duration_since(Instant::now()));
            if wait == Some(Duration::ZERO) {
                let late = heap.pop().map(|Reverse(due)| Instant::now() - due);
                if late.is_none_or(|late| answer.send(late).is_err()) {
                    return;
                }
            } else {
                let wait = wait.unwrap_or(Duration::from_secs(1));
                heap = added.wait_timeout(heap, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    });
    let wait_for = |wait: &Duration| {
        let (heap, added) = &*shared;
        heap.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(Instant::now() + *wait));
        added.notify_one();
        answered.recv().expect("the timer fires")
    };
    waits.iter().map(wait_for).collect()
}

fn delay_queue_waits(waits: &[Duration]) -> Vec<Duration> {
    real().block_on(async {
        let mut queue = DelayQueue::new();
        let mut late = Vec::new();
        for wait in waits {
            let due = Instant::now() + *wait;
            queue.insert((), *wait);
            std::future::poll_fn(|context| queue.poll_expired(context)).await;
            late.push(Instant::now() - due);
        }
        late
    })
}

fn sleep_waits(waits: &[Duration]) -> Vec<Duration> {
    real().block_on(async {
        let mut late = Vec::new();
        for wait in waits {
            let due = Instant::now() + *wait;
            let woken = tokio::spawn(tokio::time::sleep(*wait));
            woken.await.expect("a sleep does not panic");
            late.push(Instant::now() - due);
        }
        late
    })
}

/// One thread and paused time, so that only CPU work is measured.
fn paused() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

fn real() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_time().build().expect("a runtime")
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(0) + Duration::from_millis(millis)
}

#[derive(Default)]
struct Figures(Vec<Figure>);

struct Figure {
    what: &'static str,
    who: &'static str,
    value: f64,
    unit: &'static str,
}

impl Figures {
    fn each<T>(
        &mut self,
        what: &'static str,
        who: &'static str,
        count: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        let started = Instant::now();
        let result = work();
        self.took(what, who, count, started);
        result
    }

    fn took(&mut self, what: &'static str, who: &'static str, count: usize, started: Instant) {
        let value = started.elapsed().as_nanos() as f64 / count as f64;
        self.0.push(Figure { what, who, value, unit: "ns" });
    }

    fn lateness(&mut self, who: &'static str, mut late: Vec<Duration>) {
        late.sort();
        for (what, part) in [("late p50", 0.50), ("late p99", 0.99)] {
            let value = late[((late.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
            self.0.push(Figure { what, who, value, unit: "ms" });
        }
    }

    fn print(&self, size: &Size) {
        println!(
            "{} timers pending over {} s; lateness of {} in turn",
            size.pending,
            SPAN_MS / 1_000,
            size.waits
        );
        println!("{:<10} {:<22} {:>10}", "what", "who", "value");
        for Figure { what, who, value, unit } in &self.0 {
            println!("{what:<10} {who:<22} {value:>10.2} {unit}");
        }
        for Figure { what, who, value, unit } in &self.0 {
            println!(r#"{{"bench":"timer","case":"{what}, {who}","value":{value:.3},"unit":"{unit}"}}"#);
        }
    }
}
