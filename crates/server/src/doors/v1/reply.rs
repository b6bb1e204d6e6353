//! What is answered when all went well.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

/// An answer, and what the audit is to say of it.
pub struct Reply {
    status: StatusCode,
    body: Body,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What it was about, where the path does not say.
    pub object: Option<String>,
    /// Who did it, where nobody had signed in yet.
    pub by: Option<String>,
    /// How the object was before, without secrets,
    pub before: Option<Value>,
    /// and after.
    pub after: Option<Value>,
    /// What was done to each, where it was done to many.
    pub each: Vec<Noted>,
}

/// What the audit is to say of one of many.
pub struct Noted {
    /// What was done,
    pub action: &'static str,
    /// to what,
    pub object: String,
    /// and what came of it.
    pub result: String,
    /// How it was before, where it is another now,
    pub before: Option<Value>,
    /// and after.
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

    /// This, as JSON.
    pub fn json(view: &impl Serialize) -> Reply {
        let json = serde_json::to_vec(view).expect("views have texts for keys");
        Reply::typed("application/json", Body::from(json))
    }

    /// A body of that kind.
    pub fn typed(kind: &'static str, body: Body) -> Reply {
        Reply::new(StatusCode::OK, body).header(header::CONTENT_TYPE, HeaderValue::from_static(kind))
    }

    /// It is done, and there is nothing to say about it.
    pub fn done() -> Reply {
        Reply::new(StatusCode::NO_CONTENT, Body::empty())
    }

    /// It will be done, and there is nothing to say about it yet.
    pub fn accepted() -> Reply {
        Reply::new(StatusCode::ACCEPTED, Body::empty())
    }

    /// The same with another status.
    pub fn status(self, status: StatusCode) -> Reply {
        Reply { status, ..self }
    }

    /// The same with one more header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Reply {
        self.headers.push((name, value));
        self
    }

    /// The same, with the revision that an edit may name.
    pub fn revision(self, revision: i64) -> Reply {
        let tag = format!("\"{revision}\"").parse().expect("digits in quotes are a header");
        self.header(header::ETAG, tag)
    }

    /// Tells the audit what it was about.
    pub fn about(self, object: impl Into<String>) -> Reply {
        Reply { object: Some(object.into()), ..self }
    }

    /// Tells the audit who did it.
    pub fn by(self, name: impl Into<String>) -> Reply {
        Reply { by: Some(name.into()), ..self }
    }

    /// Tells the audit how things were, and how they are.
    pub fn changed(self, before: Option<Value>, after: Option<Value>) -> Reply {
        Reply { before, after, ..self }
    }

    /// Tells the audit what was done to each of many.
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
