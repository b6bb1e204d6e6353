//! Simulated receiver of alert notifications.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use engine::{Alert, TroubleKind};

use super::dice::Dice;
use super::world::World;

/// Records notifications; sometimes unreachable.
pub struct Alarms {
    /// The simulation it belongs to.
    pub world: Arc<World>,
    /// Decides whether it is reachable.
    pub dice: Mutex<Dice>,
}

#[async_trait]
impl engine::Alarms for Alarms {
    async fn raise(&self, alert: &Alert) -> Result<(), String> {
        let (fails, takes) = {
            let mut dice = self.dice.lock().expect("no holder of this lock panics");
            (dice.chance(self.world.levels().alarm_fails), dice.millis(1, 100))
        };
        self.world.sleep(takes).await;
        if fails {
            return Err("simulated".into());
        }
        self.world.note(|| format!("alert about run {:?}: {}", alert.run, alert.trouble.message));
        let at = self.world.now();
        if alert.trouble.kind == TroubleKind::HistoryLost {
            self.world.evidence().losses.push(alert.trouble.message.clone());
        }
        if let Some(run) = alert.run {
            self.world.evidence().alarms.push((at, run, alert.trouble.kind));
        }
        Ok(())
    }
}
