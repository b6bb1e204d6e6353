//! Features of XXL-JOB that each client library supports. The centre has to cope with those that are missing.

/// A client library and the behaviour of an executor built on it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Folder in `tests/interop`.
    pub name: &'static str,
    /// Logs of runs can be read through the centre. Otherwise they are only in its output.
    pub shows_logs: bool,
    /// Notifies a handler when its run is killed. Otherwise the handler continues although the run is over.
    pub obeys_kills: bool,
    /// Reports a run that is killed as succeeded, about when it answers the request to kill it. Whichever arrives first
    /// counts.
    pub succeeds_when_killed: bool,
    /// Stops a run that times out, with this code. Otherwise the centre does, a little later.
    pub ends_late_runs_with: Option<i64>,
    /// Runs scripts written in the centre.
    pub runs_scripts: bool,
    /// Also runs Groovy scripts, which are Java code.
    pub runs_groovy: bool,
    /// Keeps the result of a run that ended while no centre was available.
    pub keeps_results: bool,
    /// Deregisters on SIGTERM.
    pub says_goodbye: bool,
}

impl Client {
    /// `com.xuxueli:xxl-job-core`, the reference.
    pub const JAVA: Client = Client {
        name: "java",
        shows_logs: true,
        obeys_kills: true,
        succeeds_when_killed: false,
        ends_late_runs_with: Some(502),
        runs_scripts: true,
        runs_groovy: true,
        keeps_results: true,
        says_goodbye: true,
    };

    /// Our own SDK.
    pub const OWN: Client = Client { name: "own", runs_groovy: false, ..Client::JAVA };

    /// `pyxxl`.
    pub const PYTHON: Client =
        Client { name: "python", ends_late_runs_with: Some(500), runs_scripts: false, ..Client::JAVA };

    /// `xxl-job` from npm.
    pub const NODE: Client = Client {
        name: "node",
        succeeds_when_killed: true,
        ends_late_runs_with: Some(500),
        runs_scripts: false,
        keeps_results: false,
        ..Client::JAVA
    };

    /// `xxljob-sdk-rs`.
    pub const RUST: Client = Client {
        name: "rust",
        shows_logs: false,
        obeys_kills: false,
        succeeds_when_killed: false,
        ends_late_runs_with: None,
        runs_scripts: false,
        runs_groovy: false,
        keeps_results: true,
        says_goodbye: false,
    };
}
