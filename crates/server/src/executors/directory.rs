//! Registry of apps and their registered executors, in memory.
//!
//! Held in memory so that routing never waits. [`registrar`](super::registrar) reads the database in the background; a
//! read adds executors or removes those that have left, and a failed read never empties a list.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use engine::policy::{Route, Router, Target};
use engine::{AppId, Job};
use protocol::v1::{ExecutorTrouble, TroubleCode};
use store::{Addresses, App, Registered, Registration};
use timer::Timestamp;

use super::route::{Candidates, Choices};
use super::secrets::Secrets;
use super::tokens::{Tokens, fingerprint};
use crate::outbound::{Address, Callee, Secret};

/// Apps and their executors, as known to this node.
#[derive(Default)]
pub struct Directory {
    contents: RwLock<Contents>,
    choices: Mutex<Choices>,
    tokens: Arc<Tokens>,
}

#[derive(Default)]
struct Contents {
    apps: BTreeMap<AppId, Entry>,
    ids: HashMap<String, AppId>,
    /// Registrations by app name and address, also of apps that do not exist yet, since they may be created later.
    registered: BTreeMap<(String, String), Seen>,
    /// Handlers that executors have reported.
    handlers: BTreeMap<Registration, Vec<String>>,
    /// Addresses that could not be reached, with the time of the first failure and the error.
    suspects: BTreeMap<String, (Timestamp, ExecutorTrouble)>,
    /// Executors that have left, by app name and address, with the time they were last seen.
    gone: BTreeMap<(String, String), Timestamp>,
}

/// Last registration of an executor.
struct Seen {
    at: Timestamp,
    /// Digest of the token it registered with.
    token: Option<String>,
}

struct Entry {
    app: App,
    token: Option<Secret>,
    /// Digest of `token`.
    digest: Option<String>,
    /// Tokens of executors that registered with another token than the app's newest, by address.
    own_tokens: Arc<HashMap<String, Secret>>,
    candidates: Arc<Candidates>,
}

/// How a registration changes the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The executor was not registered before.
    New,
    /// The executor was registered, and now uses another token.
    OtherToken,
    /// The executor is still registered, but its heartbeat came later than usual.
    Late,
    /// The executor is still registered.
    Again,
}

/// An app as the destination of a run.
#[derive(Clone)]
pub struct Destination {
    /// Name of the app, as its executors know it.
    pub name: String,
    /// The app's newest token, sent to executors for which no other token is known.
    token: Option<Secret>,
    own_tokens: Arc<HashMap<String, Secret>>,
    /// Executors of the app that can be reached.
    pub candidates: Arc<Candidates>,
}

impl Destination {
    /// Returns one of its executors, with the token it registered with; `None` if the address is invalid.
    pub fn callee(&self, address: &str) -> Option<Callee> {
        let token = self.own_tokens.get(address).or(self.token.as_ref()).cloned();
        Some(Callee { address: Address::parse(address).ok()?, app: self.name.clone(), token })
    }
}

/// An executor, as shown to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Address of the executor.
    pub address: String,
    /// Time of its last registration; `None` for a manually entered address.
    pub seen_at: Option<Timestamp>,
    /// Time since which it cannot be reached, if so.
    pub suspect_since: Option<Timestamp>,
    /// Why it cannot be reached.
    pub trouble: Option<ExecutorTrouble>,
    /// Handlers that it has reported.
    pub handlers: Vec<String>,
}

impl Directory {
    /// Secrets of apps.
    pub fn secrets(&self) -> &Secrets {
        &self.tokens.secrets
    }

    /// Creates an empty directory that sends these tokens to executors.
    pub fn new(tokens: Arc<Tokens>) -> Directory {
        Directory { tokens, ..Directory::default() }
    }

    /// Replaces the apps with those in the database.
    pub fn learn_apps(&self, apps: Vec<App>) {
        let mut contents = self.write();
        contents.ids = apps.iter().map(|app| (app.spec.name.clone(), app.id)).collect();
        let entry = |app: App| {
            let token = self.tokens.outgoing(app.id);
            let digest = token.as_ref().map(|token| fingerprint(token.value()));
            let (own_tokens, candidates) = (Arc::default(), Arc::default());
            (app.id, Entry { app, token, digest, own_tokens, candidates })
        };
        contents.apps = apps.into_iter().map(entry).collect();
        contents.sort_out_all(&self.tokens);
    }

    /// Merges the registrations in the database. Executors that registered here since `as_of` are kept, whether or
    /// not the database had them yet.
    pub fn learn_registrations(&self, found: Vec<Registered>, as_of: Timestamp) {
        let mut contents = self.write();
        let row = |found: Registered| {
            let Registration { app, address } = found.registration;
            ((app, address), Seen { at: found.seen_at, token: found.token })
        };
        let mut registered: BTreeMap<_, _> = found.into_iter().map(row).collect();
        for (key, seen) in std::mem::take(&mut contents.registered) {
            match registered.get_mut(&key) {
                // A registration received here after the read is newer.
                Some(row) if seen.at > row.at => {
                    row.at = seen.at;
                    row.token = seen.token.or(row.token.take());
                }
                Some(_) => {}
                None if seen.at >= as_of => drop(registered.insert(key, seen)),
                None => drop(contents.gone.insert(key, seen.at)),
            }
        }
        contents.gone.retain(|key, _| !registered.contains_key(key));
        contents.registered = registered;
        let listed: HashSet<String> =
            contents.apps.values().flat_map(|entry| contents.lists(entry)).collect();
        contents.suspects.retain(|address, _| listed.contains(address));
        contents.sort_out_all(&self.tokens);
    }

    /// Replaces the handlers with those in the database.
    pub fn learn_handlers(&self, found: BTreeMap<Registration, Vec<String>>) {
        self.write().handlers = found;
    }

    /// Records a registration, with the digest of its token if it sent one.
    pub fn arrived(&self, app: &str, address: &str, token: Option<&str>, now: Timestamp) -> Arrival {
        let mut contents = self.write();
        let key = (app.to_owned(), address.to_owned());
        let arrival = match contents.registered.get_mut(&key) {
            Some(seen) => {
                let knows_another = token.is_some() && seen.token.as_deref() != token;
                let is_late = now.duration_since(seen.at) > BEATS_WITHIN;
                seen.at = now;
                if knows_another {
                    seen.token = token.map(str::to_owned);
                }
                match knows_another {
                    true => Arrival::OtherToken,
                    false if is_late => Arrival::Late,
                    false => Arrival::Again,
                }
            }
            None => {
                contents.gone.remove(&key);
                contents.suspects.remove(address);
                contents.registered.insert(key, Seen { at: now, token: token.map(str::to_owned) });
                Arrival::New
            }
        };
        if matches!(arrival, Arrival::New | Arrival::OtherToken) {
            contents.sort_out(app, &self.tokens);
        }
        arrival
    }

    /// Returns whether any executor was last seen before `limit`.
    pub fn has_silent(&self, limit: Timestamp) -> bool {
        self.read().registered.values().any(|seen| seen.at < limit)
    }

    /// Removes an executor that has unregistered.
    pub fn left(&self, app: &str, address: &str, now: Timestamp) {
        let mut contents = self.write();
        let key = (app.to_owned(), address.to_owned());
        if contents.registered.remove(&key).is_some() {
            contents.gone.insert(key, now);
            contents.sort_out(app, &self.tokens);
        }
    }

    /// Removes an executor because its new registration could not be stored, as if it had never registered.
    pub fn never_arrived(&self, app: &str, address: &str) {
        let mut contents = self.write();
        contents.registered.remove(&(app.to_owned(), address.to_owned()));
        contents.sort_out(app, &self.tokens);
    }

    /// Removes executors that have not registered since `limit`, and forgets those that left long ago.
    pub fn expire(&self, now: Timestamp, limit: Timestamp) {
        let mut contents = self.write();
        let silent: Vec<_> = contents.registered.extract_if(.., |_, seen| seen.at < limit).collect();
        if !silent.is_empty() {
            contents.gone.extend(silent.into_iter().map(|(key, seen)| (key, seen.at)));
            contents.sort_out_all(&self.tokens);
        }
        contents.gone.retain(|_, seen_at| now.duration_since(*seen_at) <= GONE_SHOWN);
        contents.forget_oldest_gone();
    }

    /// Marks an executor as unreachable: runs skip it while there are others. Returns true if it is newly marked.
    pub fn suspect(&self, address: &str, trouble: ExecutorTrouble, now: Timestamp) -> bool {
        let mut contents = self.write();
        if let Some((_, known)) = contents.suspects.get_mut(address) {
            // A call that was suspended because of earlier failures adds no information.
            if trouble.code != TroubleCode::Suspended {
                *known = trouble;
            }
            return false;
        }
        contents.suspects.insert(address.to_owned(), (now, trouble));
        contents.sort_out_all(&self.tokens);
        true
    }

    /// Clears the mark: the executor answered again.
    pub fn trust(&self, address: &str) {
        let mut contents = self.write();
        if contents.suspects.remove(address).is_some() {
            contents.sort_out_all(&self.tokens);
        }
    }

    /// Returns the unreachable addresses to probe, each with its app.
    pub fn suspects(&self) -> Vec<(String, Destination)> {
        let contents = self.read();
        let owner =
            |address: &String| contents.apps.values().find(|entry| contents.lists(entry).contains(address));
        let suspects = contents.suspects.keys();
        suspects.filter_map(|address| Some((address.clone(), owner(address)?.destination()))).collect()
    }

    /// Returns the destination for runs of an app.
    pub fn destination(&self, app: AppId) -> Option<Destination> {
        self.read().apps.get(&app).map(Entry::destination)
    }

    /// Returns the id of an app by its name.
    pub fn app_named(&self, name: &str) -> Option<AppId> {
        self.read().ids.get(name).copied()
    }

    /// Returns ids and names of all apps, ordered by id.
    pub fn names(&self) -> Vec<(AppId, String)> {
        let contents = self.read();
        contents.apps.values().map(|entry| (entry.app.id, entry.app.spec.name.clone())).collect()
    }

    /// Returns the executors of an app, as shown to users.
    pub fn sightings(&self, app: AppId) -> Vec<Sighting> {
        let contents = self.read();
        let Some(entry) = contents.apps.get(&app) else { return Vec::new() };
        let sighting = |address: String| Sighting {
            seen_at: contents
                .registered
                .get(&(entry.app.spec.name.clone(), address.clone()))
                .map(|seen| seen.at),
            suspect_since: contents.suspects.get(&address).map(|(since, _)| *since),
            trouble: contents.suspects.get(&address).map(|(_, trouble)| trouble.clone()),
            handlers: contents.handlers_of(&entry.app.spec.name, &address),
            address,
        };
        contents.lists(entry).into_iter().map(sighting).collect()
    }

    /// Returns all addresses of an app, reachable or not.
    pub fn addresses(&self, app: AppId) -> Vec<String> {
        let contents = self.read();
        contents.apps.get(&app).map(|entry| contents.lists(entry)).unwrap_or_default()
    }

    /// Returns all addresses that an app has had since then, reachable or not, including executors that have left.
    pub fn addresses_since(&self, app: AppId, since: Timestamp) -> Vec<String> {
        let gone = self.gone(app).into_iter().filter(|(_, seen_at)| *seen_at >= since);
        let mut addresses = self.addresses(app);
        addresses.extend(gone.map(|(address, _)| address));
        addresses
    }

    /// Returns the addresses of an app's executors that have left, with the time they were last seen.
    pub fn gone(&self, app: AppId) -> Vec<(String, Timestamp)> {
        let contents = self.read();
        let Some(entry) = contents.apps.get(&app) else { return Vec::new() };
        let gone = contents.gone.iter().filter(|((name, _), _)| *name == entry.app.spec.name);
        gone.map(|((_, address), seen_at)| (address.clone(), *seen_at)).collect()
    }

    /// Returns the registered addresses of each app that uses automatic registration.
    pub fn lists(&self) -> Vec<(AppId, Vec<String>)> {
        let contents = self.read();
        let found = contents.apps.values().filter(|entry| entry.app.spec.addresses == Addresses::Registered);
        found.map(|entry| (entry.app.id, contents.lists(entry))).collect()
    }

    /// Returns how many executors can be reached, and how many cannot.
    pub fn count(&self) -> (usize, usize) {
        let contents = self.read();
        let all: usize = contents.apps.values().map(|entry| contents.lists(entry).len()).sum();
        (all.saturating_sub(contents.suspects.len()), contents.suspects.len())
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().expect("no holder of this lock panics")
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().expect("no holder of this lock panics")
    }

    fn choices(&self) -> MutexGuard<'_, Choices> {
        self.choices.lock().expect("no holder of this lock panics")
    }
}

impl Entry {
    fn destination(&self) -> Destination {
        Destination {
            name: self.app.spec.name.clone(),
            token: self.token.clone(),
            own_tokens: self.own_tokens.clone(),
            candidates: self.candidates.clone(),
        }
    }
}

impl Contents {
    /// Keeps the newest [`GONE_MAX`], however many a large outage has added at once.
    fn forget_oldest_gone(&mut self) {
        let excess = self.gone.len().saturating_sub(GONE_MAX);
        if excess > 0 {
            let mut seen: Vec<Timestamp> = self.gone.values().copied().collect();
            let (_, first_kept, _) = seen.select_nth_unstable(excess);
            self.gone.retain(|_, seen_at| *seen_at >= *first_kept);
            // Several with the same time as the oldest kept one may still be too many.
            while self.gone.len() > GONE_MAX {
                self.gone.pop_first();
            }
        }
    }

    /// All addresses of an app, reachable or not: registered ones sorted, manual ones in their given order.
    fn lists(&self, entry: &Entry) -> Vec<String> {
        match &entry.app.spec.addresses {
            Addresses::Manual(addresses) => addresses.clone(),
            Addresses::Registered => {
                let name = &entry.app.spec.name;
                let from = (name.clone(), String::new());
                let own = self.registered.range(from..).take_while(|((app, _), _)| app == name);
                own.map(|((_, address), _)| address.clone()).collect()
            }
        }
    }

    fn handlers_of(&self, app: &str, address: &str) -> Vec<String> {
        let executor = Registration { app: app.to_owned(), address: address.to_owned() };
        self.handlers.get(&executor).cloned().unwrap_or_default()
    }

    fn sort_out(&mut self, app: &str, tokens: &Tokens) {
        if let Some(id) = self.ids.get(app).copied() {
            self.sort_out_one(id, tokens);
        }
    }

    fn sort_out_all(&mut self, tokens: &Tokens) {
        for id in self.apps.keys().copied().collect::<Vec<_>>() {
            self.sort_out_one(id, tokens);
        }
    }

    /// Recomputes the candidates of an app (without unreachable executors, unless all are) and their tokens.
    fn sort_out_one(&mut self, id: AppId, tokens: &Tokens) {
        let Some(entry) = self.apps.get(&id) else { return };
        let all = self.lists(entry);
        let reachable: Vec<String> =
            all.iter().filter(|address| !self.suspects.contains_key(*address)).cloned().collect();
        let list = if reachable.is_empty() { all } else { reachable };
        let name = &entry.app.spec.name;
        let from = (name.clone(), String::new());
        let own = self.registered.range(from..).take_while(|((app, _), _)| app == name);
        let own_token = |((_, address), seen): (&(String, String), &Seen)| {
            let digest = seen.token.as_deref().filter(|digest| entry.digest.as_deref() != Some(*digest))?;
            Some((address.clone(), tokens.outgoing_to(id, digest)?))
        };
        let own_tokens: HashMap<String, Secret> = own.filter_map(own_token).collect();
        let Some(entry) = self.apps.get_mut(&id) else { return };
        entry.own_tokens = Arc::new(own_tokens);
        if entry.candidates.addresses() != list {
            entry.candidates = Arc::new(Candidates::new(list));
        }
    }
}

impl Router for Directory {
    fn targets(&self, job: &Job, scheduled_at: Timestamp) -> Vec<Target> {
        let candidates = self.read().apps.get(&job.spec.app).map(|entry| entry.candidates.clone());
        let Some(candidates) = candidates.filter(|candidates| !candidates.addresses().is_empty()) else {
            // An executor may have registered by the time of dispatch.
            return vec![Target::AtSend];
        };
        let at = |position: usize| Target::Address(candidates.addresses()[position].clone());
        match job.spec.route.known() {
            None | Some(Route::Failover | Route::FirstIdle) => vec![Target::AtSend],
            Some(Route::Broadcast) => (0..candidates.addresses().len().min(SHARDS_MAX)).map(at).collect(),
            Some(route) => vec![at(self.choices().choose(route, job.id, &candidates, scheduled_at))],
        }
    }

    fn shards(&self, job: &Job) -> usize {
        match job.spec.route.known() {
            Some(Route::Broadcast) => {
                let directory = self.read();
                let candidates = directory.apps.get(&job.spec.app).map(|entry| &entry.candidates);
                candidates.map_or(1, |candidates| candidates.addresses().len().clamp(1, SHARDS_MAX))
            }
            _ => 1,
        }
    }
}

impl Directory {
    /// Chooses one of an app's executors by the route, without calling them.
    pub fn choose(&self, route: Route, job: &Job, among: &Candidates, now: Timestamp) -> Option<String> {
        if among.addresses().is_empty() {
            return None;
        }
        let chosen = self.choices().choose(route, job.id, among, now);
        among.addresses().get(chosen).cloned()
    }
}

/// How long executors that have left are shown to users.
const GONE_SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// Executors send a heartbeat each 30 s. A later one is stored before it is acknowledged: if it were lost with its
/// node, the next one could come too late.
const BEATS_WITHIN: Duration = Duration::from_secs(45);

/// How many executors that have left are kept: where executors change with every release, the newest are enough.
const GONE_MAX: usize = 1_000;

/// Maximum number of shards of one fire: the maximum number of addresses of an app.
const SHARDS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use cron::Schedule;
    use engine::policy::Named;
    use engine::{JobId, JobSpec};
    use store::AppSpec;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    /// One app `shop` that uses automatic registration, and one with manual addresses.
    fn directory() -> Directory {
        let app = |id, name: &str, addresses| App {
            id: AppId(id),
            spec: AppSpec { name: name.into(), title: name.into(), addresses },
            listed: Vec::new(),
            access_token: None,
            updated_at: None,
        };
        let directory = Directory::default();
        directory.learn_apps(vec![
            app(1, "shop", Addresses::Registered),
            app(2, "fixed", Addresses::Manual(vec!["http://z:1/".into(), "http://a:1/".into()])),
        ]);
        directory
    }

    fn job(app: i64, route: &str) -> Job {
        let mut spec = JobSpec::new(AppId(app), "job", Schedule::Never, "handler");
        spec.route = Named::from_stored(route);
        Job {
            id: JobId(7),
            spec,
            enabled: true,
            next_fire_at: None,
            revision: 0,
            fires: 0,
            running: None,
            waiting: 0,
            problem: None,
        }
    }

    fn targets(directory: &Directory, app: i64, route: &str) -> Vec<String> {
        let text = |target: Target| target.address().unwrap_or("at send").to_owned();
        directory.targets(&job(app, route), at(0)).into_iter().map(text).collect()
    }

    #[test]
    fn an_executor_is_there_from_its_registration_to_its_removal() {
        let directory = directory();
        assert_eq!(targets(&directory, 1, "FIRST"), ["at send"]);
        let arrives = |address, token, second| directory.arrived("shop", address, token, at(second));
        assert_eq!(arrives("http://b:1/", None, 0), Arrival::New);
        assert_eq!(arrives("http://a:1/", None, 0), Arrival::New);
        assert_eq!(arrives("http://a:1/", None, 30), Arrival::Again, "a beat is not an arrival");
        assert_eq!(arrives("http://a:1/", Some("one"), 31), Arrival::OtherToken);
        assert_eq!(arrives("http://a:1/", Some("one"), 32), Arrival::Again);
        assert_eq!(arrives("http://a:1/", None, 33), Arrival::Again);
        assert_eq!(arrives("http://a:1/", None, 90), Arrival::Late);
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST"), ["http://a:1/", "http://b:1/"]);
        assert_eq!(targets(&directory, 1, "LAST"), ["http://b:1/"]);
        directory.left("shop", "http://a:1/", at(40));
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST"), ["http://b:1/"]);
    }

    #[test]
    fn an_executor_that_is_gone_is_remembered_until_it_is_back_or_a_day_has_passed() {
        let directory = directory();
        let gone = || directory.gone(AppId(1));
        for name in ["left", "silent", "missing"] {
            directory.arrived("shop", &format!("http://{name}:1/"), None, at(0));
        }
        directory.left("shop", "http://left:1/", at(10));
        directory.arrived("shop", "http://silent:1/", None, at(20));
        directory.learn_registrations(Vec::new(), at(15));
        assert_eq!(gone(), [("http://left:1/".into(), at(10)), ("http://missing:1/".into(), at(0))]);
        directory.expire(at(111), at(21));
        assert_eq!(gone().last(), Some(&("http://silent:1/".into(), at(20))));
        assert!(directory.gone(AppId(2)).is_empty(), "of another app");
        directory.arrived("shop", "http://missing:1/", None, at(120));
        directory.expire(at(24 * 3_600 + 11), at(24 * 3_600 - 79));
        assert_eq!(
            gone(),
            [("http://missing:1/".into(), at(120)), ("http://silent:1/".into(), at(20))],
            "one is back and silent again, one was forgotten"
        );
    }

    #[test]
    fn of_very_many_that_are_gone_the_last_are_remembered() {
        let directory = directory();
        for second in 0..GONE_MAX as i64 + 500 {
            directory.arrived("shop", &format!("http://a:{second}/"), None, at(second));
            directory.left("shop", &format!("http://a:{second}/"), at(second));
        }
        directory.expire(at(2_000), at(1_910));
        let gone = directory.gone(AppId(1));
        assert_eq!(gone.len(), GONE_MAX);
        assert!(gone.iter().all(|(_, seen_at)| *seen_at >= at(500)));
    }

    #[test]
    fn addresses_by_hand_keep_their_order() {
        assert_eq!(targets(&directory(), 2, "FIRST"), ["http://z:1/"]);
    }

    #[test]
    fn routes_that_ask_first_are_left_to_the_sender() {
        let directory = directory();
        for route in ["FAILOVER", "BUSYOVER", "NO_SUCH_ROUTE"] {
            assert_eq!(targets(&directory, 2, route), ["at send"]);
        }
    }

    #[test]
    fn who_has_been_silent_for_too_long_is_gone() {
        let directory = directory();
        directory.arrived("shop", "http://a:1/", None, at(0));
        directory.arrived("shop", "http://b:1/", None, at(60));
        directory.expire(at(90), at(0));
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST").len(), 2);
        directory.expire(at(91), at(1));
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST"), ["http://b:1/"]);
    }

    fn trouble(code: TroubleCode) -> ExecutorTrouble {
        ExecutorTrouble { code, detail: String::new() }
    }

    #[test]
    fn a_suspect_is_passed_over_unless_all_are() {
        let refused = || trouble(TroubleCode::ConnectRefused);
        let directory = directory();
        directory.arrived("shop", "http://a:1/", None, at(0));
        directory.arrived("shop", "http://b:1/", None, at(0));
        assert!(directory.suspect("http://a:1/", refused(), at(1)));
        assert!(!directory.suspect("http://a:1/", trouble(TroubleCode::Suspended), at(2)));
        assert_eq!(targets(&directory, 1, "FIRST"), ["http://b:1/"]);
        assert_eq!(directory.suspects().len(), 1);
        directory.suspect("http://b:1/", refused(), at(3));
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST").len(), 2);
        directory.trust("http://b:1/");
        assert_eq!(targets(&directory, 1, "FIRST"), ["http://b:1/"]);
        let seen = directory.sightings(AppId(1));
        assert_eq!((seen[0].suspect_since, seen[0].trouble.clone()), (Some(at(1)), Some(refused())));
        assert_eq!(
            seen[1],
            Sighting {
                address: "http://b:1/".into(),
                seen_at: Some(at(0)),
                suspect_since: None,
                trouble: None,
                handlers: Vec::new(),
            }
        );
    }

    #[test]
    fn the_database_takes_out_only_what_it_can_know_of() {
        let directory = directory();
        directory.arrived("shop", "http://old:1/", None, at(0));
        directory.arrived("shop", "http://new:1/", None, at(10));
        let registration = Registration { app: "shop".into(), address: "http://other:1/".into() };
        directory.learn_registrations(vec![Registered { registration, seen_at: at(9), token: None }], at(5));
        assert_eq!(targets(&directory, 1, "SHARDING_BROADCAST"), ["http://new:1/", "http://other:1/"]);
    }
}
