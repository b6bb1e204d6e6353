"""An executor on pyxxl."""

import asyncio
import os

from pyxxl import ExecutorConfig, JobHandler, PyxxlRunner
from pyxxl.ctx import g

handler = JobHandler()


def say(text):
    g.logger.info(text)
    print(text, flush=True)


@handler.register(name="ok")
async def ok():
    for line in range(1, 4):
        say(f"ok line {line}")
    say(f"ok with {g.xxl_run_data.executorParams}")


@handler.register(name="fail")
async def fail():
    raise RuntimeError("deliberate failure")


@handler.register(name="slow")
async def slow():
    try:
        for second in range(1, int(g.xxl_run_data.executorParams) + 1):
            await asyncio.sleep(1)
            say(f"slow second {second}")
    except asyncio.CancelledError:
        say("slow was interrupted")
        raise
    say("slow is done")


@handler.register(name="shard")
async def shard():
    say(f"shard {g.xxl_run_data.broadcastIndex}/{g.xxl_run_data.broadcastTotal}")


config = ExecutorConfig(
    xxl_admin_baseurl=os.environ["INTEROP_CENTRE"] + "/api/",
    executor_app_name=os.environ["INTEROP_APP"],
    access_token=os.environ["INTEROP_TOKEN"],
    executor_listen_host="127.0.0.1",
    executor_listen_port=int(os.environ["INTEROP_PORT"]),
    # Other settings of the same names may stand in the environment.
    dotenv_try=False,
)
PyxxlRunner(config, handler=handler).run_executor()
