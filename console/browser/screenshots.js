// Pictures of every page, light, dark and on a phone, of a centre that has been busy for a while.
// Usage: node browser/screenshots.js [folder]

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { browserPath, launch, signIn, watchedPage } from './browser.js'
import { api, program, startCentre } from './centre.js'
import { openRoom } from './room.js'

/** So long the centre works before its picture is taken. */
const BUSY_MS = Number(process.env.BUSY_SECONDS ?? 150) * 1_000

const folder = process.argv[2] ?? 'screenshots'
if (program() === undefined || browserPath() === undefined) {
  console.error('screenshots need the built program (cargo build -p tickwright-cli) and Chromium (apt-get install chromium)')
  process.exit(1)
}

const APPS = { orders: 'Orders', billing: 'Billing', search: 'Search', care: 'Customer care' }

const JOBS = [
  [
    'orders/sync',
    'Sync orders to the warehouse',
    'orders',
    '*/5 * * * * ?',
    'echo "read 240 orders"; sleep $((RANDOM % 3)); echo "posted 120 of 240"; sleep $((RANDOM % 2)); echo "posted 240 of 240"',
    ['orders'],
  ],
  ['orders/clean', 'Clean expired sessions', 'orders', '*/4 * * * * ?', 'echo "removed $((RANDOM % 90)) sessions"', ['housekeeping']],
  ['billing/rates', 'Refresh exchange rates', 'billing', '*/6 * * * * ?', 'sleep $((RANDOM % 3)).4; echo "31 currencies"', ['finance']],
  [
    'billing/export',
    'Nightly invoice export',
    'billing',
    '0 0 2 * * ?',
    'for i in 1 2 3 4 5 6 7 8; do echo "exported $((i * 250)) invoices"; sleep 2.5; done',
    ['finance', 'nightly'],
  ],
  ['billing/close', 'Close the month', 'billing', '0 0 1 L * ?', 'sleep 1', ['finance']],
  [
    'search/partners',
    'Import partner catalogue',
    'search',
    '*/20 * * * * ?',
    'echo "page 1 of 12"; echo "page 7: HTTP 502" >&2; exit 1',
    ['partners'],
  ],
  [
    'search/rebuild',
    'Rebuild search index',
    'search',
    '0 0 4 ? * SUN',
    'for i in $(seq 1 200); do echo "segment $i of 200 merged"; sleep 0.3; done',
    ['heavy', 'weekly'],
  ],
  ['search/archive', 'Archive old listings', 'search', '*/45 * * * * ?', 'echo "scanning 90 000 listings"; sleep 30', ['heavy']],
  ['search/warm', 'Warm caches', 'search', '0 * * * * ?', 'sleep 1.2; echo warm', []],
  ['care/reminders', 'Send reminder mails', 'care', '0 0 9 ? * MON-FRI', 'echo mail', ['mail']],
  [
    'care/recalculate-loyalty-points-of-all-customers-of-the-southern-region',
    'Recalculate the loyalty points of all customers of the southern region, and tell them when they have enough for a present',
    'care',
    '0 15 3 ? * MON,WED,FRI',
    'echo points',
    ['a-rather-long-tag-that-somebody-chose', 'loyalty', 'nightly'],
  ],
  ['care/birthdays', 'Birthday greetings', 'care', '0 30 8 * * ?', 'echo hi', ['mail']],
]

/** A workflow, and the time that its steps take in seconds. */
const STEPS = { extract: 3, load: 5, check: 2, report: 1 }
const WORKFLOW = {
  inputs: { region: { type: 'text', default: 'north' } },
  steps: [
    { name: 'orders', job: 'sales/extract', with: { table: 'orders', region: '${{ inputs.region }}' } },
    { name: 'users', job: 'sales/extract', with: { table: 'users', day: '${{ run.date }}' } },
    { name: 'full', needs: ['users', { step: 'orders', if: "inputs.region == 'all'" }], when: 'all_succeeded', job: 'sales/load' },
    { name: 'part', needs: ['users', { step: 'orders', else: true }], when: 'all_succeeded', job: 'sales/load' },
    { name: 'check', needs: ['full', 'part'], job: 'sales/check' },
    { name: 'stock', needs: ['users'], job: 'sales/check' },
    { name: 'sign', needs: ['check', 'stock'], approval: { ask: 'Send the report of ${{ run.date }}?' } },
    { name: 'report', needs: ['sign'], job: 'sales/report' },
    { name: 'tidy', phase: 'finally', job: 'sales/report' },
  ],
}

const MODES = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
  zh: { colorScheme: 'light', locale: 'zh-CN' },
}

const room = await openRoom()
const centre = await startCentre(['--alert-webhook', `json=${room.address}`])
const browser = await launch()
try {
  mkdirSync(folder, { recursive: true })
  await picture({ welcome: '/' })
  const call = await api(centre)
  for (const [app, title] of Object.entries(APPS)) {
    // One that nobody answers for.
    const addressing = app === 'care' ? { kind: 'manual', addresses: ['http://127.0.0.1:9/'] } : undefined
    await call('PUT', `/v1/apps/${app}`, { title, addressing })
    const { token } = await call('POST', `/v1/apps/${app}/tokens`)
    if (app === 'care') {
      await call('POST', `/v1/apps/${app}/executors/check`, { address: 'http://127.0.0.1:9/' })
      continue
    }
    await centre.agent(app, token)
    if (app === 'orders') await centre.agent(app, token)
  }
  const ids = {}
  for (const [key, name, app, expression, source, tags] of JOBS) {
    const script = {
      language: 'shell',
      source: `#!/bin/bash\nset -euo pipefail\n\n${source.replaceAll('; ', '\n')}\n`,
      remark: 'first version',
    }
    const job = await call('PUT', `/v1/jobs/${encodeURIComponent(key)}`, {
      app,
      name,
      schedule: { kind: 'cron', expression, zone: app === 'billing' ? 'America/New_York' : undefined },
      script,
      tags,
      author: 'Mei',
      enabled: key !== 'care/birthdays',
      route: 'round_robin',
      alert: true,
      timeout_ms: key === 'search/archive' ? 2_000 : 600_000,
      retry: { count: key === 'search/partners' ? 1 : 0 },
    })
    ids[key] = job.id
  }
  await call('PUT', `/v1/jobs/id:${ids['orders/sync']}/script`, {
    language: 'shell',
    source:
      '#!/bin/bash\nset -euo pipefail\n\n# Posts what is new, half by half.\nbatch=${1:-240}\necho "read $batch orders"\nsleep $((RANDOM % 4))\necho "posted $((batch / 2)) of $batch"\nsleep $((RANDOM % 2))\necho "posted $batch of $batch"\n',
    remark: 'the batch is a parameter',
  })
  for (const [name, seconds] of Object.entries(STEPS)) {
    const script = { language: 'shell', source: `sleep ${seconds}\necho "${name} is done"\n` }
    await call('PUT', `/v1/jobs/sales%2F${name}`, { app: 'orders', name: `Sales: ${name}`, schedule: { kind: 'none' }, script })
  }
  const daily = { app: 'orders', name: 'Daily sales', schedule: { kind: 'cron', expression: '0 30 2 * * ?' }, workflow: WORKFLOW }
  const sales = await call('PUT', '/v1/jobs/sales%2Fdaily', { ...daily, author: 'Mei', tags: ['sales'], enabled: true })
  for (const approved of [true, false, true]) {
    const { run } = await call('POST', `/v1/jobs/id:${sales.id}/trigger`, {})
    await waiting(call, run)
    await call('POST', `/v1/runs/${run}/steps/sign/decide`, { approved })
  }
  await call('PUT', '/v1/users/meilin', {
    password: 'brass lantern seventeen',
    grants: [
      { app: 'orders', rights: ['view', 'operate', 'edit', 'script'] },
      { app: 'billing', rights: ['view', 'operate'] },
    ],
  })
  await call('PUT', '/v1/users/jonas', { password: 'brass lantern seventeen', disabled: true })
  await call('POST', '/v1/keys', { name: 'deploy pipeline', apps: ['orders'], rights: ['view', 'edit'] })
  // Nobody is there to take it.
  await call('POST', `/v1/jobs/id:${ids['care/reminders']}/trigger`, {})
  await sleep(BUSY_MS)
  const { run: flow } = await call('POST', `/v1/jobs/id:${sales.id}/trigger`, {})
  await waiting(call, flow)
  const { run: live } = await call('POST', `/v1/jobs/id:${ids['search/rebuild']}/trigger`, {})
  await call('POST', `/v1/jobs/id:${ids['billing/export']}/trigger`, {})
  await sleep(4_000)
  const failed = (await call('GET', '/v1/runs?state=failed&limit=1')).items[0]

  const pages = {
    overview: '/',
    jobs: '/jobs',
    'job-new': '/jobs/new',
    job: `/jobs/${ids['orders/sync']}`,
    script: `/jobs/${ids['orders/sync']}/script`,
    history: `/jobs/${ids['orders/sync']}/history`,
    runs: '/runs',
    'run-live': `/runs/${live}`,
    'run-failed': `/runs/${failed?.id}`,
    workflow: `/runs/${flow}?step=sign`,
    'workflow-time': `/runs/${flow}?view=time`,
    'workflow-table': `/runs/${flow}?view=table&step=report`,
    'workflow-job': `/jobs/${sales.id}`,
    'workflow-edit': `/jobs/${sales.id}/workflow`,
    alerts: '/alerts',
    executors: '/executors',
    calendars: '/calendars',
    users: '/users',
    keys: '/keys',
    audit: '/audit',
    settings: '/settings',
    about: '/about',
  }
  await picture(pages)
} finally {
  await browser.close()
  await centre.end()
  await room.end()
}

/** Waits until a workflow run asks people. */
async function waiting(call, run) {
  for (;;) {
    await sleep(500)
    const step = await call('GET', `/v1/runs/${run}/steps/sign`).catch(() => undefined)
    if (step?.state === 'waiting') return
  }
}

/** Signs in and takes each of these pages, in every mode. */
async function picture(pages) {
  for (const [mode, options] of Object.entries(MODES)) {
    const { page, context, troubles } = await watchedPage(browser, { locale: 'en-GB', ...options })
    await page.goto(`${centre.address}/sign-in`)
    await page.locator('#password').waitFor()
    await page.screenshot({ path: join(folder, `sign-in-${mode}.png`) })
    await signIn(page, centre)
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(centre.address + path)
      if (name === 'overview') await zoomIn(page)
      // Charts and logs draw a little after their page; nothing tells when the last of them has.
      await sleep(1_200)
      await page.screenshot({ path: join(folder, `${name}-${mode}.png`) })
    }
    if (troubles.length > 0) console.error(`${mode}:`, troubles)
    await context.close()
  }
}

/** Drags across the end of the chart, where something has happened. */
async function zoomIn(page) {
  await page.locator('.range label').first().click()
  await sleep(800)
  const box = await page.locator('.charts .u-over').first().boundingBox()
  if (box === null) return
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width * (1 - (BUSY_MS + 30_000) / 3_600_000), y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width - 1, y, { steps: 5 })
  await page.mouse.up()
  await page.mouse.move(box.x, box.y - 60)
}
