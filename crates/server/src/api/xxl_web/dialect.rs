//! Response formats of the different XXL-JOB releases.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cron::{Timestamp, Zone};
use protocol::v1::ProblemCode;
use protocol::xxl::{CODE_FAIL, CODE_OK, Fields};
use serde_json::{Value, json};

use super::request::Login;
use super::routes::{Call, Route, Since};
use super::time;
use crate::api::xxl_error;
use crate::request_error::RequestError;

/// Response format that a client expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Up to 3.1.
    Two,
    /// 3.2: the new login with the old response format.
    Between,
    /// From 3.3 on.
    Three,
}

impl Dialect {
    /// Chosen by the login that was used; with the new login, by parameters that only 3.2 still sends in the old
    /// way.
    pub fn of(route: Route, login: Option<Login>, fields: &Fields) -> Dialect {
        let by_path = if route.since == Since::New { Login::Three } else { Login::Two };
        let login = if route.call == Call::SignIn { by_path } else { login.unwrap_or(by_path) };
        let named_one = matches!(route.call, Call::StartJob | Call::StopJob) && fields.get("id").is_some();
        let paged_old = fields.get("start").is_some() || fields.get("length").is_some();
        match login {
            Login::Two => Dialect::Two,
            Login::Three if route.since == Since::Old || named_one || paged_old => Dialect::Between,
            Login::Three => Dialect::Three,
        }
    }

    /// Login that goes with this format.
    pub fn login(self) -> Login {
        if self == Dialect::Two { Login::Two } else { Login::Three }
    }

    /// Success response.
    pub fn done(self, payload: Value) -> Response {
        let msg = (self != Dialect::Two).then_some("Success");
        self.answer(CODE_OK, msg, payload)
    }

    /// Response to a request that failed, which is logged here.
    pub fn refused(self, request: &str, error: &RequestError) -> Response {
        error.log(request);
        self.answer(CODE_FAIL, Some(&xxl_error::text(error)), Value::Null)
    }

    /// One page of a list.
    pub fn page(self, rows: Vec<Value>, total: u64) -> Response {
        match self {
            Dialect::Two | Dialect::Between => {
                json_response(&json!({ "recordsTotal": total, "recordsFiltered": total, "data": rows }))
            }
            Dialect::Three => self.done(json!({ "offset": 0, "pagesize": 0, "data": rows, "total": total })),
        }
    }

    /// Response for a request without a session. Old clients expect a redirect, new ones a message.
    pub fn not_signed_in(self, head: &Parts) -> Response {
        if self == Dialect::Two {
            return (StatusCode::FOUND, [(LOCATION, HeaderValue::from_static(SIGN_IN_PAGE))]).into_response();
        }
        let path = head.uri.path();
        let error = RequestError::new(ProblemCode::NotSignedIn, format!("not login for path:{path}"));
        self.refused(path, &error)
    }

    fn answer(self, code: i32, msg: Option<&str>, payload: Value) -> Response {
        let success = code == CODE_OK;
        json_response(&match self {
            Dialect::Two => json!({ "code": code, "msg": msg, "content": payload }),
            Dialect::Between => json!({ "code": code, "msg": msg, "content": payload, "success": success }),
            Dialect::Three => json!({ "code": code, "msg": msg, "data": payload, "success": success }),
        })
    }

    /// A time as shown in lists.
    pub fn time(self, at: Option<Timestamp>, zone: &Zone) -> Option<String> {
        let at = at?;
        Some(if self == Dialect::Three { time::wall(at, zone) } else { time::universal(at) })
    }
}

/// Redirect target for old clients. They know the path with XXL-JOB's old prefix, and it is always served.
const SIGN_IN_PAGE: &str = "/xxl-job-admin/toLogin";

fn json_response(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json;charset=UTF-8"));
    response
}
