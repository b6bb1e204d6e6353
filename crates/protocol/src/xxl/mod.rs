//! XXL-JOB's protocol, all lineages (2.2.0 to 3.5).
//!
//! Messages are written so that every lineage can read them and read from every lineage: numbers may be strings,
//! unknown fields are ignored, results are accepted in either field.
//!
//! | caller | path | body | response |
//! |---|---|---|---|
//! | executor | `/api/registry`, `/api/registryRemove` | [`Registry`] | [`Answer`] |
//! | executor | `/api/callback` | [`write_callbacks`], [`read_callbacks`] | [`Answer`] |
//! | centre | `/beat` | anything | [`Answer`] |
//! | centre | `/run`, `/trigger` | [`TriggerRequest`] | [`Answer`] |
//! | centre | `/idleBeat`, `/kill` | [`JobRequest`] | [`Answer`] |
//! | centre | `/log` | [`LogRequest`] | [`Answer`] with a [`LogPage`] |
//! | tool | `/api/addJob`, `/api/updateJob` | [`Fields`] as a [`JobForm`] | [`Answer`] |
//! | tool | the web API: `/jobinfo/add` and so on | [`Fields`] | [`JobView`], [`RunView`] and so on |

mod answer;
mod callback;
mod fields;
mod glue;
mod job;
mod lenient;
mod lineage;
mod log;
mod registry;
pub mod texts;
mod trigger;
mod views;

pub use answer::{Answer, AnswerError};
pub use callback::{
    CallbackItem, CallbackShape, MalformedItem, each_callback, read_callbacks, write_callbacks,
};
pub use fields::{Fields, NotANumber};
pub use glue::GlueType;
pub use job::{JobForm, JobView};
pub use lineage::Lineage;
pub use log::{LogPage, LogRequest};
pub use registry::Registry;
pub use trigger::{JobRequest, TriggerRequest};
pub use views::{ChartView, GroupView, LogView, RunView, UserView};

/// Header with the access token. Send it with exactly this capitalisation: some ports look it up case-sensitively.
pub const TOKEN_HEADER: &str = "XXL-JOB-ACCESS-TOKEN";
/// Header with the executor's app name, from the newest lineage on.
pub const APP_HEADER: &str = "XXL-JOB-APPNAME";
/// Content type of every request.
pub const CONTENT_TYPE: &str = "application/json;charset=UTF-8";

/// Success.
pub const CODE_OK: i32 = 200;
/// Failure.
pub const CODE_FAIL: i32 = 500;
/// The run exceeded its timeout.
pub const CODE_TIMEOUT: i32 = 502;
/// The scheduling centre cannot store anything now; the caller may retry. Only our own scheduling centre and
/// executors distinguish it from [`CODE_FAIL`]; for all others it is a plain failure.
pub const CODE_LATER: i32 = 503;

/// Maximum size of a request body, in stock executors and ours.
pub const BODY_MAX: usize = 5 * 1024 * 1024;
/// Maximum number of results that newer executors put into one callback.
pub const CALLBACK_BATCH_MAX: usize = 50;
