//! Users, their sessions and API keys, and the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{AppId, StoreError};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND};
use crate::{
    Access, AuditCheck, AuditEntry, AuditFilter, AuditHead, NewApiKey, NewSession, Page, Password, Rights,
    SignInOrigin, Total, UserFilter, UserId,
};

fn admin() -> Access {
    Access { admin: true, ..Access::default() }
}

fn member(apps: &[(i64, Rights)]) -> Access {
    let grants: BTreeMap<AppId, Rights> = apps.iter().map(|(app, rights)| (AppId(*app), *rights)).collect();
    Access { grants, ..Access::default() }
}

pub async fn of_first_administrators_made_at_once_one_stands(fresh: Fresh) {
    let store = fresh.store;
    let attempt = |name: &'static str, hash: &'static str| {
        let store = store.clone();
        tokio::spawn(async move { store.create_first_admin(name, hash).await.unwrap() })
    };
    let (a, b, c) = tokio::join!(attempt("admin", "a"), attempt("root", "b"), attempt("admin", "c"));
    let made = [a.unwrap(), b.unwrap(), c.unwrap()];
    assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
    let page = store.user_page(&UserFilter::default(), Page::first(10)).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert!(page.rows[0].access.admin && matches!(page.rows[0].password, Password::Hashed(_)));
    assert!(!store.create_first_admin("another", "d").await.unwrap());
}

pub async fn a_user_comes_back_as_it_was_written(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let first = store.create_user("Ada", "hash 1", &admin()).await.unwrap();
    let rights =
        [(1, Rights::VIEW), (2, Rights::MEMBER), (3, Rights::ALL), (4, Rights::VIEW.with(Rights::OPERATE))];
    let second = store.create_user("bob 鲍勃", "hash 2", &member(&rights)).await.unwrap();
    let bob = store.user(second).await.unwrap().unwrap();
    assert_eq!((bob.name.as_str(), &bob.password), ("bob 鲍勃", &Password::Hashed("hash 2".into())));
    assert_eq!(bob.access, member(&rights));
    assert!(bob.access.rights(AppId(3)).contains(Rights::SCRIPT));
    assert_eq!(bob.access.rights(AppId(5)), Rights::NONE);
    assert_eq!(store.user_by_name("bob 鲍勃").await, Ok(Some(bob)));
    assert_eq!(store.user_by_name("nobody").await, Ok(None));
    assert!(matches!(store.create_user("Ada", "x", &admin()).await, Err(StoreError::Conflict(_))));
    for bad in [" ", "a\0b", &"n".repeat(51)] {
        assert!(
            matches!(store.create_user(bad, "x", &admin()).await, Err(StoreError::Invalid(_))),
            "{bad:?}"
        );
    }

    let disabled = Access { disabled: true, ..member(&[(2, Rights::ALL)]) };
    assert!(store.update_user(second, &disabled).await.unwrap());
    let bob = store.user(second).await.unwrap().unwrap();
    assert_eq!((&bob.access, bob.access.rights(AppId(2))), (&disabled, Rights::NONE));
    assert!(!store.update_user(UserId(4_711), &disabled).await.unwrap());

    let page = store.user_page(&UserFilter::default(), Page::Offset { offset: 0, limit: 10 }).await.unwrap();
    assert_eq!(page.rows.iter().map(|user| user.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(page.total, Some(Total { count: 2, exact: true }));
    let named = UserFilter { name: "BOB".into(), admin: Some(false) };
    assert_eq!(store.user_page(&named, Page::first(10)).await.unwrap().rows, [bob]);
    let admins = UserFilter { admin: Some(true), ..named };
    assert!(store.user_page(&admins, Page::first(10)).await.unwrap().rows.is_empty());
}

pub async fn the_last_administrator_stays(fresh: Fresh) {
    let store = fresh.store;
    let first = store.create_user("first", "x", &admin()).await.unwrap();
    let second = store.create_user("second", "x", &member(&[])).await.unwrap();
    let refused = |result: Result<bool, StoreError>| assert!(matches!(result, Err(StoreError::Conflict(_))));
    refused(store.delete_user(first).await);
    refused(store.update_user(first, &Access { disabled: true, ..admin() }).await);
    refused(store.update_user(first, &member(&[])).await);
    assert!(store.update_user(second, &admin()).await.unwrap());
    // If two administrators delete each other, one is rejected.
    let (a, b) = tokio::join!(store.delete_user(first), store.delete_user(second));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    assert!(!store.delete_user(UserId(4_711)).await.unwrap());
}

pub async fn a_session_ends_with_its_time_its_user_or_a_change(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let user = store.create_user("ada", "x", &member(&[(1, Rights::VIEW)])).await.unwrap();
    store.create_user("admin", "x", &admin()).await.unwrap();
    let new = |digest: &str| NewSession {
        digest: digest.into(),
        user,
        csrf: "csrf".into(),
        expires_at: bench.now + HOUR,
        address: "10.0.0.7".into(),
        agent: "浏览器".repeat(200),
    };
    let alive = async |digest: &str| store.session(digest, HOUR).await.unwrap().is_some();
    for digest in ["a", "b", "c"] {
        store.open_session(&new(digest)).await.unwrap();
    }
    store.open_session(&NewSession { expires_at: bench.now - SECOND, ..new("old") }).await.unwrap();
    let (session, found) = store.session("a", HOUR).await.unwrap().unwrap();
    assert_eq!((session.user, session.csrf.as_str(), found.id), (user, "csrf", user));
    assert_eq!(session.agent.chars().count(), 255);
    assert!(!alive("old").await && !alive("none").await);
    assert_eq!(store.session("a", Duration::ZERO).await, Ok(None), "it was idle for longer");
    store.touch_session("a").await.unwrap();
    let touched = store.session("a", HOUR).await.unwrap().unwrap().0;
    assert_eq!(touched.seen_at, session.seen_at, "not within the same minute");
    assert_eq!(store.sessions_of(user).await.unwrap().len(), 3);

    assert!(store.end_session("a").await.unwrap());
    assert!(!store.end_session("a").await.unwrap());
    assert!(store.set_password_hash(user, "y", Some("b")).await.unwrap());
    assert!(alive("b").await && !alive("c").await, "another password ends the others");
    assert!(store.update_user(user, &member(&[(1, Rights::VIEW)])).await.unwrap());
    assert!(alive("b").await, "nothing has changed");
    assert!(store.update_user(user, &member(&[(1, Rights::ALL)])).await.unwrap());
    assert!(!alive("b").await);
    store.open_session(&new("d")).await.unwrap();
    assert_eq!(store.end_sessions_of(user, None).await, Ok(1));
    store.open_session(&NewSession { expires_at: bench.now - SECOND, ..new("old") }).await.unwrap();
    store.open_session(&new("e")).await.unwrap();
    assert_eq!(store.prune_sessions(HOUR, 10).await, Ok(1));
    assert!(alive("e").await);
    assert!(store.delete_user(user).await.unwrap());
    assert!(!alive("e").await && store.sessions_of(user).await.unwrap().is_empty());
}

pub async fn the_last_origins_of_a_user_are_known(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let ada = store.create_user("ada", "x", &member(&[])).await.unwrap();
    let ben = store.create_user("ben", "x", &member(&[])).await.unwrap();
    let remember = async |user, kind, digest: &str, keep| {
        let origin = SignInOrigin { kind, digest: digest.into() };
        store.remember_origin(user, &origin, keep, HOUR).await.unwrap();
    };
    let known = async |digest: &str| store.knows_origin(digest, HOUR).await.unwrap();
    remember(ada, "device", "laptop", 2).await;
    remember(ada, "network", "office", 2).await;
    remember(ben, "network", "elsewhere", 2).await;
    remember(ada, "device", "laptop", 2).await;
    assert!(known("laptop").await && known("office").await && !known("unknown").await);
    assert!(!store.knows_origin("laptop", Duration::ZERO).await.unwrap(), "it was not used for longer");
    // Two nodes may store the same origin at once.
    tokio::join!(remember(ada, "device", "phone", 2), remember(ada, "device", "phone", 2));
    remember(ada, "device", "tablet", 2).await;
    let mut devices = 0;
    for device in ["laptop", "phone", "tablet"] {
        devices += usize::from(known(device).await);
    }
    assert_eq!((devices, known("office").await), (2, true), "each kind has its own limit");
    remember(ada, "device", "desk", 1).await;
    assert_eq!(store.forget_origins(ada, &["office".into()]).await, Ok(1));
    assert!(known("office").await && known("elsewhere").await);
    store.delete_user(ada).await.unwrap();
    assert!(!known("office").await && known("elsewhere").await);
}

pub async fn an_api_key_has_some_of_its_users_rights(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let user =
        store.create_user("ada", "x", &member(&[(1, Rights::MEMBER), (2, Rights::VIEW)])).await.unwrap();
    let rights = Rights::VIEW.with(Rights::OPERATE);
    let apps = Some(vec![AppId(1), AppId(3)]);
    let new = NewApiKey { user, name: "deploy".into(), digest: "d1".into(), apps, rights, expires_at: None };
    let id = store.add_api_key(&new).await.unwrap();
    let (key, found) = store.api_key("d1").await.unwrap().unwrap();
    assert_eq!((key.id, &key.spec, found.id, key.used_at), (id, &new, user, None));
    assert_eq!(key.rights(&found, AppId(1)), rights);
    assert_eq!(key.rights(&found, AppId(2)), Rights::NONE, "not one of its apps");
    assert_eq!(key.rights(&found, AppId(3)), Rights::NONE, "not one of its user's");
    store.touch_api_key(id).await.unwrap();
    let used_at = store.api_key("d1").await.unwrap().unwrap().0.used_at;
    assert!(used_at.is_some());

    let expired =
        NewApiKey { digest: "d2".into(), apps: None, expires_at: Some(bench.now - SECOND), ..new.clone() };
    store.add_api_key(&expired).await.unwrap();
    assert_eq!(store.api_key("d2").await, Ok(None));
    let keys = store.api_keys(Some(user)).await.unwrap();
    assert_eq!(keys.iter().map(|key| key.spec.clone()).collect::<Vec<_>>(), [new, expired]);
    assert_eq!(store.api_keys(None).await.unwrap(), keys);
    assert!(store.delete_api_key(id).await.unwrap());
    assert!(!store.delete_api_key(id).await.unwrap());
    assert_eq!(store.api_key("d1").await, Ok(None));
}

pub async fn the_audit_is_one_unbroken_chain_whoever_writes(fresh: Fresh) {
    let store = fresh.store;
    assert_eq!(store.audit_head().await, Ok(AuditHead::default()));
    let entry = |number: usize| AuditEntry {
        principal: format!("user {}", number % 2),
        plane: "console".into(),
        ip: "10.0.0.7".into(),
        action: "job.update".into(),
        object: format!("job {number}"),
        before: None,
        after: Some("{\"描述\": \"x\"}".into()),
        result: "ok".into(),
    };
    let write = |from: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in from..from + 5 {
                store.append_audit(&[entry(number), entry(number)]).await.unwrap();
            }
        })
    };
    let (a, b, c) = tokio::join!(write(0), write(10), write(20));
    for written in [a, b, c] {
        written.unwrap();
    }
    let head = store.audit_head().await.unwrap();
    assert_eq!(head.id, 30);
    assert_eq!(store.append_audit(&[]).await, Ok(head.clone()));
    let start = AuditHead::default();
    assert_eq!(store.check_audit(&start, 100).await, Ok(AuditCheck::Whole(head.clone())));
    let Ok(AuditCheck::More(middle)) = store.check_audit(&start, 20).await else { panic!("there are 30") };
    assert_eq!(store.check_audit(&middle, 100).await, Ok(AuditCheck::Whole(head)));
    let forged = AuditHead { hash: "0".repeat(64), ..middle };
    assert_eq!(store.check_audit(&forged, 100).await, Ok(AuditCheck::Broken(21)));

    let long = AuditEntry { object: "长".repeat(200), action: "a\0b".into(), ..entry(0) };
    store.append_audit(&[long]).await.unwrap();
    let newest = store.audit_page(&AuditFilter::default(), Page::first(1)).await.unwrap();
    assert_eq!((newest.rows[0].id, newest.next), (31, Some(31)));
    assert_eq!(newest.rows[0].entry.object.chars().count(), 190, "it is noted, cut");
    assert!(matches!(store.check_audit(&start, 100).await, Ok(AuditCheck::Whole(_))));

    let count = async |filter: AuditFilter| {
        store.audit_page(&filter, Page::Offset { offset: 0, limit: 3 }).await.unwrap().total.unwrap().count
    };
    let at = newest.rows[0].at;
    let all = AuditFilter::default();
    assert_eq!(count(all.clone()).await, 31);
    assert_eq!(count(AuditFilter { principal: Some("user 1".into()), ..all.clone() }).await, 12);
    assert_eq!(count(AuditFilter { object: Some("job 21".into()), ..all.clone() }).await, 2);
    assert_eq!(count(AuditFilter { action: Some("job.update".into()), ..all.clone() }).await, 30);
    assert_eq!(count(AuditFilter { from: Some(at + SECOND), ..all.clone() }).await, 0);
    assert_eq!(count(AuditFilter { until: Some(at + SECOND), ..all }).await, 31);
}
