//! Programs declare jobs, and users change them.

use cron::{Cron, DstRule, Schedule, Zone};
use engine::policy::Route;
use engine::{Control, Declaration, Declared, JobSpec, Store as _, StoreError};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple};
use super::crashes::cut_everywhere;
use super::crowds::at_once;
use crate::Registry as _;
use crate::{Addresses, AppSpec, Beat, Registration};

impl Bench {
    fn declaration(&self, handler: &str) -> Declaration {
        Declaration {
            app: self.app,
            handler: handler.into(),
            schedule: Schedule::fixed_rate(self.now, HOUR).unwrap(),
            name: None,
            param: None,
            timeout: None,
            retries: None,
            route: None,
        }
    }

    async fn declare(&self, declaration: &Declaration) -> Result<Declared, StoreError> {
        let key = format!("bench/{}", declaration.handler);
        self.store.declare(declaration, &key, &Simple { now: self.now }).await
    }

    async fn edit(&self, declared: &Declared, change: impl FnOnce(&mut JobSpec)) {
        let mut spec = self.store.job(declared.job).await.unwrap().unwrap().spec;
        change(&mut spec);
        self.control(declared.job, Control::Edit { spec: Box::new(spec), revision: None }).await;
    }
}

fn shanghai(expression: &str) -> Schedule {
    let zone = Zone::parse("Asia/Shanghai").unwrap();
    Schedule::cron(Cron::parse(expression).unwrap(), zone, DstRule::NATURAL)
}

pub async fn a_declared_job_is_added_once_and_started(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let said = Declaration {
        name: Some("同步 orders".into()),
        param: Some("all".into()),
        timeout: Some(SECOND * 90),
        retries: Some(2),
        route: Some(Route::RoundRobin.into()),
        ..bench.declaration("sync")
    };
    let first = bench.declare(&said).await.unwrap();
    assert_eq!((first.before.is_none(), first.is_change(), first.overridden.len()), (true, true, 0));
    let job = bench.store.job(first.job).await.unwrap().unwrap();
    assert!(job.enabled && job.next_fire_at.is_some());
    let spec = JobSpec { key: Some("bench/sync".into()), ..said.spec() };
    assert_eq!((job.spec, job.revision), (spec, 0));
    for schedule in [said.schedule.clone(), Schedule::fixed_rate(bench.now + SECOND, HOUR).unwrap()] {
        let again = bench.declare(&Declaration { schedule, ..said.clone() }).await.unwrap();
        assert_eq!((again.job, again.is_change()), (first.job, false), "a rate keeps its beat");
    }
    assert_eq!(bench.store.job(first.job).await.unwrap().unwrap().revision, 0);
    let row = bench.store.job_rows(&[first.job]).await.unwrap().remove(0);
    let kept = row.declaration.unwrap();
    assert_eq!(kept.overridden(&row.job), [""; 0]);
    assert_eq!(Declaration { schedule: said.schedule.clone(), ..kept }, said);
    // Another name is another job.
    assert_ne!(bench.declare(&bench.declaration("Sync")).await.unwrap().job, first.job);
}

pub async fn what_people_change_stays_and_the_rest_follows_the_program(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let said = Declaration { schedule: shanghai("0 0/5 * * * ?"), ..bench.declaration("sync") };
    let first = bench.declare(&said).await.unwrap();
    bench.edit(&first, |spec| spec.schedule = shanghai("0 0 2 * * ?")).await;
    bench.control(first.job, Control::Stop).await;

    let said = Declaration {
        schedule: shanghai("0 0/7 * * * ?"),
        param: Some("new".into()),
        retries: Some(3),
        ..said
    };
    let second = bench.declare(&said).await.unwrap();
    assert_eq!((second.job, second.is_change()), (first.job, true));
    assert_eq!(second.overridden, ["schedule", "enabled"]);
    let row = bench.store.job_rows(&[first.job]).await.unwrap().remove(0);
    let spec = &row.job.spec;
    assert_eq!((&spec.schedule, spec.param.as_str(), spec.retry.count), (&shanghai("0 0 2 * * ?"), "new", 3));
    assert_eq!(row.declaration.as_ref(), Some(&said));
    assert!(!row.job.enabled, "who stopped it wants it stopped");

    // Changed back, it follows the program again.
    bench.edit(&first, |spec| spec.schedule = shanghai("0 0/7 * * * ?")).await;
    bench.control(first.job, Control::Start).await;
    let said = Declaration { schedule: shanghai("0 0/9 * * * ?"), ..said };
    let third = bench.declare(&said).await.unwrap();
    assert_eq!((third.after.schedule, third.overridden), (shanghai("0 0/9 * * * ?"), vec![]));
}

pub async fn a_job_that_people_made_is_taken_for_the_declared_one_and_stays_theirs(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let by_hand = bench.create(|spec| spec.handler = "sync".into()).await;
    let keyed = bench.create(|spec| spec.key = Some("bench/other".into())).await;
    let before = bench.store.job(by_hand).await.unwrap();
    let declared = bench.declare(&bench.declaration("sync")).await.unwrap();
    assert_eq!((declared.job, declared.is_change()), (by_hand, false), "it would run twice otherwise");
    assert_eq!(declared.overridden, ["schedule", "enabled"]);
    assert_eq!(bench.store.job(by_hand).await.unwrap(), before);
    assert_eq!(bench.declare(&bench.declaration("other")).await.unwrap().job, keyed);

    // It is ambiguous which of the two is meant.
    for _ in 0..2 {
        bench.create(|spec| spec.handler = "twice".into()).await;
    }
    let refused = bench.declare(&bench.declaration("twice")).await;
    assert!(matches!(&refused, Err(StoreError::Conflict(why)) if why.contains("`twice`")), "{refused:?}");
}

pub async fn a_declared_job_that_was_moved_is_left_alone_and_a_deleted_one_comes_back(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let declared = bench.declare(&bench.declaration("sync")).await.unwrap();
    let other = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
    let other = bench.store.create_app(&other).await.unwrap();
    bench.edit(&declared, |spec| spec.app = other).await;
    let refused = bench.declare(&bench.declaration("sync")).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    bench.control(declared.job, Control::Delete).await;
    let again = bench.declare(&bench.declaration("sync")).await.unwrap();
    assert!(again.before.is_none() && again.job != declared.job);

    let never = Declaration { schedule: Schedule::once(bench.now - HOUR), ..bench.declaration("never") };
    let refused = bench.declare(&never).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    assert_eq!(bench.store.job_by_key("bench/never").await.unwrap(), None, "nothing of it is left");
    let long = bench.declare(&bench.declaration(&"x".repeat(181))).await;
    assert!(matches!(long, Err(StoreError::Invalid(_))), "{long:?}");
}

pub async fn programs_that_declare_at_once_have_one_job(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let declared = at_once(vec![bench.clone(); 6], |bench| async move {
        bench.declare(&bench.declaration("sync")).await.unwrap()
    })
    .await;
    assert!(declared.iter().all(|other| other.job == declared[0].job), "{declared:?}");
    assert_eq!(declared.iter().filter(|declared| declared.is_change()).count(), 1, "{declared:?}");
    assert_eq!(bench.store.jobs(None, 10).await.unwrap().len(), 1);
}

pub async fn a_declaration_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let planner = Simple { now: bench.now };
    let said = bench.declaration("sync");
    let first = cut_everywhere(&bench, || bench.store.declare(&said, "bench/sync", &planner)).await;
    assert_eq!(first.after, JobSpec { key: Some("bench/sync".into()), ..said.spec() });
    let said = Declaration { schedule: shanghai("0 0 2 * * ?"), ..said };
    let second = cut_everywhere(&bench, || bench.store.declare(&said, "bench/sync", &planner)).await;
    assert_eq!((second.job, second.after.schedule), (first.job, shanghai("0 0 2 * * ?")));
    assert_eq!(bench.store.jobs(None, 10).await.unwrap().len(), 1);
}

pub async fn the_handlers_of_an_executor_are_known_while_it_is_there(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let executor = |port: u16| Registration { app: "bench".into(), address: format!("http://a:{port}/") };
    let names = ["sync", "漢字", "two words"].map(String::from);
    assert_eq!(store.note_handlers(&executor(1), &names).await, Ok(false), "it is not there yet");
    let beats = [executor(1), executor(2)].map(|registration| Beat { registration, token: None });
    store.register(&beats, HOUR).await.unwrap();
    let before = store.registry_revision().await.unwrap();
    assert_eq!(store.note_handlers(&executor(1), &names).await, Ok(true));
    assert_eq!(store.note_handlers(&executor(1), &names).await, Ok(false));
    assert!(store.registry_revision().await.unwrap() > before, "other nodes are to know");
    assert_eq!(store.handlers().await.unwrap(), [(executor(1), names.to_vec())].into());
    assert_eq!(store.note_handlers(&executor(1), &names[..1]).await, Ok(true));
    let many: Vec<String> = (0..10_000).map(|n| format!("handler-{n}")).collect();
    store.note_handlers(&executor(2), &many).await.unwrap();
    let found = store.handlers().await.unwrap();
    assert_eq!(found[&executor(1)], names[..1]);
    assert!(found[&executor(2)].len() > 1_000, "as many as there is room for");
    store.unregister("bench", &executor(2).address).await.unwrap();
    assert_eq!(store.handlers().await.unwrap().len(), 1);
    store.forget_registrations(bench.now + HOUR, 10).await.unwrap();
    assert_eq!(store.handlers().await.unwrap(), [].into());
}
