//! Table of the paths of XXL-JOB's web API, with release, action and required role.

/// A path.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Path without the old context path.
    pub path: &'static str,
    /// Action of the path.
    pub call: Call,
    /// XXL-JOB releases that have it.
    pub since: Since,
}

/// XXL-JOB releases that have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Up to 3.2.
    Old,
    /// Later than 3.2.
    New,
    /// All.
    Both,
}

/// Actions of this API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    SignInPage,
    SignIn,
    SignOut,
    ChangePassword,
    JobPage,
    AddJob,
    UpdateJob,
    RemoveJob,
    StartJob,
    StopJob,
    TriggerJob,
    Preview,
    SaveScript,
    AppPage,
    AddApp,
    UpdateApp,
    RemoveApp,
    LoadApp,
    RunPage,
    RunLog,
    KillRun,
    ClearRuns,
    JobsOfApp,
    UserPage,
    AddUser,
    UpdateUser,
    RemoveUser,
    Chart,
}

/// Role that a caller needs. Rights in single apps are checked later, when the app is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nobody,
    Person,
    Admin,
}

impl Call {
    /// Role that a caller needs.
    pub fn needs(self) -> Needs {
        match self {
            Call::SignInPage | Call::SignIn => Needs::Nobody,
            Call::AppPage | Call::AddApp | Call::UpdateApp | Call::RemoveApp | Call::LoadApp => Needs::Admin,
            Call::UserPage | Call::AddUser | Call::UpdateUser | Call::RemoveUser => Needs::Admin,
            _ => Needs::Person,
        }
    }

    /// Whether it changes anything.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Call::SignInPage
                | Call::JobPage
                | Call::Preview
                | Call::AppPage
                | Call::LoadApp
                | Call::RunPage
                | Call::RunLog
                | Call::JobsOfApp
                | Call::UserPage
                | Call::Chart
        )
    }

    /// Whether it accepts only POST, as in XXL-JOB.
    pub fn posts(self) -> bool {
        matches!(self, Call::SignIn | Call::SignOut)
    }
}

/// Description of a path, for example for `tickwright routes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// `POST`, or `any`.
    pub method: &'static str,
    /// Path without the old context path.
    pub path: &'static str,
    /// Required role: `nobody` (no session needed), `person` (signed in) or `admin`.
    pub needs: &'static str,
    /// Whether it changes anything.
    pub changes: bool,
}

/// Descriptions of all paths.
pub fn described() -> Vec<Described> {
    let describe = |route: &Route| Described {
        method: if route.call.posts() { "POST" } else { "any" },
        path: route.path,
        needs: match route.call.needs() {
            Needs::Nobody => "nobody",
            Needs::Person => "person",
            Needs::Admin => "admin",
        },
        changes: route.call.changes(),
    };
    ROUTES.iter().map(describe).collect()
}

const fn old(path: &'static str, call: Call) -> Route {
    Route { path, call, since: Since::Old }
}

const fn new(path: &'static str, call: Call) -> Route {
    Route { path, call, since: Since::New }
}

const fn both(path: &'static str, call: Call) -> Route {
    Route { path, call, since: Since::Both }
}

/// All paths.
pub const ROUTES: [Route; 38] = [
    old("/toLogin", Call::SignInPage),
    new("/auth/login", Call::SignInPage),
    old("/login", Call::SignIn),
    new("/auth/doLogin", Call::SignIn),
    old("/logout", Call::SignOut),
    new("/auth/logout", Call::SignOut),
    old("/user/updatePwd", Call::ChangePassword),
    new("/auth/updatePwd", Call::ChangePassword),
    both("/jobinfo/pageList", Call::JobPage),
    old("/jobinfo/add", Call::AddJob),
    new("/jobinfo/insert", Call::AddJob),
    both("/jobinfo/update", Call::UpdateJob),
    old("/jobinfo/remove", Call::RemoveJob),
    new("/jobinfo/delete", Call::RemoveJob),
    both("/jobinfo/start", Call::StartJob),
    both("/jobinfo/stop", Call::StopJob),
    both("/jobinfo/trigger", Call::TriggerJob),
    both("/jobinfo/nextTriggerTime", Call::Preview),
    both("/jobcode/save", Call::SaveScript),
    both("/jobgroup/pageList", Call::AppPage),
    old("/jobgroup/save", Call::AddApp),
    new("/jobgroup/insert", Call::AddApp),
    both("/jobgroup/update", Call::UpdateApp),
    old("/jobgroup/remove", Call::RemoveApp),
    new("/jobgroup/delete", Call::RemoveApp),
    both("/jobgroup/loadById", Call::LoadApp),
    both("/joblog/pageList", Call::RunPage),
    both("/joblog/logDetailCat", Call::RunLog),
    both("/joblog/logKill", Call::KillRun),
    both("/joblog/clearLog", Call::ClearRuns),
    old("/joblog/getJobsByGroup", Call::JobsOfApp),
    both("/user/pageList", Call::UserPage),
    old("/user/add", Call::AddUser),
    new("/user/insert", Call::AddUser),
    both("/user/update", Call::UpdateUser),
    old("/user/remove", Call::RemoveUser),
    new("/user/delete", Call::RemoveUser),
    both("/chartInfo", Call::Chart),
];
