//! Error responses: problem details (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use protocol::v1::{Problem, ProblemCode};

use crate::request_error::RequestError;

/// The problem that a client sees.
pub fn of(error: &RequestError) -> Problem {
    let problem = Problem::new(error.code, error.detail());
    match error.code {
        ProblemCode::InvalidFields => Problem { fields: error.fields.clone(), ..problem },
        _ => problem,
    }
}

/// Response to a request that failed, which is logged here.
pub fn response(request: &str, error: &RequestError) -> Response {
    error.log(request);
    let problem = of(error);
    let body = serde_json::to_vec(&problem).expect("problems are made of texts and numbers");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(wait) = error.wait {
        let seconds = wait.as_millis().div_ceil(1_000).max(1).to_string();
        headers.insert(header::RETRY_AFTER, seconds.parse().expect("digits are a header"));
    }
    if problem.code == ProblemCode::NotSignedIn {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Problem of one part of a response: the rest of the response succeeds. A failure of the database is logged here.
pub fn of_part(request: &str, error: &RequestError) -> Problem {
    if error.is_store_failure() {
        error.log(request);
    }
    of(error)
}
