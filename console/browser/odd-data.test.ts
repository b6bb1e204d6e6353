// Data as nobody designs for: nothing at all, a name without an end, a crowd of executors, a log of megabytes, more than can be
// counted; on a phone, in the dark, in both languages, and without a mouse. Nothing may hang over the edge or freeze.

import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { en, type Words } from '../src/text/en'
import { zh } from '../src/text/zh'
import { faults, launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'

const NAME = `Recalculate-${'x'.repeat(80)} the loyalty points of all customers, `.padEnd(200, 'and of theirs ')
const EXECUTORS = 50
/** Some 5 MB, one line of them without an end. */
const LINES = 50_000
const NOISY = `for i in $(seq 1 ${LINES}); do echo "line $i ${'-'.repeat(60)}"; done
head -c 20000 /dev/zero | tr '\\0' x
echo
exit 1
`

let browser: Browser
let centre: Awaited<ReturnType<typeof startCentre>>
let call: Awaited<ReturnType<typeof api>>

beforeAll(async () => {
  centre = await startCentre()
  call = await api(centre)
  browser = await launch()
})
afterAll(async () => {
  await browser.close()
  await centre.end()
})

const MODES: [string, Words, object][] = [
  ['in English', en, { locale: 'en-GB' }],
  ['in Chinese, on a phone', zh, { locale: 'zh-CN', viewport: { width: 375, height: 812 } }],
  ['in Chinese, in the dark', zh, { locale: 'zh-CN', colorScheme: 'dark' }],
]

/** Opens pages one after the other, and holds each to what every page has to keep. */
async function visit(options: object, looks: [string, (page: Page) => Promise<unknown>][]) {
  const { page, context, troubles } = await watchedPage(browser, options)
  await signIn(page, centre)
  for (const [path, look] of looks) {
    await page.goto(centre.address + path)
    await look(page)
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${path} hangs over the edge`).toBe(0)
    expect(await faults(page), path).toEqual([])
  }
  // That something is not there is an answer that some of these pages ask for.
  expect(troubles.filter((trouble) => !trouble.includes('status of 404'))).toEqual([])
  await context.close()
}

const says = (words: string) => (page: Page) => page.getByText(words).first().waitFor()

describe.each(MODES)('%s', (_, t, options) => {
  test('pages without anything on them say so', async () => {
    await visit(options, [
      ['/', says(t.welcome.title)],
      ['/jobs', says(t.jobs.empty.title)],
      ['/runs', says(t.runs.empty.title)],
      ['/alerts', says(t.alerts.empty.title)],
      ['/calendars', says(t.calendars.empty.title)],
      ['/keys', says(t.keys.empty.title)],
      ['/jobs/4711', says(t.values.problem.not_found![0])],
      ['/runs/4711', says(t.values.problem.not_found![0])],
      ['/somewhere/else', says(t.notFound.title)],
    ])
  })
})

describe('with odd data', () => {
  let long: number
  let run: number

  beforeAll(async () => {
    await call('PUT', '/v1/apps/strange', { title: 'Strange' })
    const addresses = Array.from({ length: EXECUTORS }, (_, index) => `http://127.0.0.1:9/${index + 1}/`)
    await call('PUT', '/v1/apps/crowd', { title: 'Crowd', addressing: { kind: 'manual', addresses } })
    await call('POST', '/v1/apps/crowd/executors/check', { address: addresses.at(-1) })
    const { token } = await call('POST', '/v1/apps/strange/tokens')
    await centre.agent('strange', token)
    for (const path of ['/api/registry', '/api/registryRemove']) {
      const registered = { registryGroup: 'EXECUTOR', registryKey: 'strange', registryValue: 'http://127.0.0.1:9/left/' }
      const headers = { 'Content-Type': 'application/json', 'XXL-JOB-ACCESS-TOKEN': token }
      await fetch(centre.address + path, { method: 'POST', headers, body: JSON.stringify(registered) })
    }
    const schedule = { kind: 'cron', expression: '0 0 3 * * ?' }
    const tags = ['t'.repeat(50), 'u'.repeat(50), 'short']
    long = (await call('PUT', '/v1/jobs/long', { app: 'strange', name: NAME, schedule, enabled: true, handler: 'h', tags })).id
    await call('PUT', '/v1/jobs/noisy', {
      app: 'strange',
      name: 'Noisy',
      schedule: { kind: 'none' },
      alert: true,
      script: { language: 'shell', source: NOISY },
    })
    run = (await call('POST', '/v1/jobs/noisy/trigger', {})).run
  })

  describe.each(MODES)('%s', (_, t, options) => {
    test('every page holds it', async () => {
      const crowd = (page: Page) => page.locator('section').filter({ hasText: 'Crowd' })
      await visit(options, [
        ['/', says(NAME)],
        ['/jobs', says(NAME)],
        [`/jobs/${long}`, says(t.job.noRuns)],
        [`/jobs/${long}/edit`, (page) => page.getByLabel(t.fields.name.label, { exact: true }).waitFor()],
        [`/jobs/${long}/history`, says(t.values.action['job.put']!)],
        ['/runs', says('Noisy')],
        ['/alerts', says('Noisy')],
        ['/audit', (page) => page.getByRole('button', { name: t.values.action['job.put']! }).first().waitFor()],
        [
          '/executors',
          async (page) => {
            // The one that cannot be reached comes first, of all that are not shown at once.
            const reason = `${t.values.trouble.connect_refused![0]}${t.common.stop}`
            await crowd(page).getByRole('listitem').first().getByText(reason, { exact: true }).waitFor()
            expect(await crowd(page).getByRole('listitem').count()).toBeLessThan(10)
            await page.getByRole('button', { name: t.executors.showAll(EXECUTORS) }).click()
            expect(await crowd(page).getByRole('listitem').count()).toBe(EXECUTORS)
            await page.getByText(t.executors.goneCount(1)).click()
            await page.getByText('http://127.0.0.1:9/left/').waitFor()
          },
        ],
        [
          `/runs/${run}`,
          async (page) => {
            await page.getByText(t.run.lines(LINES + 4)).waitFor({ timeout: 60_000 })
            const log = page.getByRole('log')
            await page.getByRole('searchbox', { name: t.run.searchLog }).fill(`line ${LINES} `)
            await log.locator('mark').waitFor()
            expect(await log.locator('.line').count(), 'only lines in sight exist').toBeLessThan(200)
            await log.evaluate((box) => box.scrollTo(0, box.scrollHeight))
            await log.getByText('xxxxxxxx').first().waitFor()
            expect(await log.evaluate((box) => box.scrollWidth)).toBeGreaterThan(10_000)
          },
        ],
      ])
    })

    test('what cannot all be counted says so', async () => {
      const { page, context } = await watchedPage(browser, options)
      const since = '2026-06-18T08:00:00.000Z'
      const partial = (path: string, more: object) =>
        page.route(path, async (route) => {
          const answer = await route.fetch()
          await route.fulfill({ response: answer, json: { ...(await answer.json()), complete: false, ...more } })
        })
      await partial('**/v1/statistics?*', { counted_from: since })
      await partial('**/v1/calendar?*', { jobs: 100_000 })
      await signIn(page, centre)
      await page.getByText(t.overview.calendarPartial(100_000)).waitFor()
      const [before, after] = t.overview.countedFrom('|').split('|')
      await page.getByText(before!.trim() || after!.trim()).waitFor()
      expect(await faults(page)).toEqual([])
      await context.close()
    })
  })

  test('the first view is small, and there soon', async () => {
    const before = await watchedPage(browser)
    await signIn(before.page, centre)
    // Signed in, but with nothing kept from before.
    const storageState = await before.context.storageState()
    await before.context.close()
    const { page, context } = await watchedPage(browser, { locale: 'en-GB', storageState })
    const scripts: Promise<number>[] = []
    const sizeOf = async (request: Request) => (await request.sizes()).responseBodySize
    page.on('requestfinished', (request) => request.resourceType() === 'script' && scripts.push(sizeOf(request)))
    const asked = Date.now()
    await page.goto(centre.address)
    await page.getByRole('link', { name: NAME }).first().waitFor()
    const soon = Date.now() - asked
    // Charts come after what can be read.
    await page.locator('.charts canvas').first().waitFor()
    const bytes = (await Promise.all(scripts)).reduce((sum, size) => sum + size, 0)
    // Time is told, and not judged: the machine may be busy.
    console.log(`the first view: ${Math.round(bytes / 1_000)} kB of compressed script, to be read and clicked after ${soon} ms`)
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThan(300_000)
    await context.close()
  })

  test('a job is made and run without a mouse', async () => {
    const t = en
    const { page, context } = await watchedPage(browser, { locale: 'en-GB' })
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    /** Goes on until that is in focus, which has to be seen. */
    const tabTo = async (name: RegExp | string, role: 'button' | 'textbox' | 'radio' | 'link' | 'combobox' = 'button') => {
      const wanted = page.getByRole(role, { name, exact: true })
      await wanted.first().waitFor()
      for (let step = 0; step < 120; step++) {
        if (await wanted.evaluateAll((all) => all.includes(document.activeElement as HTMLElement))) {
          const ring = await page.evaluate(() => {
            const { boxShadow, outlineStyle } = getComputedStyle(document.activeElement!)
            return boxShadow !== 'none' || outlineStyle !== 'none'
          })
          return expect(ring, `${name} is seen to be in focus`).toBe(true)
        }
        await press('Tab')
      }
      throw new Error(`${name} cannot be reached`)
    }
    await page.goto(`${centre.address}/sign-in`)
    await tabTo(t.signIn.user, 'textbox')
    await page.keyboard.type(centre.user)
    await press('Tab')
    await page.keyboard.type(centre.password)
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: t.overview.title }).waitFor()
    await press('g', 'n')
    await page.getByRole('heading', { level: 1, name: t.form.newTitle }).waitFor()
    await tabTo(t.fields.name.label, 'textbox')
    await page.keyboard.type('By keyboard')
    await tabTo(t.fields.app.label, 'combobox')
    await page.keyboard.type('Strange')
    await tabTo(t.fields.handler.label, 'combobox')
    await page.keyboard.type('command')
    await tabTo(t.form.create)
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: 'By keyboard' }).waitFor()
    await tabTo(t.jobs.trigger)
    await press('Enter')
    const dialog = page.getByRole('dialog', { name: t.triggerDialog.title })
    await dialog.waitFor()
    await press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim()), 'focus is where it was').toBe(t.jobs.trigger)
    await press('Enter')
    await tabTo(t.triggerDialog.go)
    await press('Enter')
    await page.waitForURL(/\/runs\/\d+/)
    await context.close()
  })
})
