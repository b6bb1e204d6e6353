// The whole story, in both languages: first sign-in, first executor, first job, a live run, a failing job, its alert, a script edited
// and compared, a declared job changed, somebody with few rights, and out.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { en, type Words } from '../src/text/en'
import { zh } from '../src/text/zh'
import { faults, launch, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'
import { openRoom } from './room.js'

/** Texts that would do harm if anything ever took them for more than text. */
const NASTY = `<img src=x onerror="window.pwned=1"><svg onload=window.pwned=1><script>window.pwned=1</script>{{7*7}}'"&amp;`

const LIVE = `#!/bin/bash
for i in 1 2 3 4 5; do echo "step $i"; sleep 0.4; done
echo '${NASTY.replaceAll("'", '')}'
`

let browser: Browser

beforeAll(async () => {
  browser = await launch()
})
afterAll(async () => {
  await browser.close()
})

describe.each([
  ['en-GB', en],
  ['zh-CN', zh],
] as [string, Words][])('in %s', (locale, t) => {
  let centre: Awaited<ReturnType<typeof startCentre>>
  let page: Page
  let troubles: string[]

  let room: Awaited<ReturnType<typeof openRoom>>

  beforeAll(async () => {
    room = await openRoom()
    centre = await startCentre(['--alert-webhook', `json=${room.address}`])
    ;({ page, troubles } = await watchedPage(browser, { locale }))
  })
  afterAll(async () => {
    await page.context().close()
    await centre.end()
    await room.end()
  })

  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name, exact: true })
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true })
  const to = (name: string) => page.getByRole('navigation', { name: t.nav.main }).getByRole('link', { name, exact: true }).click()

  async function fine() {
    expect(await faults(page)).toEqual([])
    expect(troubles).toEqual([])
    expect(await page.evaluate(() => 'pwned' in window)).toBe(false)
  }

  async function signIn(user: string, password: string) {
    await page.getByLabel(t.signIn.user).fill(user)
    await page.getByLabel(t.signIn.password, { exact: true }).fill(password)
    await button(t.signIn.submit).click()
  }

  test('a wrong password is refused in words, the right one leads to the welcome', async () => {
    await page.goto(centre.address)
    await heading(t.signIn.title).waitFor()
    await signIn(centre.user, 'wrong password')
    await page.getByRole('alert').getByText(t.values.problem.wrong_password![0]).waitFor()
    await fine()
    await signIn(centre.user, centre.password)
    await heading(t.overview.title).waitFor()
    await page.getByText(t.welcome.title).waitFor()
    await fine()
  })

  test('an app gets a token, shown once, and an executor that uses it appears by itself', async () => {
    await to(t.executors.title)
    await button(t.executors.newApp).first().click()
    await page.getByLabel(t.executors.name, { exact: true }).fill('story')
    await page.getByLabel(t.executors.appTitle).fill('Story')
    await button(t.common.save).click()
    await page.getByRole('heading', { name: 'Story' }).waitFor()
    await button(`${t.executors.tokens}: story`).click()
    await button(t.executors.newToken).click()
    const token = await page.locator('.secret code').innerText()
    await fine()
    await page.getByRole('dialog').getByRole('button', { name: t.common.close, exact: true }).first().click()
    const address = await centre.agent('story', token)
    await page.getByText(address).waitFor({ timeout: 30_000 })
    await page.getByText(t.executors.alive, { exact: true }).waitFor()
    await fine()
  })

  test('a first job with a nasty name is created, run, and watched live', async () => {
    await to(t.jobs.title)
    await page.getByText(t.jobs.empty.title).waitFor()
    await link(t.jobs.empty.action).click()
    await page.getByLabel(t.fields.name.label, { exact: true }).fill(`Live ${NASTY}`)
    await page.getByLabel(t.fields.app.label, { exact: true }).selectOption('story')
    await page.getByText(t.form.kinds.script, { exact: true }).click()
    await page.getByRole('textbox', { name: t.fields.script.label, exact: true }).fill(LIVE)
    await page.getByLabel(t.fields.param.label, { exact: true }).fill(NASTY)
    await page.getByLabel(t.fields.tags.label).fill('<b>tag</b>')
    await page.getByLabel(t.form.expression).fill('0 0 3 L * ?')
    await page
      .getByRole('table')
      .getByText(/03:00:00/)
      .first()
      .waitFor()
    await fine()
    await button(t.form.createOn).click()
    await heading(`Live ${NASTY}`).waitFor()
    await fine()
    await button(t.jobs.trigger).click()
    await button(t.triggerDialog.go).click()
    const log = page.getByRole('log')
    await log.getByText('step 1').waitFor({ timeout: 30_000 })
    await page.getByText(t.values.runState.succeeded!, { exact: true }).waitFor({ timeout: 30_000 })
    await log.getByText('<script>window.pwned=1</script>').last().waitFor()
    await page.getByText(t.values.traceStep.accepted!, { exact: true }).waitFor()
    await page.getByText(t.values.traceStep.recorded!, { exact: true }).waitFor()
    await fine()
  })

  test('a job that fails shows up where one looks first', async () => {
    await page.goto(`${centre.address}/jobs/new`)
    await page.getByLabel(t.fields.name.label, { exact: true }).fill('Failing')
    await page.getByLabel(t.fields.app.label, { exact: true }).selectOption('story')
    await page.getByText(t.form.kinds.script, { exact: true }).click()
    await page.getByRole('textbox', { name: t.fields.script.label, exact: true }).fill('echo "cannot go on" >&2\nexit 3\n')
    await page.getByText(t.values.schedule.none, { exact: true }).click()
    await page.getByText(t.form.previewNone).waitFor()
    await page.getByLabel(t.fields.alert.label).check()
    await button(t.form.create).click()
    await heading('Failing').waitFor()
    await button(t.jobs.trigger).click()
    await button(t.triggerDialog.go).click()
    await page.getByText(t.values.runState.failed!, { exact: true }).waitFor({ timeout: 30_000 })
    await fine()
    await to(t.overview.title)
    await page
      .getByRole('main')
      .getByRole('link', { name: /Failing/ })
      .first()
      .waitFor()
    await fine()
    await to(t.runs.title)
    await page.getByRole('table', { name: t.runs.title }).getByText(t.values.runState.failed!, { exact: true }).first().waitFor()
    await page.getByText(t.runs.filterStates.failed!, { exact: true }).first().click()
    await page.waitForURL(/state=failed/)
    await fine()
  })

  test('people are told of it, and it is seen who was', async () => {
    expect(await room.told()).toContain('Failing')
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await heading(t.alerts.title).waitFor()
    const row = page.getByRole('table', { name: t.alerts.title }).getByRole('row').filter({ hasText: 'Failing' })
    await row.getByText(t.values.alertKind.failed, { exact: true }).waitFor()
    await row.getByText(t.values.alertState.delivered, { exact: true }).waitFor()
    await row.getByText(t.values.channel.webhook!, { exact: true }).waitFor()
    await fine()
    await row.getByRole('button', { name: 'Failing' }).click()
    const dialog = page.getByRole('dialog', { name: 'Failing' })
    await dialog.getByText(t.values.alertStateHint.delivered).waitFor()
    await dialog.getByText('127.0.0.1').waitFor()
    await fine()
    await dialog.getByRole('link', { name: t.alerts.toJob }).click()
    await heading('Failing').waitFor()
    await page.getByRole('heading', { name: t.alerts.title }).waitFor()
    await page.goto(`${centre.address}/alerts`)
    await page.getByLabel(t.alerts.kind, { exact: true }).selectOption('late')
    await page.waitForURL(/kind=late/)
    await page.getByText(t.alerts.nothing.title).waitFor()
    await fine()
    await link(t.alerts.nothing.action).click()
    await row.getByRole('link').click()
    await page.getByText('cannot go on').waitFor()
  })

  test('a script is edited, saved and compared with the version before', async () => {
    await to(t.jobs.title)
    await link('Failing').click()
    await link(t.job.tabs.script).click()
    const write = async (source: string, remark: string) => {
      await page.getByRole('textbox', { name: t.fields.script.label }).click()
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type(source)
      await page.getByText(t.script.unsaved).waitFor()
      await page.getByLabel(t.script.remark).fill(remark)
      await button(t.script.save).click()
      await page.getByText(remark).waitFor()
    }
    await write('echo "still fails"\nexit 4\n', 'another code')
    await write('echo "goes on now"\n', `does not fail ${NASTY}`)
    await button(t.script.compare).first().click()
    const comparison = page.getByRole('region', { name: t.diff.before })
    await comparison.getByText('exit 4').waitFor()
    await comparison.getByText('echo "goes on now"').waitFor()
    await fine()
    await button(t.script.keepEditing).click()
    await button(t.script.test).click()
    await page.getByText(t.values.runState.succeeded!, { exact: true }).waitFor({ timeout: 30_000 })
    await page.goto(page.url().replace(/runs.*/, 'jobs'))
    await link('Failing').click()
    await link(t.job.tabs.history).click()
    await page.getByText(t.values.action['job.create']!).first().waitFor()
    await fine()
  })

  test('what somebody changed of a job that its program declared is told', async () => {
    const call = await api(centre)
    const { token } = await call('POST', '/v1/apps/story/tokens')
    const declared = await fetch(`${centre.address}/api/declare`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'XXL-JOB-ACCESS-TOKEN': token, 'XXL-JOB-APPNAME': 'story' },
      body: JSON.stringify({
        address: 'http://127.0.0.1:9/',
        handlers: ['declared'],
        jobs: [{ handler: 'declared', name: 'Declared', schedule: { kind: 'cron', expression: '0 0 4 * * ?' } }],
      }),
    })
    expect(await declared.json()).toMatchObject({ code: 200 })
    await to(t.jobs.title)
    await link('Declared').click()
    await heading('Declared').waitFor()
    expect(await page.getByText(t.job.declared).count()).toBe(0)
    await link(t.common.edit).click()
    await page.getByLabel(t.form.expression).fill('0 0 5 * * ?')
    await button(t.form.save).click()
    await page.getByText(t.job.overridden(t.fields.schedule.label)).waitFor()
    await fine()
  })

  test('jobs are found, and many are stopped at once', async () => {
    await to(t.jobs.title)
    await page.getByRole('searchbox', { name: t.jobs.search }).fill('Live')
    await page.waitForURL(/text=Live/)
    await link('Failing').waitFor({ state: 'detached' })
    await page.getByLabel(t.jobs.selectAll).check()
    await page.getByText(t.common.selected(1)).waitFor()
    await fine()
    await button(t.jobs.stop).click()
    await page.getByText(t.jobs.bulkDone(1)).waitFor()
    await page.getByRole('row').filter({ hasText: 'Live' }).getByText(t.jobs.off, { exact: true }).waitFor()
    await fine()
  })

  test('the other pages are there, without faults', async () => {
    for (const [name, title] of [
      [t.calendars.title, t.calendars.title],
      [t.users.title, t.users.title],
      [t.keys.title, t.keys.title],
      [t.audit.title, t.audit.title],
      [t.settings.title, t.settings.title],
      [t.about.title, t.about.title],
    ] as const) {
      await to(name)
      await heading(title).waitFor()
      await fine()
    }
    await page.getByText(t.about.settings, { exact: true }).waitFor()
    await page.getByText('keep-runs', { exact: true }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await heading(t.jobs.title).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: t.shell.help }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: t.shell.help }).waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: t.shell.searchHint }).fill('Fail')
    await page.getByRole('option', { name: /Failing/, selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await heading('Failing').waitFor()
    await fine()
  })

  test('somebody with few rights sees only what is theirs, and signs out', async () => {
    await to(t.executors.title)
    await button(t.executors.newApp).click()
    await page.getByLabel(t.executors.name, { exact: true }).fill('other')
    await button(t.common.save).click()
    await page.getByRole('heading', { name: 'other' }).waitFor()
    await to(t.users.title)
    await button(t.users.new).click()
    await page.getByLabel(t.users.name, { exact: true }).fill('reader')
    await page.getByLabel(t.users.password, { exact: true }).fill('brass lantern seventeen')
    await page.getByLabel(`story: ${t.values.right.view}`).check()
    await fine()
    await button(t.common.save).click()
    await page.getByText('reader', { exact: true }).waitFor()
    await button(t.shell.signOut).click()
    await heading(t.signIn.title).waitFor()
    await signIn('reader', 'brass lantern seventeen')
    await heading(t.users.title).or(heading(t.overview.title)).or(page.getByText(t.values.problem.not_allowed![0])).first().waitFor()
    await to(t.jobs.title)
    await link('Failing').waitFor()
    expect(await link(t.jobs.new).count()).toBe(0)
    expect(await button(`${t.jobs.trigger}: Failing`).count()).toBe(0)
    expect(await page.getByRole('navigation', { name: t.nav.main }).getByRole('link', { name: t.audit.title, exact: true }).count()).toBe(0)
    await to(t.executors.title)
    await page.getByRole('heading', { name: 'Story' }).waitFor()
    expect(await page.getByRole('heading', { name: 'other' }).count()).toBe(0)
    await button(t.shell.signOut).click()
    await heading(t.signIn.title).waitFor()
  })
})
