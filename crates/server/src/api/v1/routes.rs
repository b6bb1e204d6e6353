//! Table of all API routes: path, credentials, required right, object and handler.

use protocol::v1::{
    About, AlertKind, AlertState, AlertView, ApiKeyBody, ApiKeyView, AppBody, AppView, AuditView,
    BackfillBody, BackfillStarted, BackfillTime, BackfillView, Bulk, BulkResult, Calendar, CancelBackfill,
    CheckedWorkflow, Clear, Cleared, Decision, Event, ExecutorCheck, ExecutorView, IDEMPOTENCY_KEY,
    InstantState, JobBody, JobChange, JobView, Kill, LogPage, Me, Miss, NewApiKey, NewToken, NodeView,
    Overview, PasswordChange, Preview, PreviewRequest, PutJobs, PutResult, RestoreVersion, Resume, Resumed,
    RunStatus, RunView, ScriptBody, ScriptVersion, SecretBody, SecretView, SessionView, SettingView, SignIn,
    Statistics, StepView, TokenView, Trigger, Triggered, UserBody, UserView, Word, WorkCalendarBody,
    WorkCalendarImport, WorkCalendarImported, WorkCalendarView, WorkflowBody, WorkflowCheck, WorkflowGrid,
    WorkflowRunView, WorkflowVersion,
};
use store::Rights;

use super::route::Method::{Delete, Get, Post, Put};
use super::route::Plane::{Api, Open, Person};
use super::route::Values::{self, Flag, Instant, Number, OneOf, Text};
use super::route::{Needs, Parameter, Route, route};
use super::{
    alerts, apps, audit, backfills, batches, centre, events, jobs, keys, runs, schedules, secrets, session,
    statistics, users, work_calendars, workflow_versions, workflows,
};

const NOTHING: Needs = Needs::Nothing;
const OWN: Needs = Needs::Own;
const ADMIN: Needs = Needs::Admin;
const VIEW: Needs = Needs::Right(Rights::VIEW);
const OPERATE: Needs = Needs::Right(Rights::OPERATE);
const EDIT: Needs = Needs::Right(Rights::EDIT);
const SCRIPT: Needs = Needs::Right(Rights::SCRIPT);

const LIMIT: Parameter = ("limit", "Maximum number of items on the page. Default: 50.", Number(1, 200));
const AFTER: Parameter = ("after", "Cursor: the `next` of the previous page.", Text);
const APP: Parameter = ("app", "Name of an app. Default: all apps.", Text);
const FROM: Parameter = ("from", "Start of the period, inclusive.", Instant);
const UNTIL: Parameter = ("until", "End of the period, exclusive.", Instant);
const STEP: Parameter = (
    "step_ms",
    "Length of a bucket in milliseconds. A response has at most 400 buckets.",
    Number(1, i64::MAX),
);
const JOB: Parameter =
    ("job", "Key of a job, or `id:` and its number, for example `id:42`. Default: all jobs.", Text);
const LINE: Parameter = ("from", "First line to return, from 1.", Number(1, u32::MAX as i64));
const PAGE: &[Parameter] = &[AFTER, LIMIT];

const CLIENT: Parameter = (
    "Tickwright-Client",
    "If present, with any value, the session is returned in the header `Tickwright-Session` instead of a cookie.",
    Text,
);
const IF_MATCH: Parameter =
    ("If-Match", "The `ETag` of the object to replace. The request fails if it has changed since.", Text);
const IF_NONE_MATCH: Parameter = ("If-None-Match", "`*`: the request fails if the job already exists.", Text);
const IDEMPOTENCY: Parameter = (
    IDEMPOTENCY_KEY,
    "Idempotency key: a repeated request with the same key returns the same run or backfill.",
    Text,
);

const ALERT_KINDS: Values = OneOf(AlertKind::WORDS);
const ALERT_STATES: Values = OneOf(AlertState::WORDS);
const INSTANT_STATES: Values = OneOf(InstantState::WORDS);
const RUN_STATES: Values = OneOf(RunStatus::WORDS);
const JOB_ORDERS: Values = OneOf(&["id", "-id", "name", "-name", "next_fire_at", "-next_fire_at"]);

/// All routes.
#[rustfmt::skip]
pub fn table() -> Vec<Route> {
    vec![
        // Users.
        route(Post, "/v1/session", Open, NOTHING, session::open).audited_as("session.open").summary("Sign in.").headers(&[CLIENT]).body::<SignIn>().returns::<Me>(200),
        route(Delete, "/v1/session", Person, NOTHING, session::close).audited_as("session.close").summary("Sign out.").returns_status(204),
        route(Get, "/v1/me", Api, NOTHING, session::show).summary("Return the signed-in user and the user's rights.").returns::<Me>(200),
        route(Put, "/v1/me/password", Person, NOTHING, session::change_password).audited_as("password.change").summary("Change your own password. Your other sessions end.").body::<PasswordChange>().returns_status(204),
        route(Get, "/v1/me/sessions", Person, NOTHING, session::list).summary("List your own sessions.").returns_list::<SessionView>(),
        route(Delete, "/v1/me/sessions/{id}", Person, OWN, session::end).audited_as("session.end").summary("End one of your own sessions.").returns_status(204),
        route(Get, "/v1/users", Api, ADMIN, users::list).summary("List users.").query(&[("text", "Text that the name contains.", Text), AFTER, LIMIT]).returns_page::<UserView>(),
        route(Get, "/v1/users/{name}", Api, ADMIN, users::show).summary("Return a user.").returns::<UserView>(200),
        route(Put, "/v1/users/{name}", Api, ADMIN, users::put).audited_as("user.put").summary("Create or replace a user. Returns 201 if it was created.").body::<UserBody>().returns_new_or_changed::<UserView>(),
        route(Delete, "/v1/users/{name}", Api, ADMIN, users::delete).audited_as("user.delete").summary("Delete a user.").returns_status(204),
        route(Get, "/v1/keys", Person, NOTHING, keys::list).summary("List your own API keys; for an administrator, the keys of all users.").returns_list::<ApiKeyView>(),
        route(Post, "/v1/keys", Person, NOTHING, keys::create).audited_as("key.create").summary("Create an API key. Its value is returned only once.").body::<ApiKeyBody>().returns::<NewApiKey>(201),
        route(Delete, "/v1/keys/{id}", Person, OWN, keys::delete).audited_as("key.delete").summary("Delete an API key.").returns_status(204),
        route(Get, "/v1/audit", Api, ADMIN, audit::list).summary("List audit entries, newest first.").query(&[("principal", "User, or the app of an executor.", Text), ("action", "Name of the change, for example `job.put`.", Text), ("object", "Changed object, for example `job:42`.", Text), FROM, UNTIL, AFTER, LIMIT]).returns_page::<AuditView>(),

        // Apps and their executors.
        route(Get, "/v1/apps", Api, VIEW, apps::list).summary("List apps with their executors.").returns_list::<AppView>(),
        route(Get, "/v1/apps/{app}", Api, VIEW, apps::show).summary("Return an app.").returns::<AppView>(200),
        route(Put, "/v1/apps/{app}", Api, ADMIN, apps::put).audited_as("app.put").summary("Create or replace an app. Returns 201 if it was created.").body::<AppBody>().returns_new_or_changed::<AppView>(),
        route(Delete, "/v1/apps/{app}", Api, ADMIN, apps::delete).audited_as("app.delete").summary("Delete an app. It must not have jobs.").returns_status(204),
        route(Get, "/v1/apps/{app}/tokens", Api, ADMIN, apps::tokens).summary("List the tokens of an app, without their values.").returns_list::<TokenView>(),
        route(Post, "/v1/apps/{app}/tokens", Api, ADMIN, apps::add_token).audited_as("token.create").summary("Create a token. Its value is returned only once. Older tokens stay valid.").returns::<NewToken>(201),
        route(Delete, "/v1/apps/{app}/tokens/{id}", Api, ADMIN, apps::end_token).audited_as("token.end").summary("Delete a token. It is invalid immediately.").returns_status(204),
        route(Get, "/v1/apps/{app}/secrets", Api, VIEW, secrets::list).summary("List the secrets of an app, without their values.").returns_list::<SecretView>(),
        route(Put, "/v1/apps/{app}/secrets/{name}", Api, EDIT, secrets::put).audited_as("secret.put").summary("Set a secret that steps of workflows name as `secret(\"name\")`. Only requests to executors of the app contain its value.").body::<SecretBody>().returns_status(204),
        route(Delete, "/v1/apps/{app}/secrets/{name}", Api, EDIT, secrets::delete).audited_as("secret.delete").summary("Delete a secret. Runs that need it are rejected from then on.").returns_status(204),
        route(Post, "/v1/apps/{app}/executors/check", Api, OPERATE, apps::check).audited_as("executor.check").summary("Call an executor and return whether it is reachable.").body::<ExecutorCheck>().returns::<ExecutorView>(200),

        // Jobs.
        route(Get, "/v1/jobs", Api, VIEW, jobs::list).summary("List jobs, without script sources.").query(&[APP, ("enabled", "`true`: started jobs only; `false`: stopped jobs only.", Flag), ("text", "Text that the name, handler, author or key contains.", Text), ("tag", "Tag of the job.", Text), ("workflow", "`true`: workflows only; `false`: other jobs only.", Flag), ("handler", "Text that the handler contains.", Text), ("author", "Text that the author contains.", Text), ("sort", "Sort order; descending with a leading minus. Default: `-id`.", JOB_ORDERS), AFTER, LIMIT]).returns_page::<JobView>(),
        route(Post, "/v1/jobs", Api, EDIT, jobs::create).audited_as("job.create").summary("Create a job without a key.").body::<JobBody>().returns::<JobView>(201).large(),
        route(Put, "/v1/jobs", Api, NOTHING, batches::put).audited_as("job.batch").summary("Create or replace many jobs, by key. The right is checked for each job.").body::<PutJobs>().returns_list::<PutResult>().large(),
        route(Post, "/v1/jobs/bulk", Api, NOTHING, batches::bulk).audited_as("job.bulk").summary("Apply one operation to many jobs, listed or found by a filter. The right is checked for each job.").body::<Bulk>().returns_list::<BulkResult>(),
        route(Get, "/v1/jobs/{job}", Api, VIEW, jobs::show).summary("Return a job.").returns::<JobView>(200),
        route(Put, "/v1/jobs/{job}", Api, EDIT, jobs::put).audited_as("job.put").summary("Create or replace a job. Returns 201 if it was created.").headers(&[IF_MATCH, IF_NONE_MATCH]).body::<JobBody>().returns_new_or_changed::<JobView>().large(),
        route(Delete, "/v1/jobs/{job}", Api, EDIT, jobs::delete).audited_as("job.delete").summary("Delete a job.").returns_status(204),
        route(Post, "/v1/jobs/{job}/start", Api, OPERATE, jobs::start).audited_as("job.start").summary("Start a job: its schedule fires.").returns::<JobView>(200),
        route(Post, "/v1/jobs/{job}/stop", Api, OPERATE, jobs::stop).audited_as("job.stop").summary("Stop a job: its schedule does not fire.").returns::<JobView>(200),
        route(Post, "/v1/jobs/{job}/trigger", Api, OPERATE, jobs::trigger).audited_as("job.trigger").summary("Trigger a run now.").headers(&[IDEMPOTENCY]).optional_body::<Trigger>().returns::<Triggered>(202),
        route(Get, "/v1/jobs/{job}/fires", Api, VIEW, jobs::fires).summary("Return the next fires of a job.").query(&[("count", "Number of fires. Default: 10.", Number(1, 1000)), ("after", "Time after which the fires are. Default: now.", Instant)]).returns::<Preview>(200),
        route(Get, "/v1/jobs/{job}/misses", Api, VIEW, jobs::misses).summary("List fires that were not sent, with the reason, newest first.").query(PAGE).returns_page::<Miss>(),
        route(Get, "/v1/jobs/{job}/changes", Api, VIEW, jobs::changes).summary("List changes of a job, newest first.").query(PAGE).returns_page::<JobChange>(),
        route(Get, "/v1/jobs/{job}/script", Api, VIEW, jobs::scripts).summary("List the versions of a job's script, newest first.").returns_list::<ScriptVersion>(),
        route(Put, "/v1/jobs/{job}/script", Api, SCRIPT, jobs::save_script).audited_as("script.put").summary("Save a new version of a job's script.").body::<ScriptBody>().returns_status(204).large(),
        route(Get, "/v1/jobs/{job}/grid", Api, VIEW, workflows::grid).summary("Return the states of the steps of a workflow's last runs, newest first.").query(&[("runs", "Number of runs. Default: 30. Large workflows return fewer.", Number(1, 100)), ("before", "Id of a run: only runs before it.", Number(1, i64::MAX))]).returns::<WorkflowGrid>(200),
        route(Get, "/v1/jobs/{job}/versions", Api, VIEW, workflow_versions::list).summary("List the versions of a workflow, newest first, without their definitions.").returns_list::<WorkflowVersion>(),
        route(Get, "/v1/jobs/{job}/versions/{version}", Api, VIEW, workflow_versions::show).summary("Return a version of a workflow with its definition, also as YAML.").returns::<WorkflowVersion>(200),
        route(Post, "/v1/jobs/{job}/versions/{version}/restore", Api, EDIT, workflow_versions::restore).audited_as("workflow.restore").summary("Save the definition of an earlier version again, as a new version. The rest of the job stays unchanged.").headers(&[IF_MATCH]).optional_body::<RestoreVersion>().returns::<JobView>(200),
        route(Post, "/v1/workflows/check", Api, NOTHING, workflows::check).summary("Check the definition of a workflow without saving it, and convert it between JSON and YAML.").body::<WorkflowCheck>().returns::<CheckedWorkflow>(200).large(),
        route(Post, "/v1/schedules/preview", Api, NOTHING, schedules::show).summary("Describe a schedule and return its next fires.").body::<PreviewRequest>().returns::<Preview>(200),
        route(Get, "/v1/work-calendars", Api, NOTHING, work_calendars::list).summary("List work calendars, without their days.").returns_list::<WorkCalendarView>(),
        route(Get, "/v1/work-calendars/{calendar}", Api, NOTHING, work_calendars::show).summary("Return a work calendar with its days.").returns::<WorkCalendarView>(200),
        route(Put, "/v1/work-calendars/{calendar}", Api, ADMIN, work_calendars::put).audited_as("calendar.put").summary("Create or replace a work calendar, and plan its jobs again. Returns 201 if it was created.").headers(&[IF_MATCH]).body::<WorkCalendarBody>().returns_new_or_changed::<WorkCalendarView>().large(),
        route(Delete, "/v1/work-calendars/{calendar}", Api, ADMIN, work_calendars::delete).audited_as("calendar.delete").summary("Delete a work calendar. No job may use it.").returns_status(204),
        route(Post, "/v1/work-calendars/{calendar}/import", Api, ADMIN, work_calendars::import).audited_as("calendar.import").summary("Import the days of an iCalendar, CSV or JSON file into a new or existing work calendar, and plan its jobs again. With `dry_run`, only return what would change.").headers(&[IF_MATCH]).body::<WorkCalendarImport>().returns::<WorkCalendarImported>(200).large(),
        route(Get, "/v1/work-calendars/{calendar}/export", Api, NOTHING, work_calendars::export).summary("Return the days of a work calendar as a file.").query(&[("format", "Format of the file. Default: `csv`.", OneOf(&["csv", "ical", "json"]))]).returns_text(),
        route(Get, "/v1/calendar", Api, VIEW, statistics::calendar).summary("Count future fires per time bucket.").query(&[FROM, UNTIL, STEP, APP]).returns::<Calendar>(200),

        // Runs.
        route(Get, "/v1/runs", Api, VIEW, runs::list).summary("List runs, newest first.").query(&[APP, JOB, ("state", "State of the run.", RUN_STATES), FROM, UNTIL, AFTER, LIMIT]).returns_page::<RunView>(),
        route(Post, "/v1/runs/clear", Api, EDIT, runs::clear).audited_as("run.clear").summary("Delete finished runs.").body::<Clear>().returns::<Cleared>(200),
        route(Get, "/v1/runs/{run}", Api, VIEW, runs::show).summary("Return a run with its trace.").returns::<RunView>(200),
        route(Get, "/v1/runs/{run}/log", Api, VIEW, runs::log).summary("Return lines of a run's log.").query(&[LINE]).returns::<LogPage>(200),
        route(Get, "/v1/runs/{run}/log/live", Api, VIEW, runs::live).summary("Stream a run's log while it is written, as server-sent events.").query(&[LINE]).streams::<LogPage>(),
        route(Get, "/v1/runs/{run}/log/download", Api, VIEW, runs::download).summary("Download the log of a run as text.").returns_text(),
        route(Post, "/v1/runs/{run}/kill", Api, OPERATE, runs::kill).audited_as("run.kill").summary("Cancel a run. If its executor rejects the request or is unreachable, the run stays open unless `force` is set.").optional_body::<Kill>().returns_status(202),
        route(Get, "/v1/runs/{run}/workflow", Api, VIEW, workflows::show_definition).summary("Return the definition that a workflow run uses, whatever was saved since.").returns::<WorkflowBody>(200),
        route(Get, "/v1/runs/{run}/steps", Api, VIEW, workflows::show).summary("Return the steps of a workflow run.").returns::<WorkflowRunView>(200),
        route(Get, "/v1/runs/{run}/steps/{step}", Api, VIEW, workflows::show_step).summary("Return a step of a workflow run, with its output and its runs.").returns::<StepView>(200),
        route(Post, "/v1/runs/{run}/steps/{step}/decide", Api, VIEW, workflows::decide).audited_as("step.decide").summary("Approve or refuse a step that asks people. Only the approvers may; if the step names none, all who may operate the job.").body::<Decision>().returns_status(202),
        route(Post, "/v1/runs/{run}/pause", Api, OPERATE, workflows::pause).audited_as("run.pause").summary("Pause a workflow run: no steps open until it is continued.").returns_status(202),
        route(Post, "/v1/runs/{run}/continue", Api, OPERATE, workflows::go_on).audited_as("run.continue").summary("Continue a paused workflow run.").returns_status(202),
        route(Post, "/v1/runs/{run}/resume", Api, OPERATE, workflows::resume).audited_as("run.resume").summary("Resume a workflow run that has ended: a new run of the same scheduled time keeps the steps that succeeded and runs the others. With `dry_run`, only return these steps.").headers(&[IDEMPOTENCY]).optional_body::<Resume>().returns::<Resumed>(200),
        route(Post, "/v1/runs/{run}/again", Api, OPERATE, runs::again).audited_as("run.again").summary("Trigger the job of a run again, with the same parameter.").headers(&[IDEMPOTENCY]).returns::<Triggered>(202),

        // Backfills.
        route(Post, "/v1/jobs/{job}/backfills", Api, OPERATE, backfills::start).audited_as("backfill.start").summary("Start a backfill: run the job for scheduled times of the past. With `dry_run`, only return what it would run.").headers(&[IDEMPOTENCY]).body::<BackfillBody>().returns::<BackfillStarted>(200),
        route(Get, "/v1/backfills", Api, VIEW, backfills::list).summary("List backfills, newest first.").query(&[APP, JOB, AFTER, LIMIT]).returns_page::<BackfillView>(),
        route(Get, "/v1/backfills/{backfill}", Api, VIEW, backfills::show).summary("Return a backfill with its progress.").returns::<BackfillView>(200),
        route(Get, "/v1/backfills/{backfill}/times", Api, VIEW, backfills::times).summary("List the scheduled times of a backfill with their runs, oldest first.").query(&[("state", "State of the scheduled time.", INSTANT_STATES), AFTER, LIMIT]).returns_page::<BackfillTime>(),
        route(Post, "/v1/backfills/{backfill}/pause", Api, OPERATE, backfills::pause).audited_as("backfill.pause").summary("Pause a backfill: no runs open until it is continued.").returns::<BackfillView>(200),
        route(Post, "/v1/backfills/{backfill}/continue", Api, OPERATE, backfills::go_on).audited_as("backfill.continue").summary("Continue a paused backfill.").returns::<BackfillView>(200),
        route(Post, "/v1/backfills/{backfill}/cancel", Api, OPERATE, backfills::cancel).audited_as("backfill.cancel").summary("Cancel a backfill: no more runs open. Open ones may end, unless `kill` is set.").optional_body::<CancelBackfill>().returns::<BackfillView>(200),
        route(Post, "/v1/backfills/{backfill}/retry", Api, OPERATE, backfills::retry).audited_as("backfill.retry").summary("Run the failed scheduled times of a backfill again.").returns::<BackfillView>(200),

        // Alerts.
        route(Get, "/v1/alerts", Api, VIEW, alerts::list).summary("List alerts, newest first.").query(&[APP, JOB, ("kind", "Kind of alert.", ALERT_KINDS), ("state", "State of the notifications.", ALERT_STATES), FROM, UNTIL, AFTER, LIMIT]).returns_page::<AlertView>(),

        // Cluster.
        route(Get, "/v1/overview", Api, VIEW, centre::overview).summary("Return an overview of jobs, runs and executors.").query(&[APP]).returns::<Overview>(200),
        route(Get, "/v1/statistics", Api, VIEW, statistics::runs).summary("Count runs per time bucket.").query(&[FROM, UNTIL, STEP, APP, JOB]).returns::<Statistics>(200),
        route(Get, "/v1/events", Api, NOTHING, events::list).summary("Stream notices of changes, as server-sent events.").streams::<Event>(),
        route(Get, "/v1/nodes", Api, NOTHING, centre::nodes).summary("List the nodes of the cluster.").returns_list::<NodeView>(),
        route(Get, "/v1/settings", Api, ADMIN, centre::settings).summary("List the options of the node that responds, without secrets.").returns_list::<SettingView>(),
        route(Get, "/v1/about", Api, NOTHING, centre::about).summary("Return the version and the database of the node that responds.").returns::<About>(200),
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
    fn every_route_has_a_summary_and_every_change_is_audited() {
        for route in table() {
            assert!(route.summary.ends_with('.'), "{}", route.path);
            for (name, text, _) in route.query.iter().chain(route.headers) {
                assert!(text.ends_with('.'), "{} of {}", name, route.path);
            }
            let reads = ["/v1/schedules/preview", "/v1/workflows/check"];
            let looks = route.method == Get || reads.contains(&route.path);
            assert_eq!(route.action.is_none(), looks, "{} {}", route.method.word(), route.path);
            let asks_for_right = matches!(route.needs, Needs::Right(_));
            assert!(!asks_for_right || route.object != "-", "{} has no object for its right", route.path);
            assert!(route.plane != Open || route.path == "/v1/session", "{} needs no credential", route.path);
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
