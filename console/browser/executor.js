// An executor that does nothing and says whatever the test wants: its log, its results, its refusals.

import { createServer } from 'node:http'

/** Starts one for an app. What it says is `words`: a run's log and result, and why it refuses runs of the handler `refused`. */
export async function startExecutor(centre, app, token, words) {
  const headers = { 'Content-Type': 'application/json', 'XXL-JOB-ACCESS-TOKEN': token }
  const tell = (path, body) => fetch(centre.address + path, { method: 'POST', headers, body: JSON.stringify(body) })

  const answers = {
    '/beat': () => ({ code: 200 }),
    '/idleBeat': () => ({ code: 200 }),
    '/run': ({ logId, logDateTime, executorHandler }) => {
      if (executorHandler === 'refused') return { code: 500, msg: words.refusal }
      void tell('/api/callback', [{ logId, logDateTim: logDateTime, handleCode: 500, handleMsg: words.result }])
      return { code: 200 }
    },
    '/log': ({ fromLineNum }) => ({
      code: 200,
      content: { fromLineNum, toLineNum: fromLineNum, logContent: fromLineNum > 1 ? '' : words.log, isEnd: true },
    }),
    '/kill': () => ({ code: 200 }),
  }

  const server = createServer(async (request, response) => {
    const parts = []
    for await (const part of request) parts.push(part)
    const asked = parts.length === 0 ? {} : JSON.parse(Buffer.concat(parts).toString() || '{}')
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify((answers[request.url] ?? (() => ({ code: 404, msg: 'no such path' })))(asked)))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${server.address().port}/`
  await tell('/api/registry', { registryGroup: 'EXECUTOR', registryKey: app, registryValue: address })
  return { address, tell, end: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) }
}
