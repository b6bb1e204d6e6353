//! Credentials of a new database, and files that hold secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use tickwright_tests::serve::{Certificate, Folder, Serve};

#[tokio::test]
async fn without_a_terminal_the_first_password_and_token_are_in_a_private_file_and_nowhere_else() {
    let served = Serve::new().unwrap().start().await.unwrap();
    let path = served.data_dir().join("initial-credentials.txt");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        served.said().contains(&format!("with the credentials in {}", path.display())),
        "{}",
        served.said()
    );
    for name in ["password", "xxl.job.accessToken"] {
        let secret = served.credential(name).unwrap();
        assert!(secret.len() >= 16 && !served.said().contains(&secret), "{name}: {}", served.said());
    }
    served.sign_in().await.unwrap();
}

#[test]
fn on_a_terminal_the_first_password_and_token_are_printed_and_no_file_is_written() {
    let folder = Folder::new("terminal").unwrap();
    let program = tickwright_tests::process::binary().unwrap();
    let serve = format!("timeout 60 {} serve --listen 127.0.0.1:0 --sample false", program.display());
    // `script` runs a command on its own terminal and copies the output.
    let mut child = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &serve, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut find = |text: &str| {
        let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(text)));
        line.unwrap_or_else(|| panic!("no `{text}`")).unwrap()
    };
    assert!(find("sign in     as ").contains("(shown only now)"));
    find("xxl.job.accessToken=");
    assert!(!folder.path().join("tickwright-data/initial-credentials.txt").exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_private_key_that_every_user_can_read_is_refused() {
    let serve = Serve::new().unwrap();
    let Certificate { certificate, key } = Certificate::create(&serve.path(".")).unwrap();
    let serve = serve.with("tls-cert", &certificate.display().to_string());
    let serve = serve.with("tls-key", &key.display().to_string());
    allow(&key, 0o604);
    for subcommand in ["serve", "doctor"] {
        let (well, said) = serve.run(subcommand).await.unwrap();
        assert!(!well && said.contains("every user of this machine can read it"), "{subcommand}: {said}");
        assert!(said.contains(&format!("chmod o= {}", key.display())), "{subcommand}: {said}");
    }
    allow(&key, 0o640);
    serve.start().await.unwrap();
}

#[tokio::test]
async fn a_file_of_options_that_holds_a_secret_is_not_for_every_user() {
    let serve = Serve::new().unwrap();
    let (config, token) = (serve.path("options.toml"), serve.path("token"));
    let serve = serve.with("config", &config.display().to_string());
    fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    fs::write(&config, "token = '0123456789abcdef0123456789abcdef'").unwrap();
    allow(&config, 0o644);
    let (well, said) = serve.run("serve").await.unwrap();
    assert!(!well && said.contains("contains a secret") && said.contains("chmod o="), "{said}");

    fs::write(&config, format!("token = 'file:{}'", token.display())).unwrap();
    allow(&token, 0o640);
    let (well, said) = serve.run("serve").await.unwrap();
    assert!(!well && said.contains("other users can read it; run: chmod 600"), "{said}");
    allow(&token, 0o600);
    serve.start().await.unwrap();
}

fn allow(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
