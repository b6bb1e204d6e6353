"""Manages jobs through the web API, with the client of xxl-admin-sh. An executor of the app must be there."""

import asyncio
import os
import time

from xxl_admin.client import XxlAdminClient

APP = os.environ["INTEROP_APP"]
RUN_MAX = 30


def client(folder):
    os.makedirs(folder, exist_ok=True)
    url = os.environ["INTEROP_CENTRE"].removesuffix("/xxl-job-admin")
    return XxlAdminClient(url, "admin", os.environ["INTEROP_PASSWORD"], cookie_dir=folder)


async def manage(admin):
    assert await admin.login(), "it signs in"

    groups = await admin.list_group(name=APP)
    assert [group["appname"] for group in groups] == [APP], groups
    group = groups[0]["id"]

    midnight, noon = "0 0 0 * * ?", "0 0 12 * * ?"
    assert await admin.add_job(group, "count stock", "count", midnight, "ann"), "it adds a job"
    job = only(await admin.list_job(executor="count", job_group=group))
    assert (job["jobDesc"], job["author"], job["triggerStatus"]) == ("count stock", "ann", 0), job

    assert await admin.update_job(job["id"], group, "count all stock", "count", noon, "bob"), "it edits the job"
    job = only(await admin.search_job("count"))
    assert (job["jobDesc"], job["scheduleConf"], job["author"]) == ("count all stock", noon, "bob"), job

    assert await admin.start_job(job["id"]), "it starts the job"
    job = only(await admin.list_job(job_group=group, status=1))
    assert job["triggerNextTime"] > time.time() * 1_000, job
    assert await admin.stop_job(job["id"]), "it stops the job"
    assert await admin.list_job(job_group=group, status=1) == [], "nothing is started any more"

    assert await admin.trigger_job(job["id"], param="now"), "it runs the job"
    run = await ended(admin, job["id"], group)
    assert (run["triggerCode"], run["handleCode"], run["executorParam"]) == (200, 200, "now"), run

    assert not await admin.start_job(999_999), "there is no such job"


async def ended(admin, job, group):
    """The run of a job, when its result is there."""
    deadline = time.monotonic() + RUN_MAX
    while time.monotonic() < deadline:
        # A log of the successful ones only, as its users filter it.
        runs = await admin.job_logs(job, job_group=group, log_status=1)
        if runs:
            return only(runs)
        await asyncio.sleep(0.1)
    raise AssertionError(f"no result after {RUN_MAX} s: {await admin.job_logs(job, job_group=group)}")


def only(rows):
    assert len(rows) == 1, rows
    return rows[0]


async def main():
    admin = client("cookies")
    await manage(admin)
    await admin.close()

    again = client("cookies")
    assert await again.list_group(name=APP), "the session in its file still counts"
    await again.close()


asyncio.run(main())
