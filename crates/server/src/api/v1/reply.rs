//! Successful responses.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

/// A response with the data for its audit record.
pub struct Reply {
    status: StatusCode,
    body: Body,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Object of the audit record, if the path does not name it.
    pub object: Option<String>,
    /// User of the audit record, if the caller was not signed in yet.
    pub by: Option<String>,
    /// Object before the change, without secrets.
    pub before: Option<Value>,
    /// Object after the change.
    pub after: Option<Value>,
    /// One record per object, for a request about many. `after`, if any, is the summary of the request.
    pub each: Vec<Noted>,
}

/// Audit record for one object of a bulk operation.
pub struct Noted {
    /// Name of the action.
    pub action: &'static str,
    /// Object of the action.
    pub object: String,
    /// Result of the action.
    pub result: String,
    /// Object before the action, if it was changed.
    pub before: Option<Value>,
    /// Object after the action, if it was changed.
    pub after: Option<Value>,
}

impl Reply {
    fn new(status: StatusCode, body: Body) -> Reply {
        Reply {
            status,
            body,
            headers: Vec::new(),
            object: None,
            by: None,
            before: None,
            after: None,
            each: Vec::new(),
        }
    }

    /// A JSON response.
    pub fn json(view: &impl Serialize) -> Reply {
        let json = serde_json::to_vec(view).expect("API types have text keys");
        Reply::typed("application/json", Body::from(json))
    }

    /// A response with that content type.
    pub fn typed(kind: &'static str, body: Body) -> Reply {
        Reply::new(StatusCode::OK, body).header(header::CONTENT_TYPE, HeaderValue::from_static(kind))
    }

    /// 204: done, without a body.
    pub fn done() -> Reply {
        Reply::new(StatusCode::NO_CONTENT, Body::empty())
    }

    /// 202: accepted, without a body.
    pub fn accepted() -> Reply {
        Reply::new(StatusCode::ACCEPTED, Body::empty())
    }

    /// Sets the status.
    pub fn status(self, status: StatusCode) -> Reply {
        Reply { status, ..self }
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Reply {
        self.headers.push((name, value));
        self
    }

    /// Sets the `ETag` to the revision, for `If-Match` in a later edit.
    pub fn revision(self, revision: i64) -> Reply {
        let tag = format!("\"{revision}\"").parse().expect("digits in quotes are a header");
        self.header(header::ETAG, tag)
    }

    /// Sets the object of the audit record.
    pub fn about(self, object: impl Into<String>) -> Reply {
        Reply { object: Some(object.into()), ..self }
    }

    /// Sets the user of the audit record.
    pub fn by(self, name: impl Into<String>) -> Reply {
        Reply { by: Some(name.into()), ..self }
    }

    /// Sets the object before and after the change in the audit record.
    pub fn changed(self, before: Option<Value>, after: Option<Value>) -> Reply {
        Reply { before, after, ..self }
    }

    /// Sets the audit records of a bulk operation.
    pub fn noting(self, each: Vec<Noted>) -> Reply {
        Reply { each, ..self }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
