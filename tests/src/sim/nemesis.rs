//! Fault injection: breaks nodes, their clocks, the database and executors, and repairs them.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Ms;
use super::dice::Dice;
use super::executor::Executors;
use super::node::Host;
use super::world::World;

/// Breaks a node at random times until the faults end.
pub async fn break_node(host: Arc<Host>) {
    let world = host.world.clone();
    let mut dice = Dice::new(world.plan.seed, "nemesis of a node", host.index);
    while calm(&world, &mut dice, world.plan.levels.node).await {
        let (gate, index) = (&host.gate, host.index);
        match dice.number(0, 9) {
            0..=2 => {
                world.note(|| format!("n{index} is killed"));
                gate.crash();
            }
            3 => {
                world.note(|| format!("n{index} is asked to stop"));
                let trouble = world.begin_trouble(index);
                gate.stop();
                world.sleep(Duration::from_secs(5)).await;
                world.end_trouble(trouble);
            }
            4..=6 => {
                let pause = length(&mut dice);
                world.note(|| format!("n{index} is paused for {pause:?}"));
                let trouble = world.begin_trouble(index);
                gate.set_paused(true);
                while_faulty(&world, pause).await;
                gate.set_paused(false);
                world.end_trouble(trouble);
                world.note(|| format!("n{index} goes on"));
            }
            _ => {
                let cut = length(&mut dice);
                world.note(|| format!("n{index} is cut off from the database for {cut:?}"));
                let trouble = world.begin_trouble(index);
                gate.set_cut(true);
                while_faulty(&world, cut).await;
                gate.set_cut(false);
                world.end_trouble(trouble);
                world.note(|| format!("n{index} reaches the database again"));
            }
        }
    }
}

/// Sets a node's wall clock wrong at random times, mostly by a little. It is right once the faults end.
pub async fn bend_clock(host: Arc<Host>) {
    let world = host.world.clone();
    let mut dice = Dice::new(world.plan.seed, "nemesis of a clock", host.index);
    while calm(&world, &mut dice, world.plan.levels.skew).await {
        let skew = if dice.chance(0.6) {
            dice.number(-300, 300)
        } else {
            let hour = dice.chance(0.3);
            let most = if hour { 3_600_000 } else { 5_000 };
            dice.number(-most, most)
        };
        let for_long = length(&mut dice);
        world.note(|| format!("the clock of n{} is off by {skew} ms for {for_long:?}", host.index));
        host.clock.set_skew(skew);
        if skew.abs() > HARMLESS {
            let trouble = world.begin_trouble(host.index);
            while_faulty(&world, for_long).await;
            host.clock.set_skew(dice.number(-100, 100));
            // The node notices with its next heartbeat.
            while_faulty(&world, Duration::from_millis(1_500)).await;
            world.end_trouble(trouble);
        }
    }
    host.clock.set_skew(0);
}

/// Makes the database unavailable for all nodes at random times.
pub async fn break_database(world: Arc<World>) {
    let mut dice = Dice::new(world.plan.seed, "nemesis of the database", 0);
    while calm(&world, &mut dice, world.plan.levels.outage).await {
        let gone = length(&mut dice);
        world.note(|| format!("the database is gone for {gone:?}"));
        let troubles: Vec<usize> = (0..world.plan.nodes).map(|node| world.begin_trouble(node)).collect();
        world.set_outage(true);
        while_faulty(&world, gone).await;
        world.set_outage(false);
        troubles.into_iter().for_each(|trouble| world.end_trouble(trouble));
        world.note(|| "the database is back".into());
    }
}

/// Kills an executor at random times.
pub async fn break_executor(world: Arc<World>, executors: Arc<Executors>, index: usize) {
    let mut dice = Dice::new(world.plan.seed, "nemesis of an executor", index);
    while calm(&world, &mut dice, world.plan.levels.executor).await {
        let gone = length(&mut dice);
        executors.crash(index);
        while_faulty(&world, gone).await;
        executors.restart(index);
    }
}

/// Waits for the next fault: about `often` in ten seconds. Returns false if there will be none.
async fn calm(world: &World, dice: &mut Dice, often: f64) -> bool {
    if often < 0.01 {
        return false;
    }
    let mean = (10_000.0 / often) as Ms;
    let wait = dice.millis(100, mean * 2);
    while_faulty(world, wait).await;
    !world.is_fair()
}

/// Waits, but not beyond the end of the faults.
async fn while_faulty(world: &World, length: Duration) {
    let until = (world.now() + length.as_millis() as Ms).min(world.plan.faults_until);
    world.sleep_until(until).await;
}

/// Shorter and longer than a lease, and than the misfire limit.
fn length(dice: &mut Dice) -> Duration {
    match dice.number(0, 3) {
        0 => dice.millis(50, 1_000),
        1 => dice.millis(1_000, 3_500),
        2 => dice.millis(3_000, 6_500),
        _ => dice.millis(6_000, 15_000),
    }
}

/// A clock error too small to stop a node, with any latency of its connection.
const HARMLESS: Ms = 300;
