//! The table of paths: what each does, whose it is, and who may come.

/// A path.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Without the old context path.
    pub path: &'static str,
    /// What it does.
    pub call: Call,
    /// Which releases have it.
    pub since: Since,
}

/// Which releases have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Up to 3.2.
    Old,
    /// Later ones.
    New,
    /// All.
    Both,
}

/// What can be asked for.
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

/// Who may ask. Rights for single apps are asked for where the app is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nobody,
    Person,
    Admin,
}

impl Call {
    /// Who may ask.
    pub fn needs(self) -> Needs {
        match self {
            Call::SignInPage | Call::SignIn => Needs::Nobody,
            Call::AppPage | Call::AddApp | Call::UpdateApp | Call::RemoveApp | Call::LoadApp => Needs::Admin,
            Call::UserPage | Call::AddUser | Call::UpdateUser | Call::RemoveUser => Needs::Admin,
            _ => Needs::Person,
        }
    }

    /// Whether it is more than a look.
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

    /// Whether only POST will do, as with XXL-JOB.
    pub fn posts(self) -> bool {
        matches!(self, Call::SignIn | Call::SignOut)
    }
}

/// A path in words, for whoever wants to see them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// `POST`, or `any`.
    pub method: &'static str,
    /// Without the old context path.
    pub path: &'static str,
    /// Who may ask: `nobody` in particular, a `person` who has signed in, an `admin`.
    pub needs: &'static str,
    /// Whether it is more than a look.
    pub changes: bool,
}

/// All paths in words.
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
