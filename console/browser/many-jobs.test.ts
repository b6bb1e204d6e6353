// A hundred thousand jobs: all can be reached, found, sorted and changed, while only those in sight are in the page.

import { execFileSync, spawnSync } from 'node:child_process'

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { en as t } from '../src/text/en'
import { launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'

const JOBS = 100_000
/** Every so manyth job is of one group, to be found by its name. */
const GROUPS = 250
/** Rows in sight, and a few beyond the edges. */
const ROWS_MAX = 60

const nameOf = (number: number) => `Job ${String(number).padStart(6, '0')} of group ${number % GROUPS}.`

const hasSqlite = spawnSync('sqlite3', ['--version']).status === 0
if (!hasSqlite) console.log('console: a hundred thousand jobs skipped: sqlite3 is missing (apt-get install sqlite3)')

describe.runIf(hasSqlite)('a hundred thousand jobs', () => {
  let browser: Browser
  let centre: Awaited<ReturnType<typeof startCentre>>
  let page: Page
  let troubles: string[]

  beforeAll(async () => {
    centre = await startCentre()
    const call = await api(centre)
    await call('PUT', '/v1/apps/many', { title: 'Many' })
    seed(centre.database)
    browser = await launch()
    ;({ page, troubles } = await watchedPage(browser, { locale: 'en-GB' }))
    await page.addInitScript(watchLongTasks)
    await signIn(page, centre)
  })
  afterAll(async () => {
    expect(troubles).toEqual([])
    await browser.close()
    await centre.end()
  })

  const table = () => page.getByRole('table', { name: t.jobs.title })
  const rows = () => table().getByRole('link')
  const row = (number: number) => rows().filter({ hasText: nameOf(number) })
  const count = (jobs: number) => page.getByText(t.jobs.lead(jobs), { exact: true })

  test('the first are there at once, and only those in sight exist', async () => {
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await row(JOBS - 1).waitFor()
    await count(JOBS).waitFor()
    expect(await rows().count()).toBeLessThan(ROWS_MAX)
  })

  test('more are read as somebody scrolls', async () => {
    await page.evaluate(scrollTo, 2_000)
    expect(await rows().count()).toBeLessThan(ROWS_MAX)
  })

  test('all can be selected without reading them', async () => {
    await page.getByLabel(t.jobs.selectAll).check()
    await page.getByRole('button', { name: t.jobs.selectEvery(JOBS) }).click()
    await page.getByText(t.common.selected(JOBS)).waitFor()
    expect(await rows().count()).toBeLessThan(ROWS_MAX)
    await page.getByRole('toolbar').getByRole('button', { name: t.common.clear }).click()
    const busy = await page.evaluate(() => window.longTasks)
    console.log(`the page was busy ${busy.length} times for more than 50 ms, at most ${Math.max(0, ...busy)} ms`)
  })

  test('any can be found and sorted', async () => {
    await page.getByLabel(t.jobs.sort).selectOption('name')
    await row(0).waitFor()
    await page.getByLabel(t.jobs.sort).selectOption('-name')
    await row(JOBS - 1).waitFor()
    await page.getByRole('searchbox', { name: t.jobs.search }).fill('Job 054321')
    await count(1).waitFor()
    await row(54_321).waitFor()
    await page.getByText(t.jobs.on, { exact: true }).first().click()
    await page.getByText(t.jobs.nothing.title).waitFor()
  })

  test('all that match are changed at once, also those nobody scrolled to', async () => {
    const group = JOBS / GROUPS
    await page.goto(`${centre.address}/jobs?text=${encodeURIComponent('of group 7.')}`)
    await count(group).waitFor()
    await page.getByLabel(t.jobs.selectAll).check()
    await page.getByText(t.common.selected(200)).waitFor()
    await page.getByRole('button', { name: t.jobs.selectEvery(group) }).click()
    await page.getByText(t.common.selected(group)).waitFor()
    await page.getByRole('toolbar').getByRole('button', { name: t.jobs.delete }).click()
    await page.getByRole('dialog').getByRole('button', { name: t.jobs.delete, exact: true }).click()
    await page.getByText(t.jobs.bulkDone(group)).waitFor({ timeout: 30_000 })
    await page.getByText(t.jobs.nothing.title).waitFor()
    await page.getByRole('link', { name: t.jobs.nothing.action }).click()
    await count(JOBS - group).waitFor()
  })
})

/** Writes the jobs where the centre reads them: asking it for each would take minutes. */
function seed(database: string) {
  execFileSync('sqlite3', [
    database,
    `PRAGMA busy_timeout = 10000;
     WITH RECURSIVE numbers (number) AS (VALUES (0) UNION ALL SELECT number + 1 FROM numbers WHERE number < ${JOBS - 1})
     INSERT INTO xxl_job_info
       (job_group, job_desc, author, schedule_type, schedule_conf, glue_type, executor_handler, executor_route_strategy,
        executor_block_strategy, executor_param)
     SELECT (SELECT id FROM xxl_job_group WHERE app_name = 'many'),
            printf('Job %06d of group %d.', number, number % ${GROUPS}),
            'Mei', 'CRON', '0 0 3 1 1 ?', 'BEAN', 'handler' || (number % 7), 'FIRST', 'SERIAL_EXECUTION', ''
       FROM numbers;`,
  ])
}

declare global {
  interface Window {
    longTasks: number[]
  }
}

/** Notes how long the page did not answer, in milliseconds each; told, and not judged: the machine may be busy. */
function watchLongTasks() {
  window.longTasks = []
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({
    type: 'longtask',
  })
}

/** Scrolls until so many rows are above the lower edge, on and on as there is more. */
function scrollTo(rows: number) {
  const table = document.querySelector('[role=table]')!
  const rowHeight = table.querySelector<HTMLElement>('.window [role=row]')!.offsetHeight
  return new Promise<void>((resolve) => {
    const step = () => {
      table.scrollTop = rows * rowHeight
      if (table.scrollHeight >= rows * rowHeight) resolve()
      else requestAnimationFrame(step)
    }
    step()
  })
}
