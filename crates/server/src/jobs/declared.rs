//! Jobs that programs declare.

use engine::{Declaration, Declared};
use protocol::v1::ProblemCode;
use store::Rights;

use super::{Jobs, check_param};
use crate::fault::Fault;

impl Jobs<'_> {
    /// Makes a job be what a program of that app says of it, except for what somebody has changed since.
    pub async fn declare(&self, declaration: &Declaration, app: &str) -> Result<Declared, Fault> {
        if !self.who.may(Rights::EDIT, declaration.app) {
            return Err(Fault::new(ProblemCode::NotAllowed, "this token may not change jobs of that app"));
        }
        check_param(declaration.param.as_deref().unwrap_or_default())?;
        self.check_may_start(&declaration.schedule, declaration.app, self.inside.engine.now())?;
        let key = format!("{app}/{}", declaration.handler);
        let declared = self.inside.engine.declare(declaration, &key).await?;
        if declared.is_change() {
            self.inside.hints.jobs();
        }
        Ok(declared)
    }
}
