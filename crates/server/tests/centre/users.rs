//! Sign-in and access rights of users.

use engine::AppId;
use store::{Access, Rights};

use crate::kit::Bench;
use crate::script::{NEW, OLD, job_form};

const PASSWORD: &str = "correct horse battery";

/// Adds a user of some apps through the web API.
async fn user(bench: &Bench, name: &str, permission: &str) {
    let admin = bench.admin_script(OLD).await;
    let form = [("username", name), ("password", PASSWORD), ("role", "0"), ("permission", permission)];
    admin.done("/user/add", &form).await;
}

#[tokio::test]
async fn who_has_not_signed_in_is_told_so_in_each_dialect() {
    let bench = Bench::start().await;
    let reply = bench.request("POST", "/xxl-job-admin/jobinfo/pageList", "", &[]).await;
    assert_eq!(reply.status, 302);
    assert!(reply.header("location")[0].ends_with("/toLogin"), "{reply:?}");
    assert_eq!(bench.request("GET", "/xxl-job-admin/toLogin", "", &[]).await.status, 200);
    let reply = bench.request("POST", "/jobinfo/insert", "", &[]).await;
    assert_eq!((reply.status, reply.json()["code"].as_i64()), (200, Some(500)));
    assert!(reply.body.contains("not login for path:/jobinfo/insert"), "{reply:?}");
    let stale = "Cookie: xxl_job_login_token=gone\r\n";
    assert_eq!(bench.request("POST", "/jobinfo/start", stale, &[]).await.json()["success"], false);
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        script.page("/jobinfo/pageList", &[]).await;
        script.done(&script.path("/logout", "/auth/logout"), &[]).await;
        let reply = script.send("GET", "/jobinfo/nextTriggerTime", &[]).await;
        assert!(reply.status == 302 || reply.json()["code"] == 500, "the session is over: {reply:?}");
    }
    bench.stop().await;
}

// With a second thread, because a write by the test waits for the server's current write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_of_xxl_job_go_on_working_and_stay_where_they_are() {
    let bench = Bench::start().await;
    let path = bench.folder.join("centre.db");
    // The hashes that a Java admin would have stored for "123456", before and since 3.2.
    let hashes = [
        ("old1", "e10adc3949ba59abbe56e057f20f883e"),
        ("new1", "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92"),
    ];
    let database = rusqlite::Connection::open(&path).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    for (name, hash) in hashes {
        let sql = "INSERT INTO xxl_job_user (username, password, role, permission) VALUES (?1, ?2, 0, '1')";
        database.execute(sql, [name, hash]).unwrap();
        assert_eq!(bench.sign_in(OLD, name, "123457").await.json()["code"], 500);
        let script = bench.script(OLD, name, "123456").await;
        script.page("/jobinfo/pageList", &[]).await;
        let user = bench.database.user_by_name(name).await.unwrap().unwrap();
        assert!(matches!(user.password, store::Password::Hashed(hash) if hash.starts_with("$argon2id$")));
        let sql = "SELECT password FROM xxl_job_user WHERE username = ?1";
        let kept: String = database.query_row(sql, [name], |row| row.get(0)).unwrap();
        assert_eq!(kept, hash, "a Java admin still knows it");
        bench.script(NEW, name, "123456").await;
    }
    bench.stop().await;
}

#[tokio::test]
async fn users_are_managed_in_both_dialects() {
    let bench = Bench::start().await;
    for login in [OLD, NEW] {
        let admin = bench.admin_script(login).await;
        let name = if login == OLD { "anna" } else { "berta" };
        let form = [("username", name), ("password", PASSWORD), ("role", "0"), ("permission", "1")];
        admin.done(&admin.path("/user/add", "/user/insert"), &form).await;
        assert!(admin.refused(&admin.path("/user/add", "/user/insert"), &form).await.contains("already"));
        let (rows, total) = admin.page("/user/pageList", &[("username", name), ("role", "-1")]).await;
        assert_eq!(
            (total, rows[0]["permission"].as_str(), rows[0]["role"].as_i64()),
            (1, Some("1"), Some(0))
        );
        assert!(rows[0]["password"].is_null() && rows[0]["token"].is_null());
        let id = rows[0]["id"].to_string();
        let theirs = bench.script(login, name, PASSWORD).await;
        assert_eq!(
            theirs.send("GET", "/jobinfo/nextTriggerTime", &[("cron", "0 0 0 * * ?")]).await.json()["code"],
            200
        );
        // Fewer rights: the user's sessions end at once.
        admin.done("/user/update", &[("id", &id), ("role", "0"), ("permission", ""), ("password", "")]).await;
        let reply = theirs.send("GET", "/jobinfo/nextTriggerTime", &[("cron", "0 0 0 * * ?")]).await;
        assert!(reply.status == 302 || reply.json()["code"] == 500, "{reply:?}");
        let theirs = bench.script(login, name, PASSWORD).await;
        let change = theirs.path("/user/updatePwd", "/auth/updatePwd");
        let other = bench.script(login, name, PASSWORD).await;
        theirs.refused(&change, &[("oldPassword", "wrong"), ("password", "another password")]).await;
        theirs.refused(&change, &[("oldPassword", PASSWORD), ("password", "seven77")]).await;
        theirs.done(&change, &[("oldPassword", PASSWORD), ("password", "another password")]).await;
        theirs.page("/jobinfo/pageList", &[]).await;
        let reply = other.send("POST", "/jobinfo/nextTriggerTime", &[]).await;
        assert!(
            reply.status == 302 || reply.body.contains("not login"),
            "their other sessions are over: {reply:?}"
        );
        assert_eq!(bench.sign_in(login, name, PASSWORD).await.json()["code"], 500);
        let own = bench.database.user_by_name("admin").await.unwrap().unwrap().id.0.to_string();
        let delete = admin.path("/user/remove", "/user/delete");
        admin.refused(&delete, &[(admin.id_field(), &own)]).await;
        admin.done(&delete, &[(admin.id_field(), &id)]).await;
        assert_eq!(bench.sign_in(login, name, "another password").await.json()["code"], 500);
    }
    bench.stop().await;
}

#[tokio::test]
async fn who_may_write_scripts_is_said_for_each_app() {
    let bench = Bench::start().await;
    user(&bench, "writer", "1").await;
    let writer = bench.database.user_by_name("writer").await.unwrap().unwrap();
    let access = Access { grants: [(AppId(1), Rights::ALL)].into(), ..Access::default() };
    bench.database.update_user(writer.id, &access).await.unwrap();
    let script = bench.script(NEW, "writer", PASSWORD).await;
    let shell = job_form(&[("glueType", "GLUE_SHELL"), ("glueSource", "id")]);
    let id = script.done("/jobinfo/insert", &shell).await;
    let save = [("id", id.as_str().unwrap()), ("glueSource", "date"), ("glueRemark", "a date")];
    script.done("/jobcode/save", &save).await;
    bench
        .database
        .update_user(writer.id, &Access { grants: [(AppId(1), Rights::MEMBER)].into(), ..Access::default() })
        .await
        .unwrap();
    let script = bench.script(NEW, "writer", PASSWORD).await;
    assert!(script.refused("/jobcode/save", &save).await.starts_with("glueType: "));
    bench.stop().await;
}

#[tokio::test]
async fn what_was_done_and_what_was_refused_is_on_record() {
    let bench = Bench::start().await;
    user(&bench, "member", "1").await;
    let script = bench.script(OLD, "member", PASSWORD).await;
    script.refused("/user/add", &[("username", "another")]).await;
    script.refused("/user/pageList", &[]).await;
    bench.sign_in(NEW, "member", "wrong password").await;
    bench.request("POST", "/jobinfo/remove", "", &[("id", "1")]).await;
    bench.request("POST", "/jobinfo/stop", "Origin: http://evil.example\r\n", &[("id", "1")]).await;
    bench.post("/api/stopJob", Some("not the token"), r#"{"id":1}"#).await;
    bench.post("/api/stopJob", Some(&bench.token), r#"{"id":4711}"#).await;
    let records = bench.database.audit_page(&Default::default(), store::Page::first(20)).await.unwrap().rows;
    let told: Vec<_> = records
        .iter()
        .rev()
        .map(|record| {
            let entry = &record.entry;
            [entry.plane.as_str(), &entry.principal, &entry.action, &entry.object, &entry.result].join("|")
        })
        .collect();
    assert_eq!(
        told,
        [
            "web|admin|/login||done",
            "web|admin|/user/add|user:member|done",
            "web|member|/login||done",
            "web|member|/user/add|user:another|only administrators may do this",
            "web|member|/user/pageList||only administrators may do this",
            "web|member|/auth/doLogin||wrong user name or password",
            "web||/jobinfo/remove||not signed in",
            "web||/jobinfo/stop||requests from other sites are not allowed",
            "executor||/api/stopJob||The access token is wrong.",
            "api|token of app 1|/api/stopJob|job:4711|job 4711 does not exist",
        ]
    );
    assert!(records.iter().all(|record| record.entry.ip == "127.0.0.1"));
    let written = format!("{records:?}");
    assert!(
        !written.contains(PASSWORD) && !written.contains("wrong password") && !written.contains(&bench.token)
    );
    bench.stop().await;
}
