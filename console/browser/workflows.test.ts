// Workflows as people see them: the graph of a run while it goes on, its time line and table, a decision, the grid of the last
// runs, and the list.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { en, type Words } from '../src/text/en'
import { zh } from '../src/text/zh'
import { faults, launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'

const t = en

let browser: Browser
let centre: Awaited<ReturnType<typeof startCentre>>
let call: Awaited<ReturnType<typeof api>>
let page: Page
let troubles: string[]
let job: number
let run: number

/** More steps than are drawn unless they are asked for. */
const MANY = 400

const SALES = {
  inputs: { region: { type: 'text', default: 'all' } },
  steps: [
    { name: 'orders', job: 'quick', with: { table: 'orders', region: '${{ inputs.region }}' } },
    { name: 'users', job: 'quick' },
    { name: 'full', needs: ['users', { step: 'orders', if: "inputs.region == 'none'" }], when: 'all_succeeded', job: 'quick' },
    { name: 'part', needs: ['users', { step: 'orders', else: true }], when: 'all_succeeded', job: 'quick' },
    { name: 'sign', needs: ['full', 'part'], approval: { ask: 'Ship the orders of <b>today</b>?' } },
    { name: 'ship', needs: ['sign'], job: 'quick' },
    { name: 'pause', needs: ['sign'], wait_ms: 100 },
    { name: 'tell', phase: 'on_failure', job: 'quick' },
    { name: 'tidy', phase: 'finally', job: 'quick' },
  ],
}

beforeAll(async () => {
  centre = await startCentre()
  call = await api(centre)
  await call('PUT', '/v1/apps/shop', { title: 'Shop' })
  const { token } = await call('POST', '/v1/apps/shop/tokens')
  await centre.agent('shop', token)
  await put('quick', { script: { language: 'shell', source: 'echo done\n' } })
  await put('bad', { script: { language: 'shell', source: 'exit 1\n' }, retry: { count: 1 } })
  job = (await put('sales', { name: 'Daily sales', workflow: SALES })).id
  const many = Array.from({ length: MANY }, (_, index) => ({
    name: `s${index}`,
    needs: index < 20 ? [] : [`s${index - 20}`, `s${index - 13}`],
    wait_ms: 3_600_000,
  }))
  await put('many', { workflow: { steps: many } })
  await put('broken', {
    workflow: {
      steps: [
        { name: 'only', job: 'bad' },
        { name: 'next', needs: ['only'], job: 'quick' },
      ],
    },
  })
  browser = await launch()
  ;({ page, troubles } = await watchedPage(browser, { locale: 'en-GB' }))
  await signIn(page, centre)
})
afterAll(async () => {
  await browser.close()
  await centre.end()
})

const put = (key: string, more: object) => call('PUT', `/v1/jobs/${key}`, { app: 'shop', name: key, schedule: { kind: 'none' }, ...more })
const trigger = async (key: string) => (await call('POST', `/v1/jobs/${key}/trigger`, {})).run as number
const open = (path: string) => page.goto(centre.address + path)
const step = (name: string, state?: string) =>
  page.getByRole('button', { name: new RegExp(`^${name} ${state === undefined ? '' : `.*, ${state}`}`) })
const panel = (name: string) => page.getByRole('complementary', { name: t.steps.panel(name) })

async function fine() {
  expect(await faults(page)).toEqual([])
  expect(troubles).toEqual([])
}

/** Waits until a run is over. */
async function ended(id: number) {
  for (;;) {
    const { state } = await call('GET', `/v1/runs/${id}`)
    if (['succeeded', 'failed', 'cancelled'].includes(state)) return state as string
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('the graph of a run changes while one looks, and takes the decision', async () => {
  run = await trigger('sales')
  await open(`/runs/${run}`)
  await step('sign', t.values.stepState.waiting).waitFor()
  await step('full', t.values.stepState.skipped).waitFor()
  expect(await page.locator('.edge.untaken').count()).toBe(2)
  await step('ship').click()
  await panel('ship')
    .getByText(t.steps.why.needs(`sign (${t.values.stepState.waiting})`))
    .waitFor()
  await fine()

  // Along the connections, without a mouse.
  await page.keyboard.press('ArrowLeft')
  await panel('sign').getByText('Ship the orders of <b>today</b>?').waitFor()
  await panel('sign').getByText(t.steps.why.anyOperator).waitFor()
  expect(new URL(page.url()).searchParams.get('step')).toBe('sign')
  await panel('sign').getByLabel(t.steps.remark).fill('fine with me')
  await panel('sign').getByRole('button', { name: t.steps.approve }).click()
  await panel('sign').getByText('fine with me').first().waitFor()
  await page.getByText(t.steps.done(9, 9)).waitFor()
  await page.getByRole('button', { name: t.steps.fit }).click()
  await step('tidy', t.values.stepState.succeeded).waitFor()
  await step('tell', t.values.stepState.skipped).waitFor()

  await step('orders').click()
  await panel('orders').getByText('"region": "all"').waitFor()
  await panel('orders').getByRole('heading', { name: t.steps.output }).waitFor()
  await panel('orders').getByRole('link').click()
  await page.getByRole('log').getByText('done').waitFor()
  await fine()
})

test('the graph is zoomed, moved and shown as a whole', async () => {
  await open(`/runs/${run}`)
  const place = async () => (await step('orders').boundingBox())!
  await step('orders').waitFor()
  const before = await place()
  await page.getByRole('button', { name: t.steps.zoomIn }).click()
  expect((await place()).width).toBeGreaterThan(before.width)
  await page.getByRole('button', { name: t.steps.fit }).click()
  const whole = await place()
  const box = (await page.getByRole('group', { name: t.steps.graphOf(9) }).boundingBox())!
  await page.mouse.move(box.x + box.width / 2, box.y + 4)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2 + 40, box.y + 24, { steps: 4 })
  await page.mouse.up()
  expect(Math.round((await place()).x - whole.x)).toBe(40)
  await page.keyboard.down('Control')
  await page.mouse.wheel(0, 300)
  await page.keyboard.up('Control')
  await expect.poll(async () => (await place()).width).toBeLessThan(whole.width)
})

test('the time line marks the critical path, and the table lists every step', async () => {
  await open(`/runs/${run}?view=time`)
  const bars = page.getByRole('button', { name: t.steps.critical })
  await bars.filter({ hasText: 'sign' }).waitFor()
  expect(await page.getByRole('button', { name: /full/ }).count(), 'a step that was skipped has no bar').toBe(0)
  await fine()
  await page.getByText(t.steps.views.table, { exact: true }).click()
  const ship = page.getByRole('button', { name: 'ship', exact: true })
  await page.getByRole('row').filter({ has: ship }).getByText(t.values.stepState.succeeded).waitFor()
  expect(new URL(page.url()).searchParams.get('view')).toBe('table')
  await ship.click()
  await panel('ship').waitFor()
  await fine()
})

test('a failed step shows its attempts, and the others why they did not run', async () => {
  const failed = await trigger('broken')
  expect(await ended(failed)).toBe('failed')
  await open(`/runs/${failed}?step=only`)
  await panel('only').getByText(t.runs.attempt(2)).waitFor()
  expect(await panel('only').getByRole('link').count()).toBe(2)
  await step('next').click()
  await panel('next')
    .getByText(t.steps.why.failedNeeds(`only (${t.values.stepState.failed})`))
    .waitFor()
  await fine()
})

test('of many steps there is a table first, and a graph for those who want it', async () => {
  const many = await trigger('many')
  await open(`/runs/${many}`)
  await page.getByRole('table', { name: t.steps.title }).waitFor()
  await page.getByRole('searchbox', { name: t.steps.search }).fill('s399')
  await page.getByRole('row').filter({ hasText: 's399' }).getByText(t.values.stepState.blocked).waitFor()
  await page.getByText(t.steps.views.graph, { exact: true }).click()
  await step('s0').waitFor()
  expect(await page.locator('[data-step]').count(), 'only steps in sight are drawn').toBeLessThan(MANY)
  await page.getByRole('button', { name: t.steps.pause, exact: true }).click()
  await page.getByText(t.steps.paused).waitFor()
  await fine()
  await call('POST', `/v1/runs/${many}/kill`, { force: true })
})

test('the grid leads to a step of a run', async () => {
  const second = await trigger('sales')
  await open(`/jobs/${job}`)
  const grid = page.getByRole('table', { name: t.steps.grid })
  await grid.getByRole('link', { name: `sign, ${t.values.stepState.waiting}, #${second}` }).waitFor()
  await grid.getByRole('link', { name: `full, ${t.values.stepState.skipped}, #${run}`, exact: true }).waitFor()
  await fine()
  await call('POST', `/v1/runs/${second}/steps/sign/decide`, { approved: false, remark: 'not today' })
  await grid.getByRole('link', { name: `sign, ${t.values.stepState.failed}, #${second}` }).click()
  await panel('sign').getByText('not today').first().waitFor()
  expect(new URL(page.url()).pathname).toBe(`/runs/${second}`)
})

test('the list shows which jobs are workflows, and only these if wanted', async () => {
  await open('/jobs')
  const rows = page.getByRole('row').filter({ has: page.getByRole('link') })
  await rows.filter({ hasText: 'Daily sales' }).getByText(t.jobs.workflow, { exact: true }).waitFor()
  expect(await rows.count()).toBe(5)
  await page.getByText(t.jobs.workflows, { exact: true }).click()
  await expect.poll(() => rows.count()).toBe(3)
  await fine()
})

const MODES: [string, Words, object][] = [
  ['in Chinese, on a phone', zh, { locale: 'zh-CN', viewport: { width: 375, height: 812 } }],
  ['in Chinese, in the dark', zh, { locale: 'zh-CN', colorScheme: 'dark' }],
  ['in English, on a phone in the dark', en, { locale: 'en-GB', colorScheme: 'dark', viewport: { width: 375, height: 812 } }],
]

describe.each(MODES)('%s', (_, words, options) => {
  test('every view holds, and nothing hangs over the edge', async () => {
    const { page, context, troubles } = await watchedPage(browser, options)
    await signIn(page, centre)
    const looks: [string, string][] = [
      [`/runs/${run}?view=graph&step=part`, words.steps.output],
      [`/runs/${run}?view=time`, words.steps.criticalHint(1).slice(0, 4)],
      [`/runs/${run}?view=table&step=full`, words.steps.why.title],
      [`/jobs/${job}`, words.steps.grid],
      [`/jobs/${job}/edit`, words.steps.edit.later],
      ['/jobs?workflow=true', 'Daily sales'],
    ]
    for (const [path, text] of looks) {
      await page.goto(centre.address + path)
      await page.getByText(text).first().waitFor()
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${path} hangs over the edge`).toBe(0)
      expect(await faults(page), path).toEqual([])
    }
    expect(troubles).toEqual([])
    await context.close()
  })
})
