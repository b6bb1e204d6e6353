//! Well-known passwords and tokens, and password guessing.

use serde_json::{Value, json};
use store::{Password, Rights};

use crate::kit::Bench;
use crate::script::OLD;
use crate::v1::client::PASSWORD;

/// X2: XXL-JOB's default credentials are not accepted by either API, and are not in the database in any form.
#[tokio::test]
async fn nothing_that_everybody_knows_opens_a_new_centre() {
    let bench = Bench::start().await;
    let known = ["", "default_token", "xxl-job", "123456", "admin"];
    for password in known {
        // Not more attempts than are free of throttling, so that each is checked.
        let reply = bench.sign_in(OLD, "admin", password).await;
        assert_eq!(reply.json()["code"], 500, "{password}");
        assert!(reply.header("set-cookie").is_empty());
        let attempt = json!({ "user": "admin", "password": password });
        let reply = bench.nobody().send("POST", "/v1/session", &attempt).await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("wrong_password")));
        assert_eq!(bench.bearer(password).send("GET", "/v1/me", &Value::Null).await.status, 401);
        for path in ["/api/registry", "/api/registryRemove", "/api/callback", "/api/addJob"] {
            let answer = bench.post(path, Some(password), r#"{"registryKey":"tickwright-sample"}"#).await;
            assert!(
                answer.contains(r#""msg":"The access token is wrong.""#),
                "{path} {password:?}: {answer}"
            );
        }
    }
    // MD5, SHA-1 and SHA-256 of them, as such programs have stored passwords.
    let digests = [
        "91b4ab2460dfee5bc88e377a735551c5",
        "5becad02496453968fc2c264f2390b3f3494561b",
        "8ea73cd9b25da302dbd5434b20ff7916996470d326dd40e743fd9f7de2a9462b",
        "8af807d32451e0b88d54132e8cd8a193",
        "505d25feef5176e65b5101a7b4891755703fe0e8",
        "31fed86e18bc021e958474b33af093adec8603db074527cb6af7b39fe38fd1cd",
        "e10adc3949ba59abbe56e057f20f883e",
        "7c4a8d09ca3762af61e59520943dc26494f8941b",
        "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92",
        "21232f297a57a5a743894a0e4a801fc3",
        "d033e22ae348aeb5660fc2140aec35850c4da997",
        "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918",
        "default_token",
    ];
    for file in std::fs::read_dir(&bench.folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        for digest in digests {
            assert!(!text.contains(digest), "{digest} is in the database");
        }
    }
    bench.stop().await;
}

/// X19: passwords are stored as argon2id with a salt each; long ones are accepted, short ones are not.
#[tokio::test]
async fn a_password_is_kept_as_a_slow_hash_of_its_own() {
    let bench = Bench::start().await;
    bench.person("anna", Rights::VIEW).await;
    bench.person("berta", Rights::VIEW).await;
    let hash = async |name: &str| match bench.database.user_by_name(name).await.unwrap().unwrap().password {
        Password::Hashed(hash) => hash,
        other => panic!("{other:?}"),
    };
    let (anna, berta) = (hash("anna").await, hash("berta").await);
    assert!(anna.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{anna}");
    assert_ne!(anna, berta, "the same password, and nothing shows it");
    let admin = bench.admin().await;
    for refused in ["seven77", "123456", "default_token", "1234567890", &"x".repeat(129)] {
        let body = json!({ "password": refused });
        assert_eq!(admin.refused("PUT", "/v1/users/clara", &body).await, "invalid_fields", "{refused}");
    }
    let long = "q2".repeat(64);
    admin.done("PUT", "/v1/users/clara", &json!({ "password": long })).await;
    bench.client("clara", &long).await;
    let almost = format!("{}3", &long[..127]);
    assert_eq!(bench.sign_in(OLD, "clara", &almost).await.json()["code"], 500, "its end counts, too");
    bench.stop().await;
}

/// X21: of a thousand guesses only few are checked, from one address or from fifty; the right password still works
/// elsewhere; and whether the user exists is not disclosed. How long the right password must wait is tested in
/// `users/throttle.rs`.
#[tokio::test]
async fn guessing_is_slowed_down_and_tells_nothing() {
    let bench = Bench::start_with(|settings| settings.proxies = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let admin = bench.admin().await;
    for name in ["anna", "berta"] {
        admin.done("PUT", &format!("/v1/users/{name}"), &json!({ "password": PASSWORD })).await;
    }
    let guess = async |name: &str, from: usize| {
        let headers = format!("X-Forwarded-For: 198.51.100.{from}\r\n");
        let form = [("userName", name), ("password", "a wrong guess")];
        let msg = bench.request("POST", OLD, &headers, &form).await.json()["msg"].take();
        msg.as_str().unwrap().to_owned()
    };
    let wrong = "wrong user name or password";
    for (name, addresses) in [("anna", 1), ("berta", 50), ("nobody-of-this-name", 50)] {
        let mut looked_at = 0;
        for number in 0..1_000 {
            let said = guess(name, 1 + number % addresses).await;
            assert!(said == wrong || said.starts_with("too many attempts"), "{said}");
            looked_at += usize::from(said == wrong);
        }
        assert!((1..=20).contains(&looked_at), "{name}: {looked_at}");
    }
    bench.admin().await;
    bench.stop().await;
}

/// A server behind a proxy, so that attempts can come from many addresses.
async fn proxied() -> Bench {
    Bench::start_with(|settings| settings.proxies = vec!["127.0.0.0/8".parse().unwrap()]).await
}

fn from(address: &str) -> String {
    format!("X-Forwarded-For: {address}")
}

/// An attempt to sign in through the web API; returns the code and the message.
async fn attempt(bench: &Bench, name: &str, password: &str, address: &str) -> (i64, String) {
    let form = [("userName", name), ("password", password)];
    let json = bench.request("POST", OLD, &format!("{}\r\n", from(address)), &form).await.json();
    (json["code"].as_i64().unwrap(), json["msg"].as_str().unwrap_or_default().to_owned())
}

/// Guesses from five addresses until a new address is throttled.
async fn flood(bench: &Bench, name: &str) {
    for number in 0..200 {
        let address = format!("203.0.113.{}", number % 5);
        let (_, message) = attempt(bench, name, "a wrong guess", &address).await;
        if message.starts_with("too many attempts") && number >= 20 {
            return;
        }
    }
    panic!("no guess was slowed down");
}

/// X21, the other way round: guesses by others do not lock out the owner of an account, neither at an address from
/// which the account has signed in before, nor in a browser that was used for it before, at any address.
#[tokio::test]
async fn guesses_of_others_do_not_lock_the_owner_out() {
    let bench = proxied().await;
    bench.person("anna", Rights::VIEW).await;
    assert_eq!(attempt(&bench, "anna", PASSWORD, "198.51.100.1").await.0, 200);
    let sign_in = json!({ "user": "anna", "password": PASSWORD });
    let browser = bench.nobody().with("Sec-Fetch-Site: same-origin");
    let reply = browser.with(&from("198.51.100.2")).send("POST", "/v1/session", &sign_in).await;
    let cookies = reply.header("set-cookie");
    let device = cookies.iter().find(|cookie| cookie.starts_with("tickwright_device="));
    let device = device.unwrap_or_else(|| panic!("{reply:?}")).split(';').next().unwrap();
    flood(&bench, "anna").await;
    assert_eq!(attempt(&bench, "anna", PASSWORD, "198.51.100.1").await.0, 200);
    let known = browser.with(&format!("Cookie: {device}"));
    let reply = known.with(&from("192.0.2.77")).send("POST", "/v1/session", &sign_in).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    // The cookie of another account does not help, nor does a forged one.
    for cookie in [device.to_owned(), format!("{device}0"), "tickwright_device=0.9999999999999.00".to_owned()]
    {
        let attempt = json!({ "user": "admin", "password": "a wrong guess" });
        let guess = browser.with(&format!("Cookie: {cookie}")).with(&from("203.0.113.50"));
        let mut looked_at = 0;
        for _ in 0..40 {
            looked_at += u32::from(guess.send("POST", "/v1/session", &attempt).await.status == 401);
        }
        assert!(looked_at <= 20, "{cookie}: {looked_at}");
    }
    // Meanwhile the owner can also change the password in an open session.
    let session = bench.script(OLD, "anna", PASSWORD).await;
    let change = [("oldPassword", PASSWORD), ("password", "plum otter vista")];
    let headers = format!("Cookie: {}\r\n{}\r\n", session.cookie, from("192.0.2.78"));
    let reply = bench.request("POST", "/xxl-job-admin/user/updatePwd", &headers, &change).await;
    assert_eq!(reply.json()["code"], 200, "{reply:?}");
    bench.stop().await;
}

/// Whether a wrong password from here is throttled during a flood. The pause after a wrong attempt may have passed on a
/// busy machine, so it is tried a few times: fewer than are free at known addresses and browsers.
async fn is_throttled(bench: &Bench, address: &str, cookie: &str) -> bool {
    for _ in 0..5 {
        flood(bench, "anna").await;
        match browse(bench, "a wrong guess", address, cookie).await.0 {
            429 => return true,
            401 => {}
            status => panic!("{status}"),
        }
    }
    false
}

/// Signs a user in as a browser does; returns the status and the device cookie.
async fn browse(bench: &Bench, password: &str, address: &str, cookie: &str) -> (u16, String) {
    let client = bench.nobody().with("Sec-Fetch-Site: same-origin").with(&from(address));
    let client = client.with(&format!("Cookie: {cookie}"));
    let body = json!({ "user": "anna", "password": password });
    let reply = client.send("POST", "/v1/session", &body).await;
    let cookies = reply.header("set-cookie");
    let device = cookies.iter().find(|cookie| cookie.starts_with("tickwright_device="));
    let device = device.and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
    (reply.status, device.to_owned())
}

/// Known addresses and browsers are known to the next node, too; a browser stays the same one at each sign-in.
#[tokio::test]
async fn known_addresses_and_browsers_survive_a_restart() {
    let bench = Bench::start_with(|settings| {
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
        settings.database.push_str("?shared=true");
    })
    .await;
    bench.person("anna", Rights::VIEW).await;
    assert_eq!(attempt(&bench, "anna", PASSWORD, "198.51.100.1").await.0, 200);
    let (status, first) = browse(&bench, PASSWORD, "198.51.100.2", "none=1").await;
    assert_eq!(status, 200);
    let (status, device) = browse(&bench, PASSWORD, "198.51.100.3", &first).await;
    let id = |cookie: &str| cookie.split('.').next().unwrap().to_owned();
    assert_eq!((status, id(&device)), (200, id(&first)), "one browser has one lane");
    let bench = bench.replace("another").await;
    assert!(is_throttled(&bench, "192.0.2.77", "none=1").await, "a new address has to wait");
    assert!(!is_throttled(&bench, "198.51.100.1", "none=1").await);
    assert!(!is_throttled(&bench, "192.0.2.77", &device).await);
    assert_eq!(attempt(&bench, "anna", PASSWORD, "198.51.100.1").await.0, 200);
    assert_eq!(browse(&bench, PASSWORD, "192.0.2.77", &device).await.0, 200);
    bench.stop().await;
}

/// A new password makes origins unknown, so that a thief of the old one guesses no faster than others. The browser in
/// which the owner changes the password stays known.
#[tokio::test]
async fn a_new_password_makes_other_addresses_and_browsers_unknown() {
    let bench = proxied().await;
    bench.person("anna", Rights::VIEW).await;
    assert_eq!(attempt(&bench, "anna", PASSWORD, "198.51.100.1").await.0, 200);
    let (_, stolen) = browse(&bench, PASSWORD, "198.51.100.2", "none=1").await;
    let (_, own) = browse(&bench, PASSWORD, "198.51.100.3", "none=1").await;
    let session = bench.client("anna", PASSWORD).await;
    let session = session.with(&format!("Cookie: {own}")).with(&from("192.0.2.78"));
    let change = json!({ "old": PASSWORD, "new": "plum otter vista" });
    session.done("PUT", "/v1/me/password", &change).await;
    assert!(is_throttled(&bench, "192.0.2.79", &stolen).await);
    assert!(is_throttled(&bench, "198.51.100.1", "none=1").await);
    assert!(!is_throttled(&bench, "192.0.2.78", &own).await);
    assert_eq!(browse(&bench, "plum otter vista", "192.0.2.78", &own).await.0, 200);
    let change = json!({ "password": "plum otter vista 2" });
    bench.admin().await.done("PUT", "/v1/users/anna", &change).await;
    assert!(is_throttled(&bench, "192.0.2.80", &own).await);
    bench.stop().await;
}

/// Right passwords are not throttled: scripts that sign in for each call, and many users behind one address.
#[tokio::test]
async fn right_passwords_are_not_throttled() {
    let bench = proxied().await;
    bench.person("anna", Rights::VIEW).await;
    for number in 0..40 {
        let (code, message) = attempt(&bench, "anna", PASSWORD, "198.51.100.1").await;
        assert_eq!(code, 200, "{number}: {message}");
    }
    let at_once = (0..40).map(|_| attempt(&bench, "anna", PASSWORD, "198.51.100.2"));
    for (code, message) in futures_util::future::join_all(at_once).await {
        assert_eq!(code, 200, "{message}");
    }
    bench.stop().await;
}

/// Passwords made of common words and the usual additions are rejected, in every API.
#[tokio::test]
async fn common_passwords_are_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    bench.person("anna", Rights::VIEW).await;
    let script = bench.admin_script(OLD).await;
    for password in
        ["Password123!", "qwertyuiop1", "administrator", "Welcome2026!", "1q2w3e4r5t6y", "tickwright-admin"]
    {
        let body = json!({ "password": password });
        assert_eq!(admin.refused("PUT", "/v1/users/clara", &body).await, "invalid_fields", "{password}");
        assert_eq!(admin.refused("PUT", "/v1/users/anna", &body).await, "invalid_fields", "{password}");
        let change = json!({ "old": bench.admin.password, "new": password });
        assert_eq!(admin.refused("PUT", "/v1/me/password", &change).await, "invalid_fields", "{password}");
        let form = [("username", "clara"), ("password", password), ("role", "0"), ("permission", "")];
        script.refused("/user/add", &form).await;
    }
    let own = json!({ "password": "clarissa-2026" });
    assert_eq!(admin.refused("PUT", "/v1/users/clarissa", &own).await, "invalid_fields");
    bench.stop().await;
}
