//! Error responses.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use engine::StoreError;
use protocol::v1::{FieldProblem, Problem, ProblemCode};

use crate::request_error::RequestError;

/// A problem, with an optional delay before a retry.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// Problem details to return.
    pub problem: Box<Problem>,
    /// Object for the audit record, if the path does not name it.
    pub object: Option<String>,
    /// The object exists but the caller may not see it, so the response is the same as for a missing one.
    pub hides: bool,
    wait: Option<Duration>,
}

/// A problem with that code and detail.
pub fn new(code: ProblemCode, detail: impl Into<String>) -> ApiError {
    Problem::new(code, detail).into()
}

/// A request that cannot be parsed.
pub fn malformed(detail: impl Into<String>) -> ApiError {
    new(ProblemCode::MalformedRequest, detail)
}

/// A field or query parameter with an invalid value.
pub fn field(field: &str, detail: impl Into<String>) -> ApiError {
    Problem::field(field, detail).into()
}

/// Several fields with invalid values.
pub fn fields(fields: Vec<FieldProblem>) -> ApiError {
    let texts: Vec<String> =
        fields.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.detail)).collect();
    let problem = Problem::new(ProblemCode::InvalidFields, texts.join("; "));
    Problem { fields, ..problem }.into()
}

impl ApiError {
    /// Sets the delay before a retry.
    pub fn retry_after(self, wait: Duration) -> ApiError {
        ApiError { wait: Some(wait), ..self }
    }

    /// Sets the object of the audit record.
    pub fn about(self, object: &str) -> ApiError {
        ApiError { object: Some(object.to_owned()), ..self }
    }

    /// Marks the error as hiding an existing object.
    pub fn hiding(self, object: &str) -> ApiError {
        ApiError { hides: true, ..self.about(object) }
    }

    /// Response with problem details (RFC 9457).
    pub fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.problem).expect("problems are made of texts and numbers");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.wait {
            let seconds = wait.as_millis().div_ceil(1_000).max(1).to_string();
            headers.insert(header::RETRY_AFTER, seconds.parse().expect("digits are a header"));
        }
        if self.problem.code == ProblemCode::NotSignedIn {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> ApiError {
        ApiError { problem: Box::new(problem), object: None, hides: false, wait: None }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> ApiError {
        let problem = match error.field {
            Some(name) if error.code == ProblemCode::InvalidFields => Problem::field(name, error.why),
            Some(name) => Problem::new(error.code, format!("{name}: {}", error.why)),
            None => Problem::new(error.code, error.why),
        };
        ApiError { wait: error.wait, ..problem.into() }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        RequestError::from(error).into()
    }
}
