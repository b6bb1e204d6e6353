use tickwright_timer::scheduled;

#[scheduled(cron = "0 30 25 * * ?", zone = "Europe/London")]
async fn at_25_o_clock() {}

#[scheduled(cron = "0 30 2 * * ?", zone = "London")]
async fn somewhere() {}

#[scheduled(fixed_rate = "5 seconds")]
async fn wordy() {}

#[scheduled(fixed_delay = "0s")]
async fn spinning() {}

#[scheduled]
async fn whenever() {}

#[scheduled(cron = "0 30 2 * * ?", fixed_rate = "5s")]
async fn twofold() {}

#[scheduled(fixed_rate = "5s", zone = "UTC")]
async fn misplaced() {}

#[scheduled(fixed_delay = "5s", catch_up)]
async fn hurried() {}

#[scheduled(every = "5s")]
async fn misnamed() {}

#[scheduled(fixed_rate = "5s", fixed_rate = "6s")]
async fn repeated() {}

#[scheduled(fixed_rate = "5s")]
async fn needy(_what: u8) {}

#[scheduled(fixed_rate = "5s")]
fn vague<T>() {}

fn main() {}
