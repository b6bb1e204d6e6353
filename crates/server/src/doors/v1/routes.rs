//! Table of all API routes: path, credentials, required right, object and handler.

use protocol::v1::{
    About, AlertView, ApiKeyBody, ApiKeyView, AppBody, AppView, AuditView, Bulk, BulkResult, Calendar, Clear,
    Cleared, Event, ExecutorCheck, ExecutorView, IDEMPOTENCY_KEY, JobBody, JobChange, JobView, Kill, LogPage,
    Me, Miss, NewApiKey, NewToken, NodeView, Overview, PasswordChange, Preview, PreviewRequest, RunView,
    ScriptBody, ScriptVersion, SessionView, SettingView, SignIn, Statistics, TokenView, Trigger, Triggered,
    UserBody, UserView,
};
use store::Rights;

use super::route::Method::{Delete, Get, Post, Put};
use super::route::Plane::{Api, Open, Person};
use super::route::Values::{self, Flag, Instant, Number, OneOf, Text};
use super::route::{Needs, Parameter, Route, route};
use super::{alerts, apps, audit, centre, events, jobs, keys, runs, schedules, session, statistics, users};

const NOTHING: Needs = Needs::Nothing;
const OWN: Needs = Needs::Own;
const ADMIN: Needs = Needs::Admin;
const VIEW: Needs = Needs::Right(Rights::VIEW);
const OPERATE: Needs = Needs::Right(Rights::OPERATE);
const EDIT: Needs = Needs::Right(Rights::EDIT);
const SCRIPT: Needs = Needs::Right(Rights::SCRIPT);

const LIMIT: Parameter = ("limit", "Rows of a page; 50 if left out", Number(1, 200));
const AFTER: Parameter = ("after", "The `next` of the page before", Text);
const APP: Parameter = ("app", "Only of this app, by name", Text);
const FROM: Parameter = ("from", "From this instant on", Instant);
const UNTIL: Parameter = ("until", "Before this instant", Instant);
const STEP: Parameter = (
    "step_ms",
    "Length of a bucket, in milliseconds; at most 400 buckets fit a response",
    Number(1, i64::MAX),
);
const JOB: Parameter = ("job", "Only of this job, by key, or by number after `id:`", Text);
const LINE: Parameter = ("from", "The first line, from 1", Number(1, u32::MAX as i64));
const PAGE: &[Parameter] = &[AFTER, LIMIT];

const CLIENT: Parameter = (
    "Tickwright-Client",
    "Any text: returns the session in the header `Tickwright-Session` instead of a cookie",
    Text,
);
const IF_MATCH: Parameter = ("If-Match", "The revision that is to be changed, as in `ETag`", Text);
const IF_NONE_MATCH: Parameter = ("If-None-Match", "`*` if the job must be new", Text);
const IDEMPOTENCY: Parameter =
    (IDEMPOTENCY_KEY, "A repeated request with the same key starts no second run", Text);

const ALERT_KINDS: Values = OneOf(&["failed", "timed_out", "lost", "late", "not_run"]);
const ALERT_STATES: Values = OneOf(&["waiting", "delivered", "given_up", "nobody"]);
const RUN_STATES: Values = OneOf(&["running", "succeeded", "failed"]);
const JOB_ORDERS: Values = OneOf(&["id", "-id", "name", "-name", "next_fire_at", "-next_fire_at"]);

/// All routes.
#[rustfmt::skip]
pub fn table() -> Vec<Route> {
    vec![
        // Users.
        route(Post, "/v1/session", Open, NOTHING, session::open).noted_as("session.open").says("Signs in").heeds(&[CLIENT]).takes::<SignIn>().gives::<Me>(200),
        route(Delete, "/v1/session", Person, NOTHING, session::close).noted_as("session.close").says("Signs out").answers(204),
        route(Get, "/v1/me", Api, NOTHING, session::show).says("Who is signed in, and what they may do").gives::<Me>(200),
        route(Put, "/v1/me/password", Person, NOTHING, session::change_password).noted_as("password.change").says("Changes one's own password; other sessions end").takes::<PasswordChange>().answers(204),
        route(Get, "/v1/me/sessions", Person, NOTHING, session::list).says("One's own sessions").gives_list::<SessionView>(),
        route(Delete, "/v1/me/sessions/{id}", Person, OWN, session::end).noted_as("session.end").says("Ends one of one's own sessions").answers(204),
        route(Get, "/v1/users", Api, ADMIN, users::list).says("People").asks(&[("text", "With this in their name", Text), AFTER, LIMIT]).gives_page::<UserView>(),
        route(Get, "/v1/users/{name}", Api, ADMIN, users::show).says("One of them").gives::<UserView>(200),
        route(Put, "/v1/users/{name}", Api, ADMIN, users::put).noted_as("user.put").says("Makes a user be so; 201 if new").takes::<UserBody>().gives_new_or_changed::<UserView>(),
        route(Delete, "/v1/users/{name}", Api, ADMIN, users::delete).noted_as("user.delete").says("Deletes a user").answers(204),
        route(Get, "/v1/keys", Person, NOTHING, keys::list).says("One's own API keys; all, for an administrator").gives_list::<ApiKeyView>(),
        route(Post, "/v1/keys", Person, NOTHING, keys::create).noted_as("key.create").says("Makes an API key, shown once").takes::<ApiKeyBody>().gives::<NewApiKey>(201),
        route(Delete, "/v1/keys/{id}", Person, OWN, keys::delete).noted_as("key.delete").says("Deletes an API key").answers(204),
        route(Get, "/v1/audit", Api, ADMIN, audit::list).says("Who did what").asks(&[("principal", "By whom", Text), ("action", "What was done", Text), ("object", "To what", Text), FROM, UNTIL, AFTER, LIMIT]).gives_page::<AuditView>(),

        // Apps and their executors.
        route(Get, "/v1/apps", Api, VIEW, apps::list).says("Apps and their executors").gives_list::<AppView>(),
        route(Get, "/v1/apps/{app}", Api, VIEW, apps::show).says("One app").gives::<AppView>(200),
        route(Put, "/v1/apps/{app}", Api, ADMIN, apps::put).noted_as("app.put").says("Makes an app be so; 201 if new").takes::<AppBody>().gives_new_or_changed::<AppView>(),
        route(Delete, "/v1/apps/{app}", Api, ADMIN, apps::delete).noted_as("app.delete").says("Deletes an app that has no jobs").answers(204),
        route(Get, "/v1/apps/{app}/tokens", Api, ADMIN, apps::tokens).says("Its tokens, without their values").gives_list::<TokenView>(),
        route(Post, "/v1/apps/{app}/tokens", Api, ADMIN, apps::add_token).noted_as("token.create").says("Makes a token, shown once; older ones count on").gives::<NewToken>(201),
        route(Delete, "/v1/apps/{app}/tokens/{id}", Api, ADMIN, apps::end_token).noted_as("token.end").says("Ends a token at once").answers(204),
        route(Post, "/v1/apps/{app}/executors/check", Api, OPERATE, apps::check).noted_as("executor.check").says("Asks an executor whether it is there").takes::<ExecutorCheck>().gives::<ExecutorView>(200),

        // Jobs.
        route(Get, "/v1/jobs", Api, VIEW, jobs::list).says("Jobs, without the sources of scripts").asks(&[APP, ("enabled", "Started, or stopped", Flag), ("text", "With this in name, handler, author or key", Text), ("tag", "With this tag", Text), ("handler", "With this in the handler's name", Text), ("author", "With this in the author's name", Text), ("sort", "The order; after a minus, descending; `-id` if left out", JOB_ORDERS), AFTER, LIMIT]).gives_page::<JobView>(),
        route(Post, "/v1/jobs", Api, EDIT, jobs::create).noted_as("job.create").says("Adds a job without a key").takes::<JobBody>().gives::<JobView>(201).large(),
        route(Post, "/v1/jobs/bulk", Api, NOTHING, jobs::bulk).noted_as("job.bulk").says("Does the same with many jobs, each with the right it needs").takes::<Bulk>().gives_list::<BulkResult>(),
        route(Get, "/v1/jobs/{job}", Api, VIEW, jobs::show).says("One job").gives::<JobView>(200),
        route(Put, "/v1/jobs/{job}", Api, EDIT, jobs::put).noted_as("job.put").says("Makes a job be so; 201 if the key is new. If-Match names the revision, If-None-Match: * wants it new").heeds(&[IF_MATCH, IF_NONE_MATCH]).takes::<JobBody>().gives_new_or_changed::<JobView>().large(),
        route(Delete, "/v1/jobs/{job}", Api, EDIT, jobs::delete).noted_as("job.delete").says("Deletes a job").answers(204),
        route(Post, "/v1/jobs/{job}/start", Api, OPERATE, jobs::start).noted_as("job.start").says("Its schedule fires").gives::<JobView>(200),
        route(Post, "/v1/jobs/{job}/stop", Api, OPERATE, jobs::stop).noted_as("job.stop").says("Its schedule fires no more").gives::<JobView>(200),
        route(Post, "/v1/jobs/{job}/trigger", Api, OPERATE, jobs::trigger).noted_as("job.trigger").says("Runs it now. Idempotency-Key makes asking twice harmless").heeds(&[IDEMPOTENCY]).may_take::<Trigger>().gives::<Triggered>(202),
        route(Get, "/v1/jobs/{job}/fires", Api, VIEW, jobs::fires).says("When it fires next").asks(&[("count", "How many; 10 if left out", Number(1, 1000)), ("after", "After this instant; now if left out", Instant)]).gives::<Preview>(200),
        route(Get, "/v1/jobs/{job}/misses", Api, VIEW, jobs::misses).says("Instants that were not sent, and why").asks(PAGE).gives_page::<Miss>(),
        route(Get, "/v1/jobs/{job}/changes", Api, VIEW, jobs::changes).says("Who changed it, and how").asks(PAGE).gives_page::<JobChange>(),
        route(Get, "/v1/jobs/{job}/script", Api, VIEW, jobs::scripts).says("Its script in all versions, newest first").gives_list::<ScriptVersion>(),
        route(Put, "/v1/jobs/{job}/script", Api, SCRIPT, jobs::save_script).noted_as("script.put").says("Saves a script").takes::<ScriptBody>().answers(204).large(),
        route(Post, "/v1/schedules/preview", Api, NOTHING, schedules::show).says("What a schedule means").takes::<PreviewRequest>().gives::<Preview>(200),
        route(Get, "/v1/calendar", Api, VIEW, statistics::calendar).says("How many fires are to come").asks(&[FROM, UNTIL, STEP, APP]).gives::<Calendar>(200),

        // Runs.
        route(Get, "/v1/runs", Api, VIEW, runs::list).says("Runs, newest first").asks(&[APP, JOB, ("state", "In this state", RUN_STATES), FROM, UNTIL, AFTER, LIMIT]).gives_page::<RunView>(),
        route(Post, "/v1/runs/clear", Api, EDIT, runs::clear).noted_as("run.clear").says("Deletes runs that are over").takes::<Clear>().gives::<Cleared>(200),
        route(Get, "/v1/runs/{run}", Api, VIEW, runs::show).says("One run, with what happened to it").gives::<RunView>(200),
        route(Get, "/v1/runs/{run}/log", Api, VIEW, runs::log).says("Lines of its log").asks(&[LINE]).gives::<LogPage>(200),
        route(Get, "/v1/runs/{run}/log/live", Api, VIEW, runs::live).says("Its log as it is written, as server-sent events").asks(&[LINE]).streams::<LogPage>(),
        route(Get, "/v1/runs/{run}/log/download", Api, VIEW, runs::download).says("All of its log, as text").gives_text(),
        route(Post, "/v1/runs/{run}/kill", Api, OPERATE, runs::kill).noted_as("run.kill").says("Ends it. If its executor refuses or cannot be reached, the run stays open unless force is set").may_take::<Kill>().answers(202),
        route(Post, "/v1/runs/{run}/again", Api, OPERATE, runs::again).noted_as("run.again").says("Runs its job again with the same parameter").heeds(&[IDEMPOTENCY]).gives::<Triggered>(202),

        // Alerts.
        route(Get, "/v1/alerts", Api, VIEW, alerts::list).says("What people were told of, or should have been, newest first").asks(&[APP, JOB, ("kind", "Of this kind", ALERT_KINDS), ("state", "In this state", ALERT_STATES), FROM, UNTIL, AFTER, LIMIT]).gives_page::<AlertView>(),

        // Cluster.
        route(Get, "/v1/overview", Api, VIEW, centre::overview).says("What is going on").asks(&[APP]).gives::<Overview>(200),
        route(Get, "/v1/statistics", Api, VIEW, statistics::runs).says("Runs over time").asks(&[FROM, UNTIL, STEP, APP, JOB]).gives::<Statistics>(200),
        route(Get, "/v1/events", Api, NOTHING, events::list).says("Hints that something is new, as server-sent events").streams::<Event>(),
        route(Get, "/v1/nodes", Api, NOTHING, centre::nodes).says("The nodes of the cluster").gives_list::<NodeView>(),
        route(Get, "/v1/settings", Api, ADMIN, centre::settings).says("The options of the node that answers, without secrets").gives_list::<SettingView>(),
        route(Get, "/v1/about", Api, NOTHING, centre::about).says("What this is").gives::<About>(200),
    ]
}

/// Description of a route, for example for `tickwright routes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// HTTP method.
    pub method: &'static str,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Accepted credentials: `open` (none), `api` (a session or an API key) or `person` (a session).
    pub plane: &'static str,
    /// Right that the caller needs.
    pub needs: &'static str,
    /// Kind of object that the right applies to.
    pub object: &'static str,
    /// One-sentence summary.
    pub summary: &'static str,
}

/// Descriptions of all routes.
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
