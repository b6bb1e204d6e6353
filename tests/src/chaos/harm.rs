//! Injects faults and repairs them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Fault, SETTLE, Scenario};
use crate::process::{Centre, Cluster, DatabaseServer, Degradation, Disk, Mood, NetworkCondition, until};

impl Scenario {
    /// Injects the fault, then repairs it.
    pub(super) async fn harm(
        &self,
        cluster: &mut Cluster,
        centres: &mut [Option<Centre>],
        server: Option<&mut DatabaseServer>,
        disk: Option<&Disk>,
    ) -> Result<Option<Duration>> {
        cluster.at(BEGIN).await;
        // A random moment within half a second, so that repeated runs hit different moments.
        pause(Duration::from_millis(fastrand::u64(0..500))).await;
        match self.fault {
            Fault::KillOne => {
                take(&mut centres[0])?.kill().await?;
                pause(Duration::from_millis(2_500)).await;
                centres[0] = Some(cluster.start(0).await?);
            }
            Fault::KillAll => {
                for centre in centres.iter_mut() {
                    take(centre)?.kill().await?;
                }
                for (node, centre) in centres.iter_mut().enumerate() {
                    *centre = Some(cluster.start(node).await?);
                }
            }
            Fault::RollingRestart => {
                for (node, centre) in centres.iter_mut().enumerate() {
                    take(centre)?.stop().await?;
                    *centre = Some(cluster.start(node).await?);
                }
            }
            Fault::Pause => {
                let paused = centres[0].as_ref().context("it runs")?;
                paused.pause().await?;
                pause(LONGER_THAN_A_LEASE).await;
                paused.resume().await?;
            }
            Fault::KillDatabase => {
                let server = server.context("a server of our own")?;
                server.kill().await?;
                pause(Duration::from_secs(1)).await;
                server.start_again()?;
                server.until_ready().await?;
                return resumed(cluster).await.map(Some);
            }
            Fault::Failover => {
                server.context("a server of our own")?.kill().await?;
                cluster.fail_over().await?;
                return resumed(cluster).await.map(Some);
            }
            Fault::CutDatabase => {
                for _ in 0..4 {
                    turn_all(cluster, NetworkCondition::Cut);
                    pause(NOTICED).await;
                    turn_all(cluster, NetworkCondition::Clear);
                    pause(Duration::from_millis(fastrand::u64(200..700))).await;
                }
            }
            Fault::CutBeforeCommit => self.condition(cluster, NetworkCondition::CutBeforeCommit(20)).await,
            Fault::CutAfterCommit => self.condition(cluster, NetworkCondition::CutAfterCommit(20)).await,
            Fault::SlowDatabase => {
                for delay in [5, 50, 200] {
                    turn_all(cluster, NetworkCondition::Slow(Duration::from_millis(delay)));
                    pause(self.length / 6).await;
                }
                turn_all(cluster, NetworkCondition::Clear);
            }
            Fault::CrawlingDatabase => {
                self.condition(cluster, NetworkCondition::Slow(Duration::from_secs(3))).await
            }
            Fault::ThinDatabase => self.condition(cluster, NetworkCondition::Thin(MEGABIT)).await,
            Fault::HeldRows => cluster.hold_rows(HELD_JOBS, self.length / 2).await?,
            Fault::SickDatabase => {
                let server = server.context("a server of our own")?;
                for degradation in [Degradation::ReadOnly, Degradation::Crowded] {
                    let said = said(centres);
                    let degraded = server.degrade(degradation).await?;
                    // Privileges and settings apply to new connections only.
                    turn_all(cluster, NetworkCondition::Cut);
                    pause(NOTICED).await;
                    turn_all(cluster, NetworkCondition::Clear);
                    pause(SICK).await;
                    if degraded.must_be_noticed() {
                        ensure_told(centres, said)?;
                    }
                    degraded.repair().await?;
                }
            }
            Fault::FullDisk => {
                let (disk, said) = (disk.context("a disk of our own")?, said(centres));
                disk.fill()?;
                pause(SICK).await;
                ensure_told(centres, said)?;
                ensure_full(centres).await?;
                disk.clear()?;
                return resumed(cluster).await.map(Some);
            }
            Fault::Partition | Fault::Mute => {
                let condition = if self.fault == Fault::Mute {
                    NetworkCondition::Mute
                } else {
                    NetworkCondition::BlackHole
                };
                cluster.proxies[0].turn(condition);
                pause(LONGER_THAN_A_LEASE).await;
                cluster.proxies[0].turn(NetworkCondition::Clear);
            }
            Fault::Executors => {
                let moods = [
                    Mood::Slow(Duration::from_millis(300)),
                    // Around the timeout of a centre: slightly less and slightly more.
                    Mood::Slow(CALL_TIMEOUT - Duration::from_millis(50)),
                    Mood::Slow(CALL_TIMEOUT + Duration::from_millis(50)),
                    Mood::Reset,
                    Mood::ResetUnread,
                    Mood::WrongJson,
                    Mood::Huge,
                    Mood::Drip,
                    Mood::Hang,
                ];
                for mood in moods {
                    cluster.executors[0].feel(mood);
                    pause(Duration::from_millis(400)).await;
                }
                cluster.executors[0].die();
                cluster.executors[0].feel(Mood::Well);
                pause(Duration::from_millis(400)).await;
                cluster.executors[0].come_back().await?;
            }
        }
        Ok(None)
    }

    async fn condition(&self, cluster: &Cluster, condition: NetworkCondition) {
        turn_all(cluster, condition);
        pause(self.length / 2).await;
        turn_all(cluster, NetworkCondition::Clear);
    }
}

fn take(centre: &mut Option<Centre>) -> Result<Centre> {
    centre.take().context("it runs")
}

fn turn_all(cluster: &Cluster, condition: NetworkCondition) {
    cluster.proxies.iter().for_each(|proxy| proxy.turn(condition));
}

/// Time until a run is sent again.
async fn resumed(cluster: &Cluster) -> Result<Duration> {
    let (before, back) = (cluster.journal.len(), tokio::time::Instant::now());
    let resumed = async || (cluster.journal.len() > before).then_some(());
    until("something is sent again", SETTLE, resumed).await?;
    Ok(back.elapsed())
}

/// Number of lines the nodes have logged so far.
fn said(centres: &[Option<Centre>]) -> usize {
    centres.iter().flatten().map(|centre| centre.said().lines().count()).sum()
}

/// Fails unless the nodes have logged something since: no silent failures.
fn ensure_told(centres: &[Option<Centre>], before: usize) -> Result<()> {
    ensure!(said(centres) > before, "the nodes say nothing about a database that does not work");
    Ok(())
}

/// A node with a full database disk reports it: in `/readyz` for load balancers, and once in its log.
async fn ensure_full(centres: &[Option<Centre>]) -> Result<()> {
    for centre in centres.iter().flatten() {
        let full = async || {
            centre.readiness().await.ok().filter(|(_, said)| said.contains("disk of the database is full"))
        };
        let (status, said) = until("/readyz names the full disk", SETTLE, full).await?;
        ensure!(status == 503, "it is ready: {said}");
        let lines = centre.said().lines().filter(|line| line.contains("full")).count();
        ensure!(lines <= FULL_LINES_MAX, "the log has {lines} lines about a full disk:\n{}", centre.said());
    }
    Ok(())
}

/// One line of the engine, and one of each loop of the centre that encounters it.
const FULL_LINES_MAX: usize = 8;

/// Sleeps for the duration of a fault; does not wait for a condition.
async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

/// The fault starts when everything works.
const BEGIN: Duration = Duration::from_millis(1_200);

/// By then all connections are broken.
const NOTICED: Duration = Duration::from_millis(150);

/// By then the other nodes have declared a node dead.
const LONGER_THAN_A_LEASE: Duration = Duration::from_millis(4_500);

/// Duration of each degradation of the database: shorter than a lease, so that nodes keep their incarnation.
const SICK: Duration = Duration::from_millis(1_500);

/// Bytes per second.
const MEGABIT: u32 = 125_000;

/// Default timeout of a centre for the response of an executor.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The jobs with locked rows: from the first to this one.
const HELD_JOBS: i64 = 16;
