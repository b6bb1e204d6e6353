//! XXL-JOB's protocol, every lineage of it (2.2.0 to 3.5).
//!
//! Written so that all understand it, read so that all are understood: numbers may stand in strings, unknown fields
//! are ignored, results come in either field.
//!
//! | who asks | path | body | answer |
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
mod block;
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
pub use block::BlockStrategy;
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

/// The header that carries the token. Sent exactly so: some ports look it up by its letters.
pub const TOKEN_HEADER: &str = "XXL-JOB-ACCESS-TOKEN";
/// The header that carries the executor's application name, from the newest lineage on.
pub const APP_HEADER: &str = "XXL-JOB-APPNAME";
/// The content type of every request.
pub const CONTENT_TYPE: &str = "application/json;charset=UTF-8";

/// All went well.
pub const CODE_OK: i32 = 200;
/// It failed.
pub const CODE_FAIL: i32 = 500;
/// The run took longer than it may.
pub const CODE_TIMEOUT: i32 = 502;
/// The centre cannot store anything now; the same call may succeed later. Only our own centre and executors tell it apart
/// from [`CODE_FAIL`]; for all others it is a failure like any.
pub const CODE_LATER: i32 = 503;

/// A stock executor takes no larger request body, and neither does ours.
pub const BODY_MAX: usize = 5 * 1024 * 1024;
/// How many results the newer executors put into one callback.
pub const CALLBACK_BATCH_MAX: usize = 50;
