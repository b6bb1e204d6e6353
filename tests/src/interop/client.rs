//! What each client can do of what XXL-JOB's users expect. What one cannot is its own affair, and the centre copes.

/// A client library, as the executor on it behaves.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its folder in `tests/interop`.
    pub name: &'static str,
    /// Logs of runs can be read through the centre. Otherwise they are in its output only.
    pub shows_logs: bool,
    /// Tells a handler that its run is killed. Otherwise the handler goes on, though the run is over.
    pub obeys_kills: bool,
    /// Ends a run that takes too long, with this code. Otherwise the centre does, a little later.
    pub ends_late_runs_with: Option<i64>,
    /// Runs scripts that are written in the centre.
    pub runs_scripts: bool,
    /// Also those in Groovy, which are Java.
    pub runs_groovy: bool,
    /// Keeps the result of a run that ended while no centre was there.
    pub keeps_results: bool,
    /// Unregisters when it is asked to stop.
    pub says_goodbye: bool,
}

impl Client {
    /// `com.xuxueli:xxl-job-core`: the reference.
    pub const JAVA: Client = Client {
        name: "java",
        shows_logs: true,
        obeys_kills: true,
        ends_late_runs_with: Some(502),
        runs_scripts: true,
        runs_groovy: true,
        keeps_results: true,
        says_goodbye: true,
    };

    /// Ours.
    pub const OWN: Client = Client { name: "own", runs_groovy: false, ..Client::JAVA };

    /// `pyxxl`.
    pub const PYTHON: Client =
        Client { name: "python", ends_late_runs_with: Some(500), runs_scripts: false, ..Client::JAVA };

    /// `xxl-job` of npm.
    pub const NODE: Client = Client {
        name: "node",
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
        ends_late_runs_with: None,
        runs_scripts: false,
        runs_groovy: false,
        keeps_results: true,
        says_goodbye: false,
    };
}
