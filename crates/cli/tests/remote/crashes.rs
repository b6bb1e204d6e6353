//! Kills the scheduling centre and the agent repeatedly, at every step of a run. Each run ends once, and none runs
//! twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::kit::{Centre, Process, until};

/// Number of kills per history.
const ROUNDS: usize = 10;
const JOBS: usize = 3;

#[test]
fn each_run_ends_once_and_none_is_run_twice() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = Cluster::start();
    for _ in 0..ROUNDS {
        cluster.wait_for_a_step(&mut random);
        match random.u8(0..3) {
            0 => cluster.kill_agent(),
            1 => cluster.kill_centre(),
            _ => cluster.kill_both(),
        }
    }
    let runs = cluster.come_to_rest();
    cluster.check(&runs);
}

struct Cluster {
    centre: Centre,
    agent: Process,
    /// Address of the agent in all its incarnations.
    address: String,
    /// File with the notes written by the scripts.
    notes: PathBuf,
}

impl Cluster {
    fn start() -> Cluster {
        let centre = Centre::signed_in();
        let notes = centre.folder.path().join("notes");
        let note = |what: &str| format!("echo \"{what} $TICKWRIGHT_RUN_ID\" >> '{}'\n", notes.display());
        for job in 0..JOBS {
            let key = format!("work/{job}");
            centre.script_job(&key, &format!("{}sleep 0.2\n{}", note("start"), note("end")));
            centre.says(&format!("job edit {key} --every 1s"));
            centre.says(&format!("job start {key}"));
        }
        let agent = centre.agent_at("127.0.0.1:0");
        let address = agent.wait_for("listening on      ");
        Cluster { centre, agent, address, notes }
    }

    /// Waits for the next run to start or end, or for a random time, so that runs are claimed, sent, accepted, done
    /// or reported.
    fn wait_for_a_step(&self, random: &mut fastrand::Rng) {
        let pause = Duration::from_millis(random.u64(0..300));
        match random.u8(0..4) {
            0 => self.wait_for_another("start"),
            1 => self.wait_for_another("end"),
            // This variant tests elapsed time only.
            _ => std::thread::sleep(pause),
        }
    }

    fn wait_for_another(&self, what: &str) {
        let count =
            |notes: &BTreeMap<(String, i64), usize>| notes.keys().filter(|note| note.0 == what).count();
        let before = count(&noted(&self.notes));
        until("one more run", || (count(&noted(&self.notes)) > before).then_some(()));
    }

    fn kill_agent(&mut self) {
        self.agent.kill();
        self.agent = self.centre.agent_at(&self.address);
    }

    fn kill_centre(&mut self) {
        self.centre.die();
        self.centre.come_back();
    }

    fn kill_both(&mut self) {
        self.agent.kill();
        self.centre.die();
        self.centre.come_back();
        self.agent = self.centre.agent_at(&self.address);
    }

    /// Waits until runs succeed again, stops the jobs, waits until all runs are finished, and returns them.
    fn come_to_rest(&mut self) -> Vec<Value> {
        self.centre.json_once("run list --state succeeded", |runs| !runs.as_array().unwrap().is_empty());
        for job in 0..JOBS {
            self.centre.says(&format!("job stop work/{job}"));
        }
        let is_over = |run: &Value| {
            let state = run["state"].as_str().unwrap();
            ["succeeded", "failed", "timed_out", "lost", "cancelled"].contains(&state)
        };
        let runs =
            self.centre.json_once("run list --all", |runs| runs.as_array().unwrap().iter().all(is_over));
        runs.as_array().unwrap().clone()
    }

    fn check(&self, runs: &[Value]) {
        let noted = noted(&self.notes);
        let times = |what: &str, run: i64| noted.get(&(what.to_owned(), run)).copied().unwrap_or_default();
        let mut succeeded = 0;
        for run in runs {
            let id = run["id"].as_i64().unwrap();
            assert!(times("start", id) <= 1 && times("end", id) <= times("start", id), "run twice: {run}");
            if run["state"] == "succeeded" {
                succeeded += 1;
                assert_eq!(times("end", id), 1, "it did not do its work: {run}");
            }
            let timeline = self.centre.json(&format!("run show {id}"))["timeline"].clone();
            let ends = timeline.as_array().unwrap().iter().filter(|step| step["kind"] == "ended").count();
            assert!(ends <= 1, "ended {ends} times: {timeline}");
        }
        for (_, id) in noted.keys() {
            assert!(runs.iter().any(|run| run["id"] == *id), "the centre knows nothing of run {id}");
        }
        println!("{} runs, {succeeded} succeeded", runs.len());
        assert!(succeeded > 0 && succeeded < runs.len(), "some were hit, some not");
    }
}

/// Number of times each note was written.
fn noted(notes: &Path) -> BTreeMap<(String, i64), usize> {
    let text = fs::read_to_string(notes).unwrap_or_default();
    let mut noted = BTreeMap::new();
    for line in text.lines() {
        let (what, run) = line.split_once(' ').unwrap();
        *noted.entry((what.to_owned(), run.parse().unwrap())).or_default() += 1;
    }
    noted
}
