//! `tickwright routes`: all paths of the API with their required credentials and rights.

use server::{RouteLine, WebRouteLine, openapi, routes, web_routes};

/// Prints the route table that the server itself uses, so it is always up to date.
pub fn run(as_openapi: bool) -> anyhow::Result<()> {
    if as_openapi {
        println!("{}", openapi());
        return Ok(());
    }
    let table = routes();
    let width = |column: fn(&RouteLine) -> &'static str| {
        table.iter().map(|route| column(route).len()).max().unwrap_or(0)
    };
    let (path, plane, needs, object) =
        (width(|r| r.path), width(|r| r.plane), width(|r| r.needs), width(|r| r.object));
    for route in &table {
        let RouteLine { method, path: at, plane: by, needs: right, object: what, summary } = route;
        println!("{method:<6} {at:<path$}  {by:<plane$}  {right:<needs$}  {what:<object$}  {summary}");
    }
    println!("\nXXL-JOB's web API, also under /xxl-job-admin");
    for WebRouteLine { method, path: at, needs: who, changes } in web_routes() {
        println!("{method:<6} {at:<path$}  {who:<needs$}  {}", if changes { "changes" } else { "reads" });
    }
    Ok(())
}
