// A job is run for past dates: planned, started, watched; what failed is shown and retried; and a long one is paused and
// cancelled. In both languages without a fault that a checker of accessibility finds.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { en as t } from '../src/text/en'
import { zh } from '../src/text/zh'
import { faults, launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'

let browser: Browser
let centre: Awaited<ReturnType<typeof startCentre>>
let call: Awaited<ReturnType<typeof api>>
let page: Page
let troubles: string[]

beforeAll(async () => {
  centre = await startCentre()
  call = await api(centre)
  await call('PUT', '/v1/apps/first', { title: 'First' })
  const { token } = await call('POST', '/v1/apps/first/tokens')
  await centre.agent('first', token)
  await put('daily', 'exit 3')
  await put('endless', 'sleep 600')
  browser = await launch()
  ;({ page, troubles } = await watchedPage(browser, { locale: 'en-GB' }))
  await signIn(page, centre)
})
afterAll(async () => {
  await browser.close()
  await centre.end()
})

const put = (key: string, source: string) =>
  call('PUT', `/v1/jobs/${key}`, {
    app: 'first',
    name: key[0]!.toUpperCase() + key.slice(1),
    schedule: { kind: 'none' },
    script: { language: 'shell', source },
  })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const open = async (key: string) => page.goto(`${centre.address}/jobs/${(await call('GET', `/v1/jobs/${key}`)).id}/backfills`)

async function fine() {
  expect(await faults(page)).toEqual([])
  expect(troubles).toEqual([])
}

async function fill(from: string, to: string) {
  await button(t.backfills.start).click()
  await page.getByLabel(t.backfills.from, { exact: true }).fill(from)
  await page.getByLabel(t.backfills.to, { exact: true }).fill(to)
}

test('past dates are planned, run, and retried where they failed', async () => {
  await open('daily')
  await page.getByText(t.backfills.none).waitFor()
  await fill('2026-01-01', '2026-01-03')
  await button(t.backfills.preview).click()
  await page.getByText(t.backfills.planned(3, 3, 0, 0)).waitFor()
  await fine()
  await page.getByRole('dialog').getByRole('button', { name: t.backfills.go, exact: true }).click()
  await page.getByText(t.values.backfillState.finished, { exact: true }).waitFor({ timeout: 30_000 })
  await button(t.backfills.failures).click()
  await page
    .getByRole('link', { name: /Run \d+/ })
    .first()
    .waitFor()
  await fine()
  await put('daily', 'echo done')
  await button(t.backfills.retry).click()
  await page.getByText(`3 ${t.values.instantState.succeeded}`).waitFor({ timeout: 30_000 })
  await fine()
})

test('a backfill is paused, continued and cancelled', async () => {
  await open('endless')
  await fill('2026-01-01', '2026-01-05')
  await page.getByRole('dialog').getByRole('button', { name: t.backfills.go, exact: true }).click()
  await button(t.backfills.pause).click()
  await button(t.backfills.goOn).click()
  await button(t.backfills.pause).waitFor()
  await button(t.backfills.cancel).click()
  await page.getByText(t.values.backfillState.cancelled, { exact: true }).waitFor()
  await fine()
})

test('the same in Chinese', async () => {
  const { page: other, troubles } = await watchedPage(browser, { locale: 'zh-CN' })
  await signIn(other, centre)
  await other.goto(page.url())
  await other.getByRole('button', { name: zh.backfills.start, exact: true }).click()
  await other.getByText(zh.backfills.lead('Endless')).waitFor()
  expect(await faults(other)).toEqual([])
  expect(troubles).toEqual([])
})

test('a calendar shows the days, and is the entry to a backfill', async () => {
  const { run } = await call('POST', '/v1/jobs/daily/trigger', {})
  await expect.poll(async () => (await call('GET', `/v1/runs/${run}`)).state, { timeout: 30_000 }).toBe('succeeded')
  await open('daily')
  const calendar = page.getByRole('region', { name: t.backfills.calendar })
  await calendar.getByRole('button', { name: t.backfills.dayStates.good }).first().waitFor()
  await calendar.getByRole('button', { name: t.backfills.monthBefore }).click()
  const days = calendar.getByRole('button', { name: /\d{4}-\d\d-\d\d/ })
  const [first, third] = [days.nth(0), days.nth(2)]
  const dateOf = async (day: typeof first) => (await day.getAttribute('data-date'))!
  await third.click()
  await first.click()
  const [from, to] = [await dateOf(first), await dateOf(third)]
  await fine()
  await button(t.backfills.forDays(from, to)).click()
  expect(await page.getByLabel(t.backfills.from, { exact: true }).inputValue()).toBe(from)
  expect(await page.getByLabel(t.backfills.to, { exact: true }).inputValue()).toBe(to)
})
