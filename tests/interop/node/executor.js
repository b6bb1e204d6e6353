// An executor on xxl-job for Node.js, with express.

const express = require('express')
const { createXxlJobExecutor } = require('xxl-job')

const handlers = new Map()
const say = (logger, text) => {
  logger.info(text)
  console.log(text)
}
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

handlers.set('ok', async (logger, request, parameter) => {
  for (let line = 1; line <= 3; line++) say(logger, `ok line ${line}`)
  say(logger, `ok with ${parameter}`)
})

handlers.set('fail', async () => {
  throw new Error('deliberate failure')
})

handlers.set('slow', async (logger, request, parameter) => {
  for (let tenth = 1; tenth <= Number(parameter) * 10; tenth++) {
    await pause(100)
    // The client asks its handlers to look for themselves.
    if (request.isKill()) {
      say(logger, 'slow was interrupted')
      return
    }
    if (tenth % 10 === 0) say(logger, `slow second ${tenth / 10}`)
  }
  say(logger, 'slow is done')
})

handlers.set('shard', async (logger, request) => {
  say(logger, `shard ${request.broadcastIndex}/${request.broadcastTotal}`)
})

const port = Number(process.env.INTEROP_PORT)
const app = express()
app.use(express.json())
app.listen(port, '127.0.0.1', () => {
  const executor = createXxlJobExecutor({
    app,
    jobHandlers: handlers,
    appType: 'express',
    accessToken: process.env.INTEROP_TOKEN,
    baseUrl: `http://127.0.0.1:${port}`,
    executorKey: process.env.INTEROP_APP,
    scheduleCenterUrl: process.env.INTEROP_CENTRE,
    logStorage: 'local',
  })
  executor.initialization()
  process.on('SIGTERM', () => executor.cancel().finally(() => process.exit(0)))
})

// A heartbeat that finds no centre would otherwise end the process.
process.on('unhandledRejection', reason => console.error(`${reason}`))
