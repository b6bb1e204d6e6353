// Where people are told of alerts: a web server that keeps what it is sent.

import { createServer } from 'node:http'

/** So long an alert may take to arrive. */
const PATIENCE_MS = 20_000

export async function openRoom() {
  const texts = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    texts.push(text)
    response.end()
    server.emit('told')
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `http://127.0.0.1:${server.address().port}/`,
    /** The first text that was told, or an error if nothing is in time. */
    told() {
      if (texts.length > 0) return texts[0]
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error('nobody was told')), PATIENCE_MS)
        server.once('told', () => {
          clearTimeout(late)
          resolve(texts[0])
        })
      })
    },
    end: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  }
}
