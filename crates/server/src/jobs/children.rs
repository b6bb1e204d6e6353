//! Child jobs: each must exist, the caller must be allowed to run it, and there must be no cycle.

use engine::{Job, JobId};
use store::Rights;

use super::{Family, Jobs};
use crate::request_error::RequestError;

/// Parses comma-separated ids. A trailing comma is accepted.
pub fn read(list: &str) -> Result<Vec<JobId>, RequestError> {
    let list = list.trim();
    let list = list.strip_suffix(',').unwrap_or(list);
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let ids = list.split(',').map(|id| match id.trim().parse() {
        Ok(id) if id > 0 => Ok(JobId(id)),
        _ => Err(RequestError::invalid(format!(
            "childJobId: `{}` is not the id of a job",
            id.chars().take(20).collect::<String>()
        ))),
    });
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    if ids.len() > CHILDREN_MAX {
        return Err(RequestError::invalid(format!(
            "childJobId: {} jobs; at most {CHILDREN_MAX} are allowed",
            ids.len()
        )));
    }
    Ok(ids)
}

impl Jobs<'_> {
    /// Children of a job that the caller may view.
    pub async fn seen_children(&self, job: &[JobId]) -> Result<Vec<JobId>, RequestError> {
        if self.who.apps().is_none() {
            return Ok(job.to_vec());
        }
        let names = self.rules.database.job_names(job).await?;
        let is_seen =
            |id: &JobId| names.iter().any(|name| name.job == *id && self.who.may(Rights::VIEW, name.app));
        Ok(job.iter().copied().filter(is_seen).collect())
    }

    /// Children of a job after an edit: those that the caller names, plus those that the caller may not view,
    /// which stay.
    pub async fn edited_children(&self, job: &Job, named: Vec<JobId>) -> Result<Vec<JobId>, RequestError> {
        let seen = self.seen_children(&job.spec.children).await?;
        let stays = |id: &JobId| !seen.contains(id) && !named.contains(id);
        let hidden: Vec<JobId> = job.spec.children.iter().copied().filter(stays).collect();
        Ok(named.into_iter().chain(hidden).collect())
    }

    /// Rejects new children that the caller may not run or that do not exist, and cycles.
    pub(super) async fn check_children(
        &self,
        children: &[JobId],
        parent: Option<&Job>,
    ) -> Result<(), RequestError> {
        if children.len() > CHILDREN_MAX {
            return Err(wrong(format!("{} jobs; at most {CHILDREN_MAX} are allowed", children.len())));
        }
        let mut next = Vec::new();
        for child in children {
            if parent.is_some_and(|parent| parent.id == *child) {
                return Err(wrong(format!("({child}) must not be the job itself")));
            }
            if parent.is_some_and(|parent| parent.spec.children.contains(child)) {
                next.push(*child);
                continue;
            }
            match self.find(*child, Rights::OPERATE).await {
                Ok(job) => next.extend(job.spec.children),
                Err(error) if error.is_store_failure() => return Err(error),
                Err(why) => return Err(wrong(format!("({child}) {why}"))),
            }
        }
        match parent {
            Some(parent) => self.check_no_circle(&mut Family::default(), parent.id, &next).await,
            // No job can lead to a job that does not exist yet.
            None => Ok(()),
        }
    }
}

pub(super) fn wrong(why: String) -> RequestError {
    RequestError::field("children", why)
}

/// Usually more than their column can hold.
pub(super) const CHILDREN_MAX: usize = 100;

/// Each job is read once, while the client waits.
pub(super) const FOLLOWED_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ids_are_read_whole_or_not_at_all() {
        let check = |list: &str, expected: Option<&[i64]>| {
            let read = read(list).ok().map(|ids| ids.into_iter().map(|id| id.0).collect::<Vec<_>>());
            assert_eq!(read.as_deref(), expected, "{list}");
        };
        check("", Some(&[]));
        check(" 3 ", Some(&[3]));
        check("3, 4,", Some(&[3, 4]));
        check("1,,2", None);
        check(",1", None);
        check("-1", None);
        check("0", None);
        check("x", None);
        check(&["7"; 101].join(","), None);
    }
}
