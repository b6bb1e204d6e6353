//! The table: every path of the API, who may come, what it is about and what it does.

use protocol::v1::{
    About, AlertView, ApiKeyBody, ApiKeyView, AppBody, AppView, AuditView, Bulk, BulkResult, Calendar, Clear,
    Cleared, Event, ExecutorCheck, ExecutorView, JobBody, JobChange, JobView, Kill, LogPage, Me, Miss,
    NewApiKey, NewToken, NodeView, Overview, Page, PasswordChange, Preview, PreviewRequest, RunView,
    ScriptBody, ScriptVersion, SessionView, SettingView, SignIn, Statistics, TokenView, Trigger, Triggered,
    UserBody, UserView,
};
use store::Rights;

use super::route::Method::{Delete, Get, Post, Put};
use super::route::Plane::{Api, Open, Person};
use super::route::{Needs, Route, route};
use super::{alerts, apps, audit, centre, events, jobs, keys, runs, schedules, session, statistics, users};

const NOTHING: Needs = Needs::Nothing;
const OWN: Needs = Needs::Own;
const ADMIN: Needs = Needs::Admin;
const VIEW: Needs = Needs::Right(Rights::VIEW);
const OPERATE: Needs = Needs::Right(Rights::OPERATE);
const EDIT: Needs = Needs::Right(Rights::EDIT);
const SCRIPT: Needs = Needs::Right(Rights::SCRIPT);

/// A parameter of a query: its name, and what it means.
type Parameter = (&'static str, &'static str);

const LIMIT: Parameter = ("limit", "How many rows, at most 200; 50 if left out");
const AFTER: Parameter = ("after", "The `next` of the page before");
const APP: Parameter = ("app", "Only of this app, by name");
const FROM: Parameter = ("from", "From this instant on");
const UNTIL: Parameter = ("until", "Before this instant");
const STEP: Parameter = ("step_ms", "How long a part is, in milliseconds; 400 parts are the most");
const JOB: Parameter = ("job", "Only of this job, by key, or by number after `id:`");
const LINE: Parameter = ("from", "The first line, from 1");
const PAGE: &[Parameter] = &[AFTER, LIMIT];

/// All routes.
#[rustfmt::skip]
pub fn table() -> Vec<Route> {
    vec![
        // People.
        route(Post, "/v1/session", Open, NOTHING, session::open).noted_as("session.open").says("Signs in").takes::<SignIn>().gives::<Me>(200),
        route(Delete, "/v1/session", Person, NOTHING, session::close).noted_as("session.close").says("Signs out").answers(204),
        route(Get, "/v1/me", Api, NOTHING, session::show).says("Who is signed in, and what they may do").gives::<Me>(200),
        route(Put, "/v1/me/password", Person, NOTHING, session::change_password).noted_as("password.change").says("Changes one's own password; other sessions end").takes::<PasswordChange>().answers(204),
        route(Get, "/v1/me/sessions", Person, NOTHING, session::list).says("One's own sessions").gives::<Vec<SessionView>>(200),
        route(Delete, "/v1/me/sessions/{id}", Person, OWN, session::end).noted_as("session.end").says("Ends one of one's own sessions").answers(204),
        route(Get, "/v1/users", Api, ADMIN, users::list).says("People").asks(&[("text", "With this in their name"), AFTER, LIMIT]).gives::<Page<UserView>>(200),
        route(Get, "/v1/users/{name}", Api, ADMIN, users::show).says("One of them").gives::<UserView>(200),
        route(Put, "/v1/users/{name}", Api, ADMIN, users::put).noted_as("user.put").says("Makes a user be so; 201 if new").takes::<UserBody>().gives::<UserView>(200),
        route(Delete, "/v1/users/{name}", Api, ADMIN, users::delete).noted_as("user.delete").says("Deletes a user").answers(204),
        route(Get, "/v1/keys", Person, NOTHING, keys::list).says("One's own API keys; all, for an administrator").gives::<Vec<ApiKeyView>>(200),
        route(Post, "/v1/keys", Person, NOTHING, keys::create).noted_as("key.create").says("Makes an API key, shown once").takes::<ApiKeyBody>().gives::<NewApiKey>(201),
        route(Delete, "/v1/keys/{id}", Person, OWN, keys::delete).noted_as("key.delete").says("Deletes an API key").answers(204),
        route(Get, "/v1/audit", Api, ADMIN, audit::list).says("Who did what").asks(&[("principal", "By whom"), ("action", "What was done"), ("object", "To what"), FROM, UNTIL, AFTER, LIMIT]).gives::<Page<AuditView>>(200),

        // Apps and their executors.
        route(Get, "/v1/apps", Api, VIEW, apps::list).says("Apps and their executors").gives::<Vec<AppView>>(200),
        route(Get, "/v1/apps/{app}", Api, VIEW, apps::show).says("One app").gives::<AppView>(200),
        route(Put, "/v1/apps/{app}", Api, ADMIN, apps::put).noted_as("app.put").says("Makes an app be so; 201 if new").takes::<AppBody>().gives::<AppView>(200),
        route(Delete, "/v1/apps/{app}", Api, ADMIN, apps::delete).noted_as("app.delete").says("Deletes an app that has no jobs").answers(204),
        route(Get, "/v1/apps/{app}/tokens", Api, ADMIN, apps::tokens).says("Its tokens, without their values").gives::<Vec<TokenView>>(200),
        route(Post, "/v1/apps/{app}/tokens", Api, ADMIN, apps::add_token).noted_as("token.create").says("Makes a token, shown once; older ones count on").gives::<NewToken>(201),
        route(Delete, "/v1/apps/{app}/tokens/{id}", Api, ADMIN, apps::end_token).noted_as("token.end").says("Ends a token at once").answers(204),
        route(Post, "/v1/apps/{app}/executors/check", Api, OPERATE, apps::check).noted_as("executor.check").says("Asks an executor whether it is there").takes::<ExecutorCheck>().gives::<ExecutorView>(200),

        // Jobs.
        route(Get, "/v1/jobs", Api, VIEW, jobs::list).says("Jobs, without the sources of scripts").asks(&[APP, ("enabled", "Started, or stopped"), ("text", "With this in name, handler, author or key"), ("tag", "With this tag"), ("handler", "With this in the handler's name"), ("author", "With this in the author's name"), ("sort", "id, name or next_fire_at, after a minus the other way round; -id if left out"), AFTER, LIMIT]).gives::<Page<JobView>>(200),
        route(Post, "/v1/jobs", Api, EDIT, jobs::create).noted_as("job.create").says("Adds a job without a key").takes::<JobBody>().gives::<JobView>(201).large(),
        route(Post, "/v1/jobs/bulk", Api, NOTHING, jobs::bulk).noted_as("job.bulk").says("Does the same with many jobs, each with the right it needs").takes::<Bulk>().gives::<Vec<BulkResult>>(200),
        route(Get, "/v1/jobs/{job}", Api, VIEW, jobs::show).says("One job").gives::<JobView>(200),
        route(Put, "/v1/jobs/{job}", Api, EDIT, jobs::put).noted_as("job.put").says("Makes a job be so; 201 if the key is new. If-Match names the revision, If-None-Match: * wants it new").takes::<JobBody>().gives::<JobView>(200).large(),
        route(Delete, "/v1/jobs/{job}", Api, EDIT, jobs::delete).noted_as("job.delete").says("Deletes a job").answers(204),
        route(Post, "/v1/jobs/{job}/start", Api, OPERATE, jobs::start).noted_as("job.start").says("Its schedule fires").gives::<JobView>(200),
        route(Post, "/v1/jobs/{job}/stop", Api, OPERATE, jobs::stop).noted_as("job.stop").says("Its schedule fires no more").gives::<JobView>(200),
        route(Post, "/v1/jobs/{job}/trigger", Api, OPERATE, jobs::trigger).noted_as("job.trigger").says("Runs it now. Idempotency-Key makes asking twice harmless").takes::<Trigger>().gives::<Triggered>(202),
        route(Get, "/v1/jobs/{job}/fires", Api, VIEW, jobs::fires).says("When it fires next").asks(&[("count", "How many, at most 1000; 10 if left out"), ("after", "After this instant; now if left out")]).gives::<Preview>(200),
        route(Get, "/v1/jobs/{job}/misses", Api, VIEW, jobs::misses).says("Instants that were not sent, and why").asks(PAGE).gives::<Page<Miss>>(200),
        route(Get, "/v1/jobs/{job}/changes", Api, VIEW, jobs::changes).says("Who changed it, and how").asks(PAGE).gives::<Page<JobChange>>(200),
        route(Get, "/v1/jobs/{job}/script", Api, VIEW, jobs::scripts).says("Its script in all versions, newest first").gives::<Vec<ScriptVersion>>(200),
        route(Put, "/v1/jobs/{job}/script", Api, SCRIPT, jobs::save_script).noted_as("script.put").says("Saves a script").takes::<ScriptBody>().answers(204).large(),
        route(Post, "/v1/schedules/preview", Api, NOTHING, schedules::show).says("What a schedule means").takes::<PreviewRequest>().gives::<Preview>(200),
        route(Get, "/v1/calendar", Api, VIEW, statistics::calendar).says("How many fires are to come").asks(&[FROM, UNTIL, STEP, APP]).gives::<Calendar>(200),

        // Runs.
        route(Get, "/v1/runs", Api, VIEW, runs::list).says("Runs, newest first").asks(&[APP, JOB, ("state", "running, succeeded or failed"), FROM, UNTIL, AFTER, LIMIT]).gives::<Page<RunView>>(200),
        route(Post, "/v1/runs/clear", Api, EDIT, runs::clear).noted_as("run.clear").says("Deletes runs that are over").takes::<Clear>().gives::<Cleared>(200),
        route(Get, "/v1/runs/{run}", Api, VIEW, runs::show).says("One run, with what happened to it").gives::<RunView>(200),
        route(Get, "/v1/runs/{run}/log", Api, VIEW, runs::log).says("Lines of its log").asks(&[LINE]).gives::<LogPage>(200),
        route(Get, "/v1/runs/{run}/log/live", Api, VIEW, runs::live).says("Its log as it is written, as server-sent events").asks(&[LINE]).gives::<LogPage>(200),
        route(Get, "/v1/runs/{run}/log/download", Api, VIEW, runs::download).says("All of its log, as text").answers(200),
        route(Post, "/v1/runs/{run}/kill", Api, OPERATE, runs::kill).noted_as("run.kill").says("Ends it. If its executor refuses or cannot be reached, the run stays open unless force is set").takes::<Kill>().answers(202),
        route(Post, "/v1/runs/{run}/again", Api, OPERATE, runs::again).noted_as("run.again").says("Runs its job again with the same parameter").gives::<Triggered>(202),

        // Alerts.
        route(Get, "/v1/alerts", Api, VIEW, alerts::list).says("What people were told of, or should have been, newest first").asks(&[APP, JOB, ("kind", "failed, timed_out, lost, late or not_run"), ("state", "waiting, delivered, given_up or nobody"), FROM, UNTIL, AFTER, LIMIT]).gives::<Page<AlertView>>(200),

        // The centre.
        route(Get, "/v1/overview", Api, VIEW, centre::overview).says("What is going on").asks(&[APP]).gives::<Overview>(200),
        route(Get, "/v1/statistics", Api, VIEW, statistics::runs).says("Runs over time").asks(&[FROM, UNTIL, STEP, APP, JOB]).gives::<Statistics>(200),
        route(Get, "/v1/events", Api, NOTHING, events::list).says("Hints that something is new, as server-sent events").gives::<Event>(200),
        route(Get, "/v1/nodes", Api, NOTHING, centre::nodes).says("The nodes of the cluster").gives::<Vec<NodeView>>(200),
        route(Get, "/v1/settings", Api, ADMIN, centre::settings).says("The options of the node that answers, without secrets").gives::<Vec<SettingView>>(200),
        route(Get, "/v1/about", Api, NOTHING, centre::about).says("What this is").gives::<About>(200),
    ]
}

/// A route in words, for whoever wants to see them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its method,
    pub method: &'static str,
    /// and its path.
    pub path: &'static str,
    /// By which credentials it is reached: `open`, `api` (a session or an API key) or `person` (a session).
    pub plane: &'static str,
    /// What the caller must be allowed,
    pub needs: &'static str,
    /// with what.
    pub object: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// All routes in words.
pub fn described() -> Vec<Described> {
    let describe = |route: Route| Described {
        method: route.method.word(),
        path: route.path,
        plane: match route.plane {
            Open => "open",
            Api => "api",
            Person => "person",
        },
        needs: route.needs.word(),
        object: route.object,
        summary: route.summary,
    };
    table().into_iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_says_what_it_does_and_every_change_is_noted() {
        for route in table() {
            assert!(!route.summary.is_empty(), "{}", route.path);
            let looks = route.method == Get || route.path == "/v1/schedules/preview";
            assert_eq!(route.action.is_none(), looks, "{} {}", route.method.word(), route.path);
            let asks_for_right = matches!(route.needs, Needs::Right(_));
            assert!(!asks_for_right || route.object != "-", "{} has nothing to have a right in", route.path);
            assert!(
                route.plane != Open || route.path == "/v1/session",
                "{} is open to everybody",
                route.path
            );
        }
    }

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let page = include_str!("../../../../../docs/api.md");
        for route in table() {
            let path = route.path.split('?').next().unwrap_or_default();
            assert!(page.contains(path), "docs/api.md does not mention {path}");
        }
    }
}
