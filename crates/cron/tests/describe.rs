//! Descriptions of expressions, one of each kind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use std::time::Duration;

use tickwright_cron::{Cron, Dialect, DstRule, Language, Schedule, Timestamp, Zone};

#[test]
fn times_of_day() {
    check("0 0 0 * * ?", "At 00:00, every day", "每天 00:00");
    check("30 15 10 * * ?", "At 10:15:30, every day", "每天 10:15:30");
    check("0 0 9,12,18 * * ?", "At 09:00, 12:00 and 18:00, every day", "每天 09:00、12:00、18:00");
    check("0 0 0/8 * * ?", "At 00:00, 08:00 and 16:00, every day", "每天 00:00、08:00、16:00");
    check("* * * * * ?", "Every second", "每秒");
    check("0/5 * * * * ?", "Every 5 seconds", "每 5 秒");
    check("3/5 * * * * ?", "Every 5 seconds from second 3", "从第 3 秒起每 5 秒");
    check("10,20 * * * * ?", "At seconds 10 and 20, every minute", "每分钟，第 10、20 秒");
    check("30 * * * * ?", "At second 30, every minute", "每分钟，第 30 秒");
    check("0 * * * * ?", "Every minute", "每分钟");
    check("0 0,30 * * * ?", "At minutes 0 and 30, every hour", "每小时，第 0、30 分");
    check("0 */5 * * * ?", "Every 5 minutes", "每 5 分钟");
    check("0 10-20 * * * ?", "Every minute from minute 10 to 20", "第 10 至 20 分每分钟");
    check("0 10-20/2 * * * ?", "Every 2 minutes from minute 10 to 20", "第 10 至 20 分每 2 分钟");
    check("0 0 * * * ?", "At minute 0, every hour", "每小时，第 0 分");
    check("0 0 */2 * * ?", "At minute 0, every 2 hours", "每 2 小时，第 0 分");
    check("0 0 1/2 * * ?", "At minute 0, every 2 hours from 01:00", "从 01:00 起每 2 小时，第 0 分");
    check(
        "0 0/10 9 * * ?",
        "At 09:00, 09:10, 09:20, 09:30, 09:40 and 09:50, every day",
        "每天 09:00、09:10、09:20、09:30、09:40、09:50",
    );
    check("0 * 9 * * ?", "Every minute, from 09:00 to 09:59", "09:00 至 09:59，每分钟");
    check("0 0/5 9,12 * * ?", "Every 5 minutes, during the hours 9 and 12", "9、12 点，每 5 分钟");
    check(
        "0 0/5 8-18/2 * * ?",
        "Every 5 minutes, every 2 hours from 08:00 to 18:59",
        "08:00 至 18:59 每 2 小时，每 5 分钟",
    );
    check(
        "0 0/5 22-2,12 * * ?",
        "Every 5 minutes, from 22:00 to 02:59 and from 12:00 to 12:59",
        "22:00 至 02:59、12:00 至 12:59，每 5 分钟",
    );
}

#[test]
fn days_of_the_month() {
    check("0 15 10 15 * ?", "At 10:15, on the 15th of the month", "每月 15 日 10:15");
    check(
        "0 15 10 1,2,3,22 * ?",
        "At 10:15, on the 1st, the 2nd, the 3rd and the 22nd of the month",
        "每月 1 日、2 日、3 日、22 日 10:15",
    );
    check(
        "0 15 10 11-13 * ?",
        "At 10:15, on the 11th through the 13th of the month",
        "每月 11 日至 13 日 10:15",
    );
    check(
        "0 15 10 1/5 * ?",
        "At 10:15, on every 5th day from the 1st of the month",
        "每月从 1 日起每 5 天 10:15",
    );
    check(
        "0 15 10 */2 * ?",
        "At 10:15, on every 2nd day from the 1st of the month",
        "每月从 1 日起每 2 天 10:15",
    );
    check(
        "0 15 10 10-20/3 * ?",
        "At 10:15, on every 3rd day from the 10th to the 20th of the month",
        "每月 10 日至 20 日每 3 天 10:15",
    );
    check("0 15 10 L * ?", "At 10:15, on the last day of the month", "每月最后一天 10:15");
    check(
        "0 15 10 L-1 * ?",
        "At 10:15, on the day 1 day before the last of the month",
        "每月倒数第 2 天 10:15",
    );
    check("0 15 10 LW * ?", "At 10:15, on the last workday of the month", "每月最后一个工作日 10:15");
    check(
        "0 15 10 L-3W * ?",
        "At 10:15, on the workday nearest to the day 3 days before the last of the month",
        "每月最接近倒数第 4 天的工作日 10:15",
    );
    check(
        "0 15 10 15W * ?",
        "At 10:15, on the workday nearest to the 15th of the month",
        "每月最接近 15 日的工作日 10:15",
    );
    check(
        "0 15 10 1,L * ?",
        "At 10:15, on the 1st and the last day of the month",
        "每月 1 日、最后一天 10:15",
    );
}

#[test]
fn days_of_the_week() {
    check("0 0 9 ? * MON-FRI", "At 09:00, on Monday through Friday", "每周一至周五 09:00");
    check("0 0 9 ? * SUN,3", "At 09:00, on Sunday and Tuesday", "每周日、周二 09:00");
    check("0 0 9 ? * 2/2", "At 09:00, on Monday, Wednesday and Friday", "每周一、周三、周五 09:00");
    check("0 0 9 ? * L", "At 09:00, on Saturday", "每周六 09:00");
    check("0 0 9 ? * 6L", "At 09:00, on the last Friday of the month", "每月最后一个周五 09:00");
    check("0 0 9 ? * FRI#3", "At 09:00, on the 3rd Friday of the month", "每月第 3 个周五 09:00");
}

#[test]
fn months_and_years() {
    check("0 0 0 * 7 ?", "At 00:00, in July", "每年 7 月，每天 00:00");
    check("0 0 0 29 2 ?", "At 00:00, on the 29th of the month, in February", "每年 2 月，当月 29 日 00:00");
    check(
        "0 0 0 1 JAN-MAR,12 ?",
        "At 00:00, on the 1st of the month, in January through March and December",
        "每年 1 月至 3 月、12 月，当月 1 日 00:00",
    );
    check(
        "0 0 0 1 */4 ?",
        "At 00:00, on the 1st of the month, in January, May and September",
        "每年 1 月、5 月、9 月，当月 1 日 00:00",
    );
    check(
        "0 0 0 ? 5 1#2",
        "At 00:00, on the 2nd Sunday of the month, in May",
        "每年 5 月，当月第 2 个周日 00:00",
    );
    check(
        "0 0 0 1 1 ? 2030",
        "At 00:00, on the 1st of the month, in January, in 2030",
        "2030 年，1 月，当月 1 日 00:00",
    );
    check(
        "0 0 0 1 * ? 2026-2030",
        "At 00:00, on the 1st of the month, from 2026 to 2030",
        "2026 年至 2030 年，每月 1 日 00:00",
    );
    check(
        "0 0 0 1 * ? 2025-2035/2",
        "At 00:00, on the 1st of the month, every 2 years from 2025 to 2035",
        "2025 年至 2035 年每 2 年，每月 1 日 00:00",
    );
    check(
        "0 0 0 1 * ? */2",
        "At 00:00, on the 1st of the month, every 2 years from 1970",
        "从 1970 年起每 2 年，每月 1 日 00:00",
    );
    check(
        "0 0 0 * * ? 2030/3",
        "At 00:00, every day, every 3 years from 2030",
        "从 2030 年起每 3 年，每天 00:00",
    );
}

#[test]
fn unix() {
    let check = |expr: &str, english: &str, chinese: &str| {
        let cron = Cron::parse_in(Dialect::Unix, expr).unwrap();
        assert_eq!(cron.describe(Language::English), english);
        assert_eq!(cron.describe(Language::Chinese), chinese);
    };
    check("*/10 * * * *", "Every 10 minutes", "每 10 分钟");
    check("0 0 13 * 5", "At 00:00, on the 13th of the month or on Friday", "每月 13 日或每周五 00:00");
    check(
        "0 0 */2 * 1",
        "At 00:00, on every 2nd day from the 1st of the month, only if it is Monday",
        "每月从 1 日起每 2 天且为周一 00:00",
    );
    check("0 0 1-31 * 1", "At 00:00, every day", "每天 00:00");
    check("@weekly", "At 00:00, on Sunday", "每周日 00:00");
}

#[test]
fn schedules() {
    let check = |schedule: Schedule, english: &str, chinese: &str| {
        assert_eq!(schedule.describe(Language::English), english);
        assert_eq!(schedule.describe(Language::Chinese), chinese);
    };
    let at = Timestamp::from_millis(1_782_000_000_000);
    let rate = |millis| Schedule::fixed_rate(at, Duration::from_millis(millis)).unwrap();
    check(rate(30_000), "Every 30 seconds", "每隔 30 秒");
    check(rate(500), "Every 500 milliseconds", "每隔 500 毫秒");
    check(
        rate(90_061_001),
        "Every 1 day 1 hour 1 minute 1 second 1 millisecond",
        "每隔 1 天 1 小时 1 分钟 1 秒 1 毫秒",
    );
    let delay = Schedule::fixed_delay(Duration::from_secs(5)).unwrap();
    check(delay, "5 seconds after each run ends", "每次执行结束后 5 秒");
    check(Schedule::once(at), "Once, at 2026-06-21T00:00:00Z", "仅一次，2026-06-21T00:00:00Z");
    check(Schedule::Never, "Manual only", "仅手动");
    let cron = Cron::parse("0 0 2 * * ?").unwrap();
    let cron = Schedule::cron(cron, Zone::parse("Asia/Shanghai").unwrap(), DstRule::NATURAL);
    check(cron, "At 02:00, every day (Asia/Shanghai)", "每天 02:00（Asia/Shanghai）");
}

fn check(expr: &str, english: &str, chinese: &str) {
    let cron = Cron::parse(expr).unwrap();
    assert_eq!(cron.describe(Language::English), english, "{expr}");
    assert_eq!(cron.describe(Language::Chinese), chinese, "{expr}");
}
