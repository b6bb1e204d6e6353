// What people do with jobs and runs all day, beside the story: copy, move, export, import; end a run and repeat it; ask why a
// fire was not sent; read the clocks of two zones; write scripts in every language; look closer at a chart; read the API and
// try it out.

import { readFileSync } from 'node:fs'

import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { en as t } from '../src/text/en'
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
  await call('PUT', '/v1/apps/second', { title: 'Second' })
  const { token } = await call('POST', '/v1/apps/first/tokens')
  await centre.agent('first', token)
  await put('nightly', { schedule: cron('0 0 2 * * ?', 'America/New_York'), handler: 'nightly', tags: ['nightly'] })
  await put('endless', { script: { language: 'shell', source: 'echo begun\nsleep 600\n' }, overlap: 'skip' })
  browser = await launch()
  ;({ page, troubles } = await watchedPage(browser, { locale: 'en-GB', acceptDownloads: true }))
  await signIn(page, centre)
})
afterAll(async () => {
  await browser.close()
  await centre.end()
})

const cron = (expression: string, zone?: string) => ({ kind: 'cron', expression, zone })
const put = (key: string, more: object) =>
  call('PUT', `/v1/jobs/${key}`, { app: 'first', name: key[0]!.toUpperCase() + key.slice(1), schedule: { kind: 'none' }, ...more })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const link = (name: string) => page.getByRole('link', { name, exact: true })
const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true })
const open = (path: string) => page.goto(centre.address + path)

async function fine() {
  expect(await faults(page)).toEqual([])
  // That a key is taken, or that a run has no steps yet, is an answer that we ask for.
  const asked = (trouble: string) => /status of (409|412)/.test(trouble)
  expect(troubles.filter((trouble) => !asked(trouble))).toEqual([])
}

test('jobs are exported, deleted and brought back as they were', async () => {
  const before = await call('GET', '/v1/jobs/endless')
  await open('/jobs')
  const download = page.waitForEvent('download')
  await button(t.jobs.export).click()
  const file = await (await download).path()
  expect(JSON.parse(readFileSync(file, 'utf8')).jobs).toHaveLength(2)
  await page.getByLabel(t.jobs.select('Endless')).check()
  await page.getByRole('toolbar').getByRole('button', { name: t.jobs.delete }).click()
  await page.getByRole('dialog').getByRole('button', { name: t.jobs.delete, exact: true }).click()
  await page.getByText(t.jobs.bulkDone(1)).waitFor()
  await button(t.jobs.import).click()
  await page.getByLabel(t.jobs.importFile).setInputFiles(file)
  await page.getByText(t.jobs.importRead(2)).waitFor()
  await fine()
  await page.getByRole('dialog').getByRole('button', { name: t.jobs.importGo, exact: true }).click()
  await page.getByText(t.jobs.importDone(2)).waitFor()
  await link('Endless').waitFor()
  const after = await call('GET', '/v1/jobs/endless')
  expect(after).toMatchObject({ name: before.name, script: before.script, overlap: before.overlap, app: before.app })
  await button(t.jobs.import).click()
  await page.getByLabel(t.jobs.importFile).setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('[]') })
  await page.getByText(t.jobs.importBad).waitFor()
  await page.keyboard.press('Escape')
})

test('a job is copied, moved to another app, and its history tells it', async () => {
  await open('/jobs')
  await link('Nightly').click()
  await link(t.jobs.copy).click()
  await page.getByLabel(t.fields.name.label, { exact: true }).waitFor()
  expect(await page.getByLabel(t.fields.name.label, { exact: true }).inputValue()).toBe(t.form.copyOf('Nightly'))
  await page.getByLabel(new RegExp(`^${t.form.key}`)).fill('nightly')
  await button(t.form.create).click()
  await page.getByText(t.values.problem.conflict![0]).first().waitFor()
  await page.getByLabel(new RegExp(`^${t.form.key}`)).fill('copied')
  await button(t.form.create).click()
  await heading(t.form.copyOf('Nightly')).waitFor()
  await open('/jobs')
  await page.getByLabel(t.jobs.select(t.form.copyOf('Nightly'))).check()
  await page.getByRole('toolbar').getByLabel(t.jobs.moveTo).selectOption('second')
  await page.getByText(t.jobs.bulkDone(1)).waitFor()
  await link(t.form.copyOf('Nightly')).click()
  await link(t.job.tabs.history).click()
  await page.getByText(t.values.action['job.move']!).waitFor()
  await page.getByText('"app": "second"').waitFor()
  await fine()
})

test('a run is ended and repeated, and what was not sent tells why', async () => {
  await open('/jobs')
  await link('Endless').click()
  await button(t.jobs.trigger).click()
  await page.getByLabel(t.triggerDialog.param).fill('a parameter')
  await button(t.triggerDialog.go).click()
  await page.getByText('begun').waitFor()
  await page.getByText('a parameter').first().waitFor()
  await button(t.run.kill).click()
  await page.getByRole('dialog').getByRole('button', { name: t.run.kill, exact: true }).click()
  await page
    .getByText(t.values.runState.cancelled!, { exact: true })
    .or(page.getByText(t.values.runState.failed!, { exact: true }))
    .first()
    .waitFor({ timeout: 30_000 })
  const ended = page.url()
  await fine()
  await button(t.run.again).click()
  await page.waitForURL((url) => /\/runs\/\d+$/.test(url.pathname) && url.href !== ended)
  await page.getByText('begun').waitFor()
  // It is still running at its next instants.
  const { id } = await put('endless', { overlap: 'skip', schedule: cron('* * * * * ?'), enabled: true })
  await open(`/jobs/${id}`)
  await page.getByText(t.values.missReason.blocked).first().waitFor({ timeout: 30_000 })
  await fine()
  await call('POST', `/v1/jobs/id:${id}/stop`)
})

test('instants are shown on the clocks of both zones, and the night they change is marked', async () => {
  await open('/runs')
  await open('/jobs/new')
  await page.getByLabel(t.form.expression).fill('0 30 12 * * ?')
  await page.getByLabel(t.form.zone).selectOption('America/New_York')
  await page.getByText('12:30:00').first().waitFor()
  await page.getByText(t.form.mine, { exact: true }).waitFor()
  // Clocks there change on the first Sunday of November, and of the second week of March.
  await page.getByLabel(t.form.expression).fill('0 30 12 L * ?')
  await page.getByTitle(t.form.clockChange).first().waitFor()
  await fine()
  await open('/jobs')
  const row = page.getByRole('row').filter({ has: link('Nightly') })
  await call('POST', '/v1/jobs/nightly/start')
  await row.locator('time').first().waitFor()
  expect(await row.locator('time').first().getAttribute('title')).toContain(`America/New_York (${t.common.jobZone})`)
  const { run } = await call('POST', '/v1/jobs/nightly/trigger', {})
  await open(`/runs/${run}`)
  const scheduled = page.locator('dl time').first()
  await scheduled.waitFor()
  expect(await scheduled.getAttribute('title')).toContain(`America/New_York (${t.common.jobZone})`)
})

test('scripts of every language are written in color', async () => {
  const sources = {
    shell: 'if true; then echo "x"; fi',
    python: 'def f():\n    return "x"',
    node: 'const x = () => "x"',
    php: '<?php function f() { return "x"; }',
    powershell: 'function F { return "x" }',
    groovy: 'def f() { return "x" }',
  }
  for (const [language, source] of Object.entries(sources)) {
    const { id } = await put(`in-${language}`, { script: { language, source } })
    await open(`/jobs/${id}/script`)
    await page.getByRole('textbox', { name: t.fields.script.label }).waitFor()
    // Its letters are not all of one color.
    await expect
      .poll(() =>
        page.getByRole('textbox', { name: t.fields.script.label }).evaluate((editor) => {
          const colors = [...editor.querySelectorAll('span')].map((span) => getComputedStyle(span).color)
          return new Set(colors).size
        }),
      )
      .toBeGreaterThan(1)
    await fine()
  }
})

test('a chart is looked at more closely by dragging, and from afar again', async () => {
  await open('/')
  const chart = page.locator('.charts .u-over').first()
  await chart.waitFor()
  const box = (await chart.boundingBox())!
  const asked = page.waitForRequest(/\/v1\/statistics\?.*step_ms=/)
  await page.mouse.move(box.x + box.width * 0.8, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width - 2, box.y + 40, { steps: 4 })
  await page.mouse.up()
  const query = new URL((await asked).url()).searchParams
  expect(Date.parse(query.get('until')!) - Date.parse(query.get('from')!)).toBeLessThan(6 * 3_600_000)
  await button(t.overview.zoomOut).click()
  await page.getByText(t.overview.zoomHint).waitFor()
  await fine()
})

test('the API is described for people to read', async () => {
  await open('/about')
  await link(t.about.api).click()
  await page.getByText('/v1/jobs/{job}').first().waitFor()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await open('/v1/docs')
  const operation = page.locator('#operations-jobs-put_jobs_job')
  await operation.locator('.opblock-summary-control').click()
  // The schema of the request, its description and its allowed values.
  const route = operation.locator('.json-schema-2020-12-property', { hasText: 'Routing strategy, which selects the executor.' }).first()
  await route.getByText('Enum').click()
  await route.getByText('round_robin').waitFor()
  expect(await operation.locator('.curl pre').innerText()).toContain(`curl -X PUT '${centre.address}/v1/jobs/{job}'`)
  await operation.getByText('Stable code of the error.').first().waitFor()
  expect(asked.filter((url) => !url.startsWith(centre.address) && !url.startsWith('data:'))).toEqual([])
  await fine()
})

test('the API is tried out with the session of the browser, changes too', async () => {
  await open('/v1/docs')
  const tried = async (id: string, fill: (operation: Locator) => Promise<void>) => {
    const operation = page.locator(`#operations-${id}`)
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await fill(operation)
    await operation.getByRole('button', { name: 'Execute' }).click()
    return operation.locator('.live-responses-table .response-col_status').last().innerText()
  }
  expect(await tried('me-get_me', async () => {})).toContain('200')
  const put = await tried('apps-put_apps_app', async (operation) => {
    await operation.getByPlaceholder('app').fill('tried-out')
    await operation.locator('textarea.body-param__text').fill('{"title":"Tried out"}')
  })
  expect(put).toContain('201')
  await open('/executors')
  await page.getByText('Tried out').waitFor()
  await fine()
})

test('a workflow is watched, approved, and the next step gets what was said before', async () => {
  const script = (source: string) => ({ script: { language: 'shell', source } })
  await put('count', script('echo counting'))
  await put('pay', script('echo "paying $1"'))
  await call('PUT', '/v1/jobs/bills', {
    app: 'first',
    name: 'Bills',
    schedule: { kind: 'none' },
    workflow: {
      inputs: { month: { type: 'text' } },
      steps: [
        { name: 'count', job: 'count' },
        { name: 'sign', needs: ['count'], approval: { ask: 'Pay the bills of ${{ inputs.month }}?' } },
        { name: 'pay', needs: ['sign'], job: 'pay', param: '${{ inputs.month }}' },
        { name: 'apologise', needs: ['sign'], when: 'any_failed', job: 'pay' },
      ],
    },
  })
  const { run } = await call('POST', '/v1/jobs/bills/trigger', { param: '{"month":"May"}' })
  await open(`/runs/${run}?view=table&step=sign`)
  const steps = page.getByRole('region', { name: t.steps.title })
  await steps.getByText('Pay the bills of May?').first().waitFor()
  await fine()
  await steps.getByRole('button', { name: t.steps.approve }).click()
  await steps.getByText(t.steps.approvedBy('admin')).waitFor()
  await page.getByText(t.values.runState.succeeded, { exact: true }).first().waitFor()
  await steps.getByText(t.values.stepState.skipped).waitFor()
  const paid = await call('GET', `/v1/runs/${run}/steps/pay`)
  expect(await call('GET', `/v1/runs/${paid.run}`)).toMatchObject({ param: 'May', origin: { kind: 'step', of: run } })
  const job = await call('GET', '/v1/jobs/bills')
  await open(`/jobs/${job.id}`)
  await page.getByText(t.steps.jobs(4)).first().waitFor()
  await fine()
})

test('a failed workflow run is resumed after a preview, and keeps what succeeded', async () => {
  await put('fetch', { script: { language: 'shell', source: 'echo fetched' } })
  await put('deliver', { script: { language: 'shell', source: 'exit 1' } })
  await call('PUT', '/v1/jobs/parcels', {
    app: 'first',
    name: 'Parcels',
    schedule: { kind: 'none' },
    workflow: {
      steps: [
        { name: 'fetch', job: 'fetch' },
        { name: 'pack', needs: ['fetch'], job: 'fetch' },
        { name: 'deliver', needs: ['pack'], job: 'deliver' },
      ],
    },
  })
  const { run } = await call('POST', '/v1/jobs/parcels/trigger')
  await open(`/runs/${run}`)
  await page.getByText(t.values.runState.failed, { exact: true }).first().waitFor()
  await put('deliver', { script: { language: 'shell', source: 'echo delivered' } })
  await button(t.resume.title).click()
  const dialog = page.getByRole('dialog', { name: t.resume.title })
  const part = (name: string) => dialog.getByRole('region', { name, exact: true })
  await part(t.resume.kept).getByText('fetch, pack').waitFor()
  await part(t.resume.runs).getByText('deliver', { exact: true }).waitFor()
  await dialog.getByLabel('pack').check()
  await part(t.resume.runs).getByText('pack, deliver').waitFor()
  await fine()
  await dialog.getByRole('button', { name: t.resume.action }).click()
  await page.waitForURL((url) => url.pathname !== `/runs/${run}`)
  await page.getByText(t.values.runState.succeeded, { exact: true }).first().waitFor()
  await open(`${new URL(page.url()).pathname}?view=table`)
  const steps = page.getByRole('region', { name: t.steps.title })
  await steps.getByText(t.resume.keptStep, { exact: true }).waitFor()
  await open(`/runs/${run}`)
  await page.getByText(t.resume.by).waitFor()
  await fine()
})
