// A real scheduling centre and real agents for browser tests and pictures: processes of the built program, each in a
// folder of its own that is removed afterwards.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** So long a process may take until it says that it is ready. */
const READY_MS = 30_000

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** The program to test, or undefined if none was built. */
export function program() {
  const places = [process.env.TICKWRIGHT_PROGRAM, join(root, 'target/release/tickwright'), join(root, 'target/debug/tickwright')]
  return places.find((place) => place && existsSync(place))
}

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Starts a process and waits until its output matches. */
function start(arguments_, folder, ready) {
  const child = spawn(program(), arguments_, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  // Also when a test gives up on its way.
  process.once('exit', () => child.kill())
  return new Promise((resolve, reject) => {
    let said = ''
    const late = setTimeout(() => reject(new Error(`not ready in ${READY_MS} ms: ${said}`)), READY_MS)
    const hear = (data) => {
      said += data
      const found = said.match(ready)
      if (found === null) return
      clearTimeout(late)
      resolve({ child, found })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${said}`)))
  })
}

function stop(child) {
  if (child.exitCode !== null) return undefined
  return new Promise((resolve) => {
    child.once('exit', resolve)
    child.kill('SIGTERM')
  })
}

/** Starts a centre without jobs, with further options if wanted. Gives its address, the administrator's password, its database,
 * agents for the asking, and an end. */
export async function startCentre(options = []) {
  const folder = mkdtempSync(join(tmpdir(), 'tickwright-browser-'))
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const centre = await start(
    [
      'serve',
      '--listen',
      `127.0.0.1:${port}`,
      '--data-dir',
      join(folder, 'centre'),
      '--sample=false',
      '--allow-scripts=true',
      '--zone',
      'Asia/Shanghai',
      ...options,
    ],
    folder,
    /sign in\s+with the credentials in (.+)/,
  )
  const [, file] = centre.found
  const credentials = readFileSync(resolve(folder, file), 'utf8')
  const [, user] = credentials.match(/^user=(.*)$/m)
  const [, password] = credentials.match(/^password=(.*)$/m)
  const children = [centre.child]
  return {
    address,
    user,
    password,
    database: join(folder, 'centre/tickwright.db'),
    /** Starts an executor that runs shell scripts for an app. */
    async agent(app, token) {
      const listen = `127.0.0.1:${await freePort()}`
      const folderOf = join(folder, `agent-${app}-${children.length}`)
      const agent = await start(
        ['agent', '--admin', address, '--app', app, '--token', token, '--listen', listen, '--data-dir', folderOf, '--allow-scripts=shell'],
        folder,
        /listen|ready|regist/i,
      )
      children.push(agent.child)
      return `http://${listen}`
    },
    async end() {
      for (const child of children.reverse()) await stop(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The API as a program uses it, signed in. */
export async function api(centre) {
  const opened = await fetch(`${centre.address}/v1/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Tickwright-Client': 'cli' },
    body: JSON.stringify({ user: centre.user, password: centre.password }),
  })
  if (!opened.ok) throw new Error(`sign in: ${opened.status} ${await opened.text()}`)
  const session = opened.headers.get('tickwright-session')
  return async (method, path, body) => {
    const answer = await fetch(centre.address + path, {
      method,
      headers: { Authorization: `Bearer ${session}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}
