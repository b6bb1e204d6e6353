//! `tickwright login` and `logout`: session for the commands that call a scheduling centre.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::v1::{Me, ProblemCode, SignIn};

use crate::api::{Call, Client, LOCAL, Output, Remote};
use crate::session::{self, Sessions};
use crate::terminal;
use crate::trouble::Trouble;

/// Options of `tickwright login`.
#[derive(Args)]
pub struct Login {
    /// Address of the scheduling centre.
    #[arg(env = "TICKWRIGHT_URL", value_name = "URL", default_value = LOCAL)]
    url: String,

    /// User name [default: ask for it].
    #[arg(long, short)]
    user: Option<String>,
}

/// Signs in. Asks for the password, or reads it from the first line of standard input if that is not a terminal.
pub async fn login(login: Login) -> Result<()> {
    let client = Client::new(&login.url, None)?;
    if client.base().starts_with("http://") && !is_this_machine(client.base()) {
        eprintln!("warning: {} does not use HTTPS; the password is sent unencrypted", client.base());
    }
    let user = match login.user {
        Some(user) => user,
        None => ask("user: ")?,
    };
    let password = password()?;
    let call = Call::post("/v1/session").header("tickwright-client", "cli").json(&SignIn { user, password });
    let answer = client.send(call).await?;
    let me: Me = answer.read()?;
    let said = || Trouble::Strange { base: client.base().into(), said: "the response has no session".into() };
    let session = answer.header("tickwright-session").ok_or_else(said)?;
    Sessions::load()?.keep(client.base(), &me.user, session)?;
    terminal::say(&format!("signed in to {} as {}", client.base(), me.user))?;
    eprintln!("the session is stored in {}", session::path()?.display());
    Ok(())
}

/// Ends the session on the server and deletes it here.
pub async fn logout(remote: Remote) -> Result<()> {
    let mut sessions = Sessions::load()?;
    let client = Client::of(&remote)?;
    if sessions.of(client.base()).is_none() {
        bail!("not signed in to {}", client.base());
    }
    let ended = client.send(Call::delete("/v1/session")).await;
    // Delete the session here even if the server no longer knows it.
    sessions.forget(client.base())?;
    match ended {
        Err(trouble) if !trouble.is(ProblemCode::NotSignedIn) => {
            Err(trouble).context("the session was deleted here, but not ended on the scheduling centre")
        }
        _ if remote.output == Output::Json => Ok(()),
        _ => terminal::say(&format!("signed out of {}", client.base())),
    }
}

fn is_this_machine(base: &str) -> bool {
    let host =
        base.parse::<hyper::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn password() -> Result<String> {
    if io::stdin().is_terminal() {
        return rpassword::prompt_password("password: ").context("failed to prompt for the password");
    }
    let password = line().context("failed to read the password")?;
    if password.is_empty() {
        bail!("no password; write it to standard input, or run the command on a terminal");
    }
    Ok(password)
}

fn ask(question: &str) -> Result<String> {
    if !io::stdin().is_terminal() {
        bail!("missing --user");
    }
    eprint!("{question}");
    io::stderr().flush()?;
    line()
}

fn line() -> Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
