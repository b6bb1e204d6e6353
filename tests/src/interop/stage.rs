//! A centre with one group of executors, and the programs of one client.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use server::executors::generate;

use super::patiently;
use super::program::Program;
use super::script::Script;
use crate::process::{Centre, free_address};

/// A centre on a new database, with the settings a client needs.
pub struct Stage {
    /// Controls the centre.
    pub script: Script,
    /// Id of the group of the client's executors.
    pub group: i64,
    app: String,
    token: String,
    password: String,
    folder: PathBuf,
    address: SocketAddr,
    centre: Option<Centre>,
}

impl Stage {
    /// Starts a centre with a group for a client.
    pub async fn open(client: &str) -> Result<Stage> {
        let folder = std::env::temp_dir().join(format!("tickwright-{client}-{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&folder)?;
        let address = free_address()?;
        let centre = start_centre(&folder, address).await?;
        let password = centre.first_password().context("the first start saves a password")?;
        let script = Script::sign_in(address, "admin", &password).await?;
        let (app, token) = (format!("interop-{client}"), generate());
        let group = script.add_group(&app, &token).await?;
        Ok(Stage { script, group, app, token, password, folder, address, centre: Some(centre) })
    }

    /// Starts a program of a client with the settings of this centre.
    pub fn program(&self, client: &str, port: u16) -> Result<Program> {
        let settings = [
            ("INTEROP_CENTRE", format!("http://{}/xxl-job-admin", self.address)),
            ("INTEROP_APP", self.app.clone()),
            ("INTEROP_TOKEN", self.token.clone()),
            ("INTEROP_PORT", port.to_string()),
            ("INTEROP_PASSWORD", self.password.clone()),
        ];
        Program::start(client, &self.folder.join(port.to_string()), &settings)
    }

    /// Name and token of the executors' app.
    pub fn app(&self) -> (&str, &str) {
        (&self.app, &self.token)
    }

    /// Address of the centre.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until this many executors are registered.
    pub async fn has_registered(&self, count: usize) -> Result<()> {
        let registered =
            async || self.script.registered(self.group).await.ok().filter(|found| found.len() == count);
        patiently(&format!("{count} executors are registered"), registered).await.map(drop)
    }

    /// Kills the centre with kill -9.
    pub async fn kill_centre(&mut self) -> Result<()> {
        self.centre.take().context("the centre is there")?.kill().await
    }

    /// Restarts the centre at the same address.
    pub async fn start_centre(&mut self) -> Result<()> {
        self.centre = Some(start_centre(&self.folder, self.address).await?);
        Ok(())
    }

    /// Output of the centre since its last start.
    pub fn said(&self) -> String {
        self.centre.as_ref().map(Centre::said).unwrap_or_default()
    }

    /// Stops the centre gracefully and deletes everything.
    pub async fn close(mut self) -> Result<()> {
        self.centre.take().context("the centre is there")?.stop().await?;
        Ok(fs::remove_dir_all(&self.folder)?)
    }
}

async fn start_centre(folder: &std::path::Path, address: SocketAddr) -> Result<Centre> {
    let database = format!("sqlite:{}", folder.join("centre.db").display());
    Centre::start("centre", address, &database, &folder.join("key")).await
}
