//! Apps, their executors and tokens, and settings.

use std::time::Duration;

use engine::{AppId, Control, JobSpec, Store as _, StoreError};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple};
use crate::Registry as _;
use crate::{ADDRESSES_MAX, Addresses, AppSpec, Beat, NewToken, Noted, Registration};

fn app(name: &str) -> AppSpec {
    AppSpec { name: name.into(), title: "标题 ' x".into(), addresses: Addresses::Registered }
}

fn beat(app: &str, address: &str) -> Beat {
    Beat { registration: Registration { app: app.into(), address: address.into() }, token: None }
}

/// Longer than any test takes.
const SILENT_MAX: Duration = Duration::from_secs(3_600);

pub async fn an_app_comes_back_as_it_was_written(fresh: Fresh) {
    let store = fresh.store;
    let id = store.create_app(&app("billing")).await.unwrap();
    let by_hand = Addresses::Manual(vec!["http://10.0.0.2:9999/".into(), "http://10.0.0.1:9999/".into()]);
    let manual = AppSpec { addresses: by_hand.clone(), ..app("accounts") };
    let other = store.create_app(&manual).await.unwrap();

    let found = store.app(id).await.unwrap().unwrap();
    assert_eq!((found.id, &found.spec, &found.listed), (id, &app("billing"), &vec![]));
    assert_eq!(store.app_by_name("billing").await.unwrap().unwrap(), found);
    assert_eq!(store.apps().await.unwrap().iter().map(|app| app.id).collect::<Vec<_>>(), [other, id]);
    let found = store.app(other).await.unwrap().unwrap();
    assert_eq!(found.spec, manual);
    assert_eq!(Addresses::Manual(found.listed), by_hand);

    let renamed = AppSpec { title: "other".into(), ..app("ledger") };
    assert!(store.update_app(other, &renamed).await.unwrap());
    let found = store.app(other).await.unwrap().unwrap();
    assert_eq!(found.spec, renamed);
    assert_eq!(found.listed.len(), 2, "what is listed stays until something is published");
    assert_eq!(store.app_by_name("accounts").await, Ok(None));
    assert!(!store.update_app(AppId(4_711), &app("nobody")).await.unwrap());
    assert_eq!(store.app(AppId(4_711)).await, Ok(None));
}

pub async fn a_name_belongs_to_one_app_and_has_to_fit(fresh: Fresh) {
    let store = fresh.store;
    let first = store.create_app(&app("first")).await.unwrap();
    let second = store.create_app(&app("second")).await.unwrap();
    assert!(matches!(store.create_app(&app("first")).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.update_app(second, &app("first")).await, Err(StoreError::Conflict(_))));
    assert!(store.update_app(first, &app("first")).await.unwrap(), "its own name is no conflict");

    let manual =
        |address: &str| AppSpec { addresses: Addresses::Manual(vec![address.into()]), ..app("third") };
    for bad in [app(" "), app(&"n".repeat(65)), app("a\0b"), manual("http://a:1,http://b:1"), manual("")] {
        let refused = store.create_app(&bad).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{bad:?}: {refused:?}");
    }
    // If several are created at once, one gets the name.
    let wanted = app("wanted");
    let create = || store.create_app(&wanted);
    let (a, b, c) = tokio::join!(create(), create(), create());
    let results = [a, b, c];
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(StoreError::Conflict(_)))));
}

pub async fn an_app_is_deleted_with_all_that_is_its_own_unless_jobs_use_it(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    bench.create(|_| {}).await;
    assert!(matches!(store.delete_app(bench.app).await, Err(StoreError::Conflict(_))));
    assert!(store.app(bench.app).await.unwrap().is_some());

    let id = store.create_app(&app("unused")).await.unwrap();
    let token = |app| NewToken { app, digest: "d".repeat(64), sealed: "s".into(), expires_at: None };
    store.add_token(&token(Some(id))).await.unwrap();
    let kept = store.add_token(&token(None)).await.unwrap();
    let both = [beat("unused", "http://a:1/"), beat("bench", "http://a:1/")];
    store.register(&both, SILENT_MAX).await.unwrap();
    assert!(store.delete_app(id).await.unwrap());
    assert!(!store.delete_app(id).await.unwrap());
    let left = store.registrations(bench.now - HOUR).await.unwrap();
    assert_eq!(
        left.into_iter().map(|left| left.registration).collect::<Vec<_>>(),
        [beat("bench", "http://a:1/").registration]
    );
    let tokens = store.tokens().await.unwrap();
    assert_eq!(tokens.iter().map(|token| token.id).collect::<Vec<_>>(), [kept]);
}

pub async fn an_app_that_gets_a_job_just_now_is_not_deleted(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    for round in 0..10 {
        let id = store.create_app(&app(&format!("brief-{round}"))).await.unwrap();
        let spec = JobSpec { app: id, ..bench.hourly() };
        let (created, deleted) = tokio::join!(store.create_job(&spec), store.delete_app(id));
        match (&created, &deleted) {
            (Ok(_), Err(StoreError::Conflict(_))) | (Err(StoreError::Invalid(_)), Ok(true)) => {}
            _ => panic!("a job without its app: {created:?} {deleted:?}"),
        }
    }
    let job = bench.create(|_| {}).await;
    let moved = JobSpec { app: AppId(4_711), ..bench.hourly() };
    let edit = Control::Edit { spec: Box::new(moved), revision: None };
    let refused = store.control(job, &edit, 1_000, &Simple { now: bench.now }).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

pub async fn an_app_that_is_made_where_it_is_missing_is_news(fresh: Fresh) {
    let store = fresh.store;
    let revision = store.registry_revision().await.unwrap();
    let (a, b) = tokio::join!(store.ensure_app("new"), store.ensure_app("new"));
    assert_eq!(a, b, "both mean the same");
    let after = store.registry_revision().await.unwrap();
    assert!(after > revision, "other nodes have to know");
    assert_eq!(store.ensure_app("new").await, a);
    assert_eq!(store.registry_revision().await, Ok(after));
    for bad in ["", "a\0b", &"n".repeat(65)] {
        assert!(matches!(store.ensure_app(bad).await, Err(StoreError::Invalid(_))), "{bad:?}");
    }
}

pub async fn an_executor_is_new_once_and_its_beats_change_nothing_else(fresh: Fresh) {
    let store = fresh.store;
    let revision = async || store.registry_revision().await.unwrap();
    let before = revision().await;
    let beats = [beat("a", "http://a:1/"), beat("a", "http://b:1/"), beat("a", "http://a:1/")];
    let register = async |beats: &[Beat]| store.register(beats, SILENT_MAX).await;
    assert_eq!(register(&beats).await, Ok(vec![Noted::New, Noted::New, Noted::Again]));
    let after = revision().await;
    assert!(after > before);
    assert_eq!(register(&beats[..2]).await, Ok(vec![Noted::Again; 2]));
    assert_eq!(register(&[]).await, Ok(vec![]));
    assert_eq!(revision().await, after, "nothing is new");
    let another = [beats[0].clone(), beat("b", "http://a:1/")];
    assert_eq!(register(&another).await, Ok(vec![Noted::Again, Noted::New]));
    assert!(revision().await > after);

    let after = revision().await;
    assert!(!store.unregister("a", "http://c:1/").await.unwrap());
    assert_eq!(revision().await, after);
    assert!(store.unregister("a", "http://b:1/").await.unwrap());
    assert!(!store.unregister("a", "http://b:1/").await.unwrap());
    assert!(revision().await > after);
    for bad in [beat("", "http://a:1/"), beat("a", " "), beat("a\0", "x"), beat("a", &"x".repeat(256))] {
        assert!(matches!(register(&[bad]).await, Err(StoreError::Invalid(_))));
    }
}

pub async fn an_executor_that_was_believed_to_be_gone_is_news(fresh: Fresh) {
    let store = fresh.store;
    let beats = [beat("a", "http://a:1/")];
    store.register(&beats, SILENT_MAX).await.unwrap();
    let before = store.registry_revision().await.unwrap();
    // Its row exists, and is so old that no node considers it.
    assert_eq!(store.register(&beats, Duration::ZERO).await, Ok(vec![Noted::New]));
    assert!(store.registry_revision().await.unwrap() > before, "other nodes have to know");
    assert_eq!(store.registrations(Timestamp::default()).await.unwrap().len(), 1);
}

pub async fn the_token_of_an_executor_is_the_one_it_last_registered_with(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let with =
        |token: Option<&str>| Beat { token: token.map(|token| token.repeat(64)), ..beat("a", "http://a:1/") };
    let register = async |token| store.register(&[with(token)], SILENT_MAX).await.unwrap();
    let known = async || store.registrations(bench.now - HOUR).await.unwrap().remove(0).token;
    register(None).await;
    assert_eq!(known().await, None);
    for token in ["1", "2"] {
        let before = store.registry_revision().await.unwrap();
        assert_eq!(register(Some(token)).await, [Noted::Again]);
        assert_eq!(known().await, with(Some(token)).token);
        assert!(store.registry_revision().await.unwrap() > before, "other nodes have to know");
    }
    let before = store.registry_revision().await.unwrap();
    register(Some("2")).await;
    register(None).await;
    assert_eq!(known().await, with(Some("2")).token, "showing none says nothing");
    assert_eq!(store.registry_revision().await, Ok(before));
    store.unregister("a", "http://a:1/").await.unwrap();
    register(None).await;
    assert_eq!(known().await, None, "another process");
}

pub async fn an_app_has_a_bounded_number_of_addresses(fresh: Fresh) {
    let store = fresh.store;
    store.ensure_app("a").await.unwrap();
    store.ensure_app("b").await.unwrap();
    let beats: Vec<Beat> = (0..ADDRESSES_MAX).map(|n| beat("a", &format!("http://a:{n}/"))).collect();
    for some in beats.chunks(1_000) {
        assert_eq!(store.register(some, SILENT_MAX).await, Ok(vec![Noted::New; some.len()]));
    }
    let more = [beats[0].clone(), beat("a", "http://b:1/"), beat("b", "http://b:1/")];
    let noted = store.register(&more, SILENT_MAX).await;
    assert_eq!(noted, Ok(vec![Noted::Again, Noted::TooMany, Noted::New]));
    assert!(store.unregister("a", "http://a:7/").await.unwrap());
    assert_eq!(store.register(&more[1..2], SILENT_MAX).await, Ok(vec![Noted::New]), "there is room again");
}

pub async fn apps_that_do_not_exist_share_one_bound_of_addresses(fresh: Fresh) {
    let store = fresh.store;
    store.ensure_app("a").await.unwrap();
    let beats: Vec<Beat> = (0..ADDRESSES_MAX).map(|n| beat(&format!("made-up-{n}"), "http://a:1/")).collect();
    for some in beats.chunks(1_000) {
        assert_eq!(store.register(some, SILENT_MAX).await, Ok(vec![Noted::New; some.len()]));
    }
    let more = [beat("made-up", "http://a:1/"), beat("a", "http://a:1/"), beats[0].clone()];
    let noted = store.register(&more, SILENT_MAX).await;
    assert_eq!(noted, Ok(vec![Noted::TooMany, Noted::New, Noted::Again]));
}

pub async fn executors_that_are_silent_are_left_out_and_then_forgotten(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let beats: Vec<Beat> = (100..300).map(|port| beat("a", &format!("http://a:{port}/"))).collect();
    assert_eq!(store.register(&beats, SILENT_MAX).await, Ok(vec![Noted::New; beats.len()]));
    let seen = store.registrations(bench.now - SECOND * 90).await.unwrap();
    let executors: Vec<Registration> = beats.into_iter().map(|beat| beat.registration).collect();
    assert_eq!(seen.iter().map(|seen| seen.registration.clone()).collect::<Vec<_>>(), executors);
    let late =
        |seen: &crate::Registered| seen.seen_at < bench.now - SECOND || seen.seen_at > bench.now + HOUR;
    assert!(!seen.iter().any(late), "they were seen just now");
    assert_eq!(store.registrations(bench.now + HOUR).await, Ok(vec![]));

    let revision = store.registry_revision().await.unwrap();
    assert_eq!(store.forget_registrations(bench.now - HOUR, 1_000).await, Ok(0));
    assert_eq!(store.registry_revision().await, Ok(revision));
    assert_eq!(store.forget_registrations(bench.now + HOUR, 150).await, Ok(150));
    assert_eq!(store.forget_registrations(bench.now + HOUR, 150).await, Ok(50));
    assert!(store.registry_revision().await.unwrap() > revision);
    assert_eq!(store.registrations(bench.now - HOUR).await, Ok(vec![]));
}

pub async fn executors_that_register_at_two_nodes_at_once_are_there_once(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let beats: Vec<Beat> = (100..150).map(|port| beat("a", &format!("http://a:{port}/"))).collect();
    let register = |from: usize| {
        let (store, beats) = (bench.store.clone(), beats.clone());
        tokio::spawn(async move {
            let mut added = 0;
            // Each node receives them in another order and in small batches.
            for step in 0..beats.len() / 5 {
                let start = (from + step * 5) % beats.len();
                let noted = store.register(&beats[start..start + 5], SILENT_MAX).await.unwrap();
                added += noted.into_iter().filter(|noted| *noted == Noted::New).count();
            }
            added
        })
    };
    let (a, b, c) = tokio::join!(register(0), register(25), register(0));
    assert_eq!(a.unwrap() + b.unwrap() + c.unwrap(), beats.len());
    assert_eq!(bench.store.registrations(bench.now - HOUR).await.unwrap().len(), beats.len());
}

pub async fn addresses_are_published_where_they_differ(fresh: Fresh) {
    let store = fresh.store;
    let id = store.create_app(&app("registered")).await.unwrap();
    let manual = AppSpec { addresses: Addresses::Manual(vec!["http://m:1/".into()]), ..app("manual") };
    let other = store.create_app(&manual).await.unwrap();
    let revision = store.registry_revision().await.unwrap();

    let list = vec!["http://b:1/".to_owned(), "http://a:1/".into(), "http://b:1/".into()];
    let lists = [(id, list.clone()), (other, list)];
    assert_eq!(store.publish_addresses(&lists).await, Ok(1));
    assert_eq!(store.publish_addresses(&lists).await, Ok(0), "nothing differs");
    assert_eq!(store.app(id).await.unwrap().unwrap().listed, ["http://a:1/", "http://b:1/"]);
    assert_eq!(store.app(other).await.unwrap().unwrap().listed, ["http://m:1/"], "a person's list stays");
    assert_eq!(store.publish_addresses(&[(id, vec![]), (AppId(4_711), vec![])]).await, Ok(1));
    assert!(store.app(id).await.unwrap().unwrap().listed.is_empty());
    assert_eq!(store.publish_addresses(&[]).await, Ok(0));
    assert_eq!(store.registry_revision().await, Ok(revision), "no node has anything to reread");
}

pub async fn tokens_are_added_and_expire(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let revision = store.registry_revision().await.unwrap();
    let sealed = "v1:口令/+=".to_owned();
    let new = NewToken { app: Some(bench.app), digest: "0a".repeat(32), sealed, expires_at: None };
    let id = store.add_token(&new).await.unwrap();
    let global = NewToken { app: None, expires_at: Some(bench.now + HOUR), ..new.clone() };
    let second = store.add_token(&global).await.unwrap();
    assert!(store.registry_revision().await.unwrap() > revision, "other nodes have to know");
    assert!(store.expire_token(id, bench.now + SECOND).await.unwrap());
    assert!(!store.expire_token(second + 1, bench.now).await.unwrap());

    let tokens = store.tokens().await.unwrap();
    let read: Vec<_> = tokens
        .into_iter()
        .map(|token| {
            let new = NewToken {
                app: token.app,
                digest: token.digest,
                sealed: token.sealed,
                expires_at: token.expires_at,
            };
            (token.id, new)
        })
        .collect();
    let first = NewToken { expires_at: Some(bench.now + SECOND), ..new.clone() };
    assert_eq!(read, [(id, first), (second, global)]);
    let long = NewToken { digest: "0".repeat(65), ..new };
    assert!(matches!(store.add_token(&long).await, Err(StoreError::Invalid(_))));
}

pub async fn of_settings_made_at_once_one_stands(fresh: Fresh) {
    let store = fresh.store;
    assert_eq!(store.setting("key").await, Ok(None));
    let attempt = |value: &'static str| {
        let store = store.clone();
        tokio::spawn(async move { store.set_setting_if_absent("key", value).await.unwrap() })
    };
    let (a, b, c) = tokio::join!(attempt("a"), attempt("b"), attempt("c"));
    let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
    assert!(a == b && b == c, "{a} {b} {c}");
    assert_eq!(store.setting("key").await, Ok(Some(a)));

    store.set_setting("key", "值 ' 2").await.unwrap();
    store.set_setting("key", "值 ' 2").await.unwrap();
    store.set_setting("other", "").await.unwrap();
    assert_eq!(store.setting("key").await, Ok(Some("值 ' 2".into())));
    assert_eq!(store.setting("other").await, Ok(Some(String::new())));
    assert_eq!(store.set_setting_if_absent("key", "late").await, Ok("值 ' 2".into()));
    let refused = store.set_setting(&"n".repeat(191), "").await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}
