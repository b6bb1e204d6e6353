use tickwright_executor::job;

#[job]
async fn nameless() {}

#[job("")]
async fn blank() {}

#[job("a", setup = connect)]
async fn misnamed() {}

#[job("b", init = connect, init = connect)]
async fn repeated() {}

#[job("c")]
async fn needy(_one: u8, _more: u8) {}

#[job("d")]
fn vague<T>() {}

async fn connect() {}

fn main() {}
