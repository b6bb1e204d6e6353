//! Jobs declared by programs.

use engine::{Declaration, Declared};
use protocol::v1::{Event, ProblemCode};
use store::Rights;

use super::{Jobs, check_param};
use crate::request_error::RequestError;

impl Jobs<'_> {
    /// Applies a program's declaration to a job, except for settings that were changed by a user since.
    pub async fn declare(&self, declaration: &Declaration, app: &str) -> Result<Declared, RequestError> {
        if !self.who.may(Rights::EDIT, declaration.app) {
            return Err(RequestError::new(
                ProblemCode::NotAllowed,
                "this token may not change jobs of this app",
            ));
        }
        check_param(declaration.param.as_deref().unwrap_or_default())?;
        self.check_may_start(&declaration.schedule, declaration.app, self.rules.engine.now())?;
        let key = format!("{app}/{}", declaration.handler);
        let declared = self.rules.engine.declare(declaration, &key).await?;
        if declared.is_change() {
            self.rules.hints.announce(Event::Jobs);
        }
        Ok(declared)
    }
}
