//! Traces of runs.

use engine::policy::Route;
use engine::{Origin, Receipt, Retention, RunId, Store as _};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, ok};
use crate::{ClearPosition, Clearing, Keep, NodeTrace, Sending};

fn sending(bench: &Bench, answer: Option<Receipt>) -> Sending {
    Sending {
        scheduled_at: bench.now,
        origin: Origin::Child { of: RunId(7) },
        attempt: 2,
        retry_of: Some(RunId(8)),
        route: Route::First.into(),
        claimed_at: Some(bench.now - SECOND),
        left_at: bench.now + SECOND,
        answer: answer.map(|receipt| (bench.now + SECOND * 2, receipt)),
    }
}

fn trace(run: RunId, node: &str, sending: Option<Sending>) -> NodeTrace {
    NodeTrace { run, node: node.into(), sending, reported_at: None, recorded_at: None }
}

pub async fn a_trace_comes_back_as_each_node_knows_it(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let accepted = Receipt::Accepted { address: "http://a:1/".into() };
    let unknown = Receipt::Unknown { address: Some("http://b:1/".into()), reason: "no answer".into() };
    let refused = Receipt::Refused { reason: "busy".into() };
    let nowhere = Receipt::Unknown { address: None, reason: "no answer".into() };
    let answers = [Some(accepted), Some(unknown), Some(refused), Some(nowhere), None];
    let mut traces: Vec<NodeTrace> = answers
        .into_iter()
        .zip(1..)
        .map(|(answer, run)| trace(RunId(run), "one", Some(sending(&bench, answer))))
        .collect();
    store.keep_traces("one", &traces).await.unwrap();
    let all: Vec<RunId> = traces.iter().map(|trace| trace.run).collect();
    assert_eq!(store.traces_of(&all).await.unwrap(), traces);

    // Another node receives the result; a third dispatched the run again later.
    let end = NodeTrace { recorded_at: Some(bench.now + HOUR), ..trace(RunId(1), "another", None) };
    store.keep_traces("another", std::slice::from_ref(&end)).await.unwrap();
    let later = Sending { left_at: bench.now + HOUR, ..sending(&bench, None) };
    let again = trace(RunId(1), "a third", Some(later));
    store.keep_traces("a third", std::slice::from_ref(&again)).await.unwrap();
    assert_eq!(store.traces_of(&[RunId(1)]).await.unwrap(), [traces[0].clone(), again, end]);

    // The same node has more data, and of another run only the end.
    traces[1].reported_at = Some(bench.now + SECOND * 5);
    let forgotten = NodeTrace { recorded_at: Some(bench.now + SECOND * 9), ..trace(RunId(3), "one", None) };
    store.keep_traces("one", &[traces[1].clone(), forgotten]).await.unwrap();
    traces[2].recorded_at = Some(bench.now + SECOND * 9);
    assert_eq!(store.traces_of(&[RunId(2), RunId(3)]).await.unwrap(), traces[1..3]);

    // A run ends twice before anything is stored: it was lost, and then reported.
    let lost =
        NodeTrace { recorded_at: Some(bench.now), ..trace(RunId(9), "one", Some(sending(&bench, None))) };
    let late = bench.now + SECOND;
    let reported =
        NodeTrace { reported_at: Some(late), recorded_at: Some(late), ..trace(RunId(9), "one", None) };
    store.keep_traces("one", &[lost.clone(), reported]).await.unwrap();
    let both = NodeTrace { reported_at: Some(late), recorded_at: Some(late), ..lost };
    assert_eq!(store.traces_of(&[RunId(9)]).await.unwrap(), [both]);
    store.keep_traces("one", &[]).await.unwrap();
    assert_eq!(store.traces_of(&[]).await, Ok(vec![]));
}

pub async fn a_trace_goes_with_its_run(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.start(&bench.hourly()).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = bench.run(job).await;
        bench.end(run.id, ok()).await;
        store.keep_traces("one", &[trace(run.id, "one", Some(sending(&bench, None)))]).await.unwrap();
        runs.push(run);
    }
    let left = async || -> Vec<RunId> {
        let all: Vec<RunId> = runs.iter().map(|run| run.id).collect();
        store.traces_of(&all).await.unwrap().iter().map(|trace| trace.run).collect()
    };
    let keep = Keep::Since(runs[1].scheduled_at);
    let clearing = Clearing { apps: None, job: Some(job), keep };
    store.clear_runs(&clearing, &mut ClearPosition::default(), 10).await.unwrap();
    assert_eq!(left().await, [runs[1].id, runs[2].id]);
    let old = |runs_before, runs_max| Retention { runs_before, runs_max, history_before: bench.now - HOUR };
    store.prune(&old(bench.now - HOUR, Some(1)), 10).await.unwrap();
    assert_eq!(left().await, [runs[2].id]);
    // The trace of a run that another program has deleted is pruned by its own age.
    store.prune(&old(bench.now + HOUR, None), 10).await.unwrap();
    assert_eq!(left().await, []);
}
