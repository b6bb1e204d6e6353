//! Parses requests and responses recorded from five real programs. `recorded.jsonl` holds the exchanges.

use serde::Deserialize;
use tickwright_protocol::v1::{Block, Word};
use tickwright_protocol::xxl::{
    Answer, CODE_OK, CallbackShape, GlueType, JobRequest, LogPage, LogRequest, Registry, TriggerRequest,
    read_callbacks, texts, write_callbacks,
};

#[derive(Deserialize)]
struct Exchange {
    client: String,
    path: String,
    body: Option<String>,
    status: u16,
    answer: Option<String>,
}

fn exchanges(of: &'static str) -> impl Iterator<Item = Exchange> {
    include_str!("recorded.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Exchange>(line).expect("a recorded exchange"))
        .filter(move |exchange| exchange.path.ends_with(of))
}

#[test]
fn every_recorded_callback_is_read() {
    let mut count = 0;
    for exchange in exchanges("/api/callback") {
        for item in read_callbacks(exchange.body.unwrap().as_bytes()).unwrap() {
            let item = item.unwrap_or_else(|bad| panic!("{}: {bad}", exchange.client));
            assert!(item.log_id > 0 && item.handle_code > 0, "{}: {item:?}", exchange.client);
            count += 1;
        }
    }
    assert!(count >= 50, "{count}");
}

#[test]
fn every_recorded_trigger_is_read_and_written_whole() {
    for exchange in exchanges("/run") {
        let body = exchange.body.unwrap();
        let request = TriggerRequest::read(body.as_bytes()).unwrap();
        assert!(request.job_id > 0 && request.log_id > 0);
        assert!(GlueType::read(&request.glue_type).is_some(), "{body}");
        assert_eq!(
            Block::from_stored(&request.executor_block_strategy).unwrap_or_default().stored(),
            request.executor_block_strategy
        );
        let written = serde_json::to_value(&request).unwrap();
        let fields: Vec<_> = written.as_object().unwrap().iter().collect();
        assert_eq!(fields.len(), 12);
        assert!(fields.iter().all(|(_, value)| !value.is_null()));
        assert_eq!(serde_json::from_value::<TriggerRequest>(written).unwrap(), request);
    }
}

#[test]
fn every_recorded_registration_is_read_and_written_alike() {
    for exchange in exchanges("/api/registry").chain(exchanges("/api/registryRemove")) {
        let body = exchange.body.unwrap();
        let registry = Registry::read(body.as_bytes()).unwrap();
        assert!(registry.is_complete());
        assert_eq!(registry, Registry::executor("interop-app", &registry.registry_value));
        assert_eq!(
            serde_json::to_value(&registry).unwrap(),
            serde_json::from_str::<serde_json::Value>(&body).unwrap()
        );
    }
}

#[test]
fn every_recorded_answer_is_read() {
    for exchange in exchanges("").filter(|exchange| exchange.status == 200) {
        let answer = exchange.answer.unwrap();
        let read = Answer::read(answer.as_bytes());
        // One client responds with a list when it rejects a call: a failure, and no panic.
        assert_eq!(read.is_err(), answer.starts_with('['), "{}: {answer}", exchange.client);
        assert!(read.is_err() || [200, 500].contains(&read.unwrap().code), "{answer}");
    }
}

#[test]
fn every_recorded_log_call_is_read() {
    let mut pages = 0;
    for exchange in exchanges("/log") {
        let request = LogRequest::read(exchange.body.unwrap().as_bytes()).unwrap();
        assert!(request.log_id > 0 && request.log_date_time > 0 && request.from_line_num > 0);
        assert_eq!(LogRequest::read(request.to_json().as_bytes()).unwrap(), request);
        let answer = Answer::read(exchange.answer.unwrap().as_bytes()).unwrap();
        if let Some(page) = answer.payload_as::<LogPage>() {
            assert_eq!(page.from_line_num, request.from_line_num);
            pages += 1;
        }
    }
    assert!(pages >= 5, "{pages}");
}

#[test]
fn the_stock_executor_uses_these_very_texts() {
    let texts = [
        texts::NOT_POST.to_owned(),
        texts::WRONG_TOKEN.to_owned(),
        texts::BUSY.to_owned(),
        texts::NOTHING_TO_KILL.to_owned(),
        texts::unknown_uri("/nosuch"),
        texts::unknown_handler("noSuchHandler"),
        texts::blocked(Block::DiscardLater),
    ];
    for text in texts {
        let is_answered = |exchange: Exchange| {
            exchange.client.starts_with("java")
                && exchange.answer.is_some_and(|answer| answer.contains(&format!("\"msg\":\"{text}\"")))
        };
        assert!(exchanges("").any(is_answered), "{text}");
    }
    let results = [
        texts::TIMED_OUT.to_owned(),
        texts::stopped_running(texts::KILLED),
        texts::stopped_waiting(texts::KILLED),
        texts::stopped_running(&texts::blocked(Block::CoverEarly)),
    ];
    for text in results {
        let is_reported = |exchange: Exchange| {
            exchange.client.starts_with("java")
                && exchange.body.is_some_and(|body| body.contains(&format!("\"handleMsg\":\"{text}\"")))
        };
        assert!(exchanges("/api/callback").any(is_reported), "{text}");
    }
}

#[test]
fn requests_about_a_job_are_read() {
    for exchange in exchanges("/idleBeat").chain(exchanges("/kill")) {
        let request = JobRequest::read(exchange.body.unwrap().as_bytes()).unwrap();
        assert!(request.job_id > 0);
    }
}

#[test]
fn what_we_write_the_recorded_clients_shape_reads_alike() {
    for exchange in exchanges("/api/callback") {
        let items = read_callbacks(exchange.body.unwrap().as_bytes()).unwrap();
        let items: Vec<_> = items.into_iter().map(Result::unwrap).collect();
        for shape in [CallbackShape::Array, CallbackShape::Object] {
            let again = read_callbacks(write_callbacks(&items, shape).as_bytes()).unwrap();
            assert_eq!(again.into_iter().map(Result::unwrap).collect::<Vec<_>>(), items);
        }
    }
    assert_eq!(Answer::read(Answer::ok().to_json().as_bytes()).unwrap().code, CODE_OK);
}
