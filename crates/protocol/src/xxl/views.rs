//! Responses of XXL-JOB's web API: groups, runs, users and statistics by day.
#![expect(missing_docs, reason = "the names are XXL-JOB's own")]

use serde::Serialize;

/// A group of executors. `title` and `name` hold the same text; the token is never returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    pub id: i64,
    pub appname: String,
    pub title: String,
    pub name: String,
    pub address_type: i32,
    pub address_list: Option<String>,
    pub registry_list: Vec<String>,
    pub update_time: Option<String>,
    pub access_token: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    pub id: i64,
    pub job_group: i64,
    pub job_id: i64,
    pub executor_address: Option<String>,
    pub executor_handler: String,
    pub executor_param: String,
    pub executor_sharding_param: Option<String>,
    pub executor_fail_retry_count: i64,
    pub trigger_time: Option<String>,
    pub trigger_code: i64,
    pub trigger_msg: Option<String>,
    pub handle_time: Option<String>,
    pub handle_code: i64,
    pub handle_msg: Option<String>,
    pub alarm_status: i64,
}

/// Part of a run's log. `end` has another name between scheduling centre and executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    pub from_line_num: i32,
    pub to_line_num: i32,
    pub log_content: String,
    pub end: bool,
}

/// A user. Password and token are never returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserView {
    pub id: i64,
    pub username: String,
    pub password: Option<String>,
    pub token: Option<String>,
    pub role: i32,
    pub permission: String,
}

/// Number of runs per day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartView {
    pub trigger_day_list: Vec<String>,
    pub trigger_day_count_running_list: Vec<u64>,
    pub trigger_day_count_suc_list: Vec<u64>,
    pub trigger_day_count_fail_list: Vec<u64>,
    pub trigger_count_running_total: u64,
    pub trigger_count_suc_total: u64,
    pub trigger_count_fail_total: u64,
}
