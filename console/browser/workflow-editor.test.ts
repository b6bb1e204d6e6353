// A workflow is written: as a drawing, as text and as a form, which show one source; by mouse and by keyboard; saved after a
// look at the changes, also while another user saves.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { en, type Words } from '../src/text/en'
import { zh } from '../src/text/zh'
import { faults, launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'

const t = en
const words = t.steps.edit

let browser: Browser
let centre: Awaited<ReturnType<typeof startCentre>>
let call: Awaited<ReturnType<typeof api>>
let page: Page
let troubles: string[]
let job: number

/** More steps than are drawn unless they are asked for. */
const MANY = 400

const SALES = {
  inputs: { region: { type: 'text', default: 'all' } },
  steps: [
    { name: 'orders', job: 'quick' },
    { name: 'check', needs: ['orders'], job: 'quick' },
    { name: 'report', needs: [{ step: 'check', if: "inputs.region == 'all'" }], job: 'quick' },
  ],
}

beforeAll(async () => {
  centre = await startCentre()
  call = await api(centre)
  await call('PUT', '/v1/apps/shop', { title: 'Shop' })
  const { token } = await call('POST', '/v1/apps/shop/tokens')
  await centre.agent('shop', token)
  await put('quick', { script: { language: 'shell', source: 'echo done > "$TICKWRIGHT_OUTPUT"\n' } })
  job = (await put('sales', { name: 'Daily sales', workflow: SALES })).id
  const steps = Array.from({ length: MANY }, (_, index) => ({ name: `s${index}`, needs: index === 0 ? [] : [`s${index - 1}`], wait_ms: 5 }))
  await put('many', { workflow: { steps } })
  browser = await launch()
  ;({ page, troubles } = await watchedPage(browser, { locale: 'en-GB' }))
  await signIn(page, centre)
})
afterAll(async () => {
  await browser.close()
  await centre.end()
})

const put = (key: string, more: object) => call('PUT', `/v1/jobs/${key}`, { app: 'shop', name: key, schedule: { kind: 'none' }, ...more })
const open = (path: string) => page.goto(centre.address + path)
const step = (name: string) => page.locator('[data-step]').filter({ has: page.locator('title', { hasText: new RegExp(`^${name} `) }) })
const form = (name: string) => page.getByRole('region', { name: t.steps.panel(name) })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const editor = () => page.getByRole('textbox', { name: words.label })
const written = async () => (await editor().innerText()).replace(/\u00a0/g, ' ')
const focused = () => page.evaluate(() => document.activeElement?.getAttribute('data-field'))
const edge = (from: string, to: string) => page.getByRole('button', { name: words.edge(from, to) })

async function fine() {
  expect(await faults(page)).toEqual([])
  expect(troubles).toEqual([])
}

async function choose(title: string, option: string) {
  await page.getByRole('combobox', { name: title }).fill(option)
  await page.keyboard.press('Enter')
}

test('drawing, text and form show one source, with one undo for all', async () => {
  await open(`/jobs/${job}/workflow`)
  await editor().waitFor()
  await page.getByText(words.fine).waitFor()
  await step('check').click()
  await form('check').getByLabel(words.name, { exact: true }).waitFor()
  await fine()

  // The form renames it in the text, and the drawing follows.
  await form('check').getByLabel(words.name, { exact: true }).fill('compare')
  await page.keyboard.press('Enter')
  await step('compare').waitFor()
  await expect.poll(written).toContain('step: compare')
  await page.getByText(words.fine).waitFor()

  // The drawing adds a step behind the selected one.
  await button(words.add).click()
  await choose(words.add, t.steps.kinds.approval)
  await form('approval').waitFor()
  await edge('compare', 'approval').waitFor({ state: 'attached' })
  await form('approval').getByRole('combobox', { name: words.ask }).fill('Ship it?')
  await page.keyboard.press('Enter')
  await expect.poll(written).toContain('approval: { ask: Ship it? }')

  // The text moves the selection, and changes what is drawn.
  await editor().getByText('name: orders').click()
  await form('orders').waitFor()
  await page.keyboard.press('End')
  await page.keyboard.type('_all')
  await step('orders_all').waitFor()
  await page.getByText(words.problems(1)).waitFor()
  await page.getByRole('button', { name: /steps\.compare\.needs/ }).click()
  await form('compare').waitFor()

  for (let changes = 0; changes < 8 && (await step('check').count()) === 0; changes++) await button(words.undo).click()
  await step('check').waitFor()
  await step('approval').waitFor({ state: 'detached' })
  await page.getByText(words.fine).waitFor()
  await button(words.redo).click()
  await step('compare').waitFor()
  await button(words.undo).click()
  await step('check').waitFor()
  await fine()
})

test('steps are connected with the pointer, and circles are refused with their path', async () => {
  await open(`/jobs/${job}/workflow`)
  await step('orders').waitFor()
  await editor().waitFor()
  const drag = async (from: string, to: string) => {
    await step(from).hover()
    const handle = (await step(from).locator('.handle').boundingBox())!
    const target = (await step(to).boundingBox())!
    await page.mouse.move(handle.x + handle.width / 2, handle.y + handle.height / 2)
    await page.mouse.down()
    await page.mouse.move(target.x + target.width / 2, target.y + target.height / 2, { steps: 6 })
  }
  await drag('report', 'orders')
  await page.getByText(words.circle('orders → check → report → orders')).waitFor()
  await page.mouse.up()
  expect(await edge('report', 'orders').count()).toBe(0)
  await drag('orders', 'report')
  await page.mouse.up()
  await edge('orders', 'report').waitFor({ state: 'attached' })
  await expect.poll(written).toContain('- orders')

  // A connection is selected, a step inserted into it, and another one removed.
  await edge('check', 'report').click({ force: true })
  await page.getByText(words.edge('check', 'report')).waitFor()
  await button(words.add).click()
  await choose(words.add, t.steps.kinds.wait)
  await edge('check', 'wait').waitFor({ state: 'attached' })
  await edge('wait', 'report').waitFor({ state: 'attached' })
  await step('report').click()
  await button(words.disconnect('orders')).click()
  await edge('orders', 'report').waitFor({ state: 'detached' })
  await page.getByLabel(words.branch('wait'), { exact: true }).selectOption('else')
  await expect.poll(written).toContain('else: true')
  await fine()
})

test('everything is done with the keyboard', async () => {
  await open(`/jobs/${job}/workflow`)
  await editor().waitFor()
  await step('orders').focus()
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('a')
  await choose(words.add, t.steps.kinds.job)
  await form('job').waitFor()
  await page.keyboard.type('tidy')
  await page.keyboard.press('Enter')
  await step('tidy').waitFor()
  await edge('check', 'tidy').waitFor({ state: 'attached' })
  await expect.poll(focused).toBe('name')
  await step('report').focus()
  await page.keyboard.press('c')
  const target = page.getByRole('combobox', { name: words.connectTo('report') })
  await target.fill('orders')
  await page.getByText(words.circle('orders → check → report → orders')).waitFor()
  await target.fill('tidy')
  await page.keyboard.press('Enter')
  await edge('report', 'tidy').waitFor({ state: 'attached' })
  await step('tidy').focus()
  await page.keyboard.press('Delete')
  await step('tidy').waitFor({ state: 'detached' })
  await page.keyboard.press('Control+z')
  await step('tidy').waitFor()
  await page.keyboard.press('Control+Shift+z')
  await step('tidy').waitFor({ state: 'detached' })

  // The last step is removed: the drawing keeps the focus, and it is undone from there.
  await step('report').focus()
  await page.keyboard.press('Delete')
  await step('report').waitFor({ state: 'detached' })
  await page.keyboard.press('Control+z')
  await step('report').waitFor()
  await step('orders').focus()
  await page.keyboard.press('F2')
  await expect.poll(focused).toBe('name')
  await page.keyboard.type('all_orders')
  await page.keyboard.press('Enter')
  await step('all_orders').waitFor()
  await edge('all_orders', 'check').waitFor({ state: 'attached' })
  await expect.poll(focused).toBe('name')
})

test('expressions are completed with inputs, steps before and outputs of the last run', async () => {
  const { run } = await call('POST', `/v1/jobs/sales/trigger`, {})
  await expect.poll(async () => (await call('GET', `/v1/runs/${run}`)).state, { timeout: 30_000 }).toBe('succeeded')
  await open(`/jobs/${job}/workflow`)
  await editor().waitFor()
  await step('report').click()
  const condition = form('report').getByRole('combobox', { name: t.steps.condition, exact: true })
  await condition.pressSequentially('inputs.re')
  await page.getByRole('option', { name: 'region' }).waitFor()
  await fine()
  await page.keyboard.press('Enter')
  await condition.pressSequentially(" == 'x' && steps.ch")
  await page.getByRole('option', { name: 'check' }).click()
  await condition.pressSequentially('.output.')
  await page.getByRole('option', { name: 'message "done"' }).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect.poll(written).toContain("if: inputs.region == 'x' && steps.check.output.message")

  // The same in the text.
  await editor().getByText('name: report').click()
  await page.keyboard.press('End')
  await page.keyboard.type('\ntimeout_ms: 5\nwith: { day: "${{ run.bus')
  await page.locator('.cm-tooltip-autocomplete').getByText('business_date').waitFor()
  await fine()
  await page.keyboard.press('Escape')
})

test('a save shows the changes, and both sides if another user saved meanwhile', async () => {
  await open(`/jobs/${job}/workflow`)
  await editor().waitFor()
  await step('report').click()
  await button(words.add).click()
  await choose(words.add, t.steps.kinds.wait)
  await form('wait').waitFor()
  await button(words.save).click()
  const dialog = page.getByRole('dialog', { name: words.saveTitle })
  await dialog.getByText(words.added).waitFor()
  await dialog.getByText('wait_ms: 60000').waitFor()
  await dialog.getByLabel(words.remark).fill('waits at the end')
  await fine()

  const body = { ...SALES, steps: [...SALES.steps, { name: 'theirs', wait_ms: 7 }] }
  await put('sales', { name: 'Daily sales', workflow: body })
  troubles.length = 0
  await dialog.getByRole('button', { name: words.saveAction }).click()
  await dialog.getByText(words.conflict).waitFor()
  await dialog.getByText('name: theirs').first().waitFor()
  await dialog.getByText(words.removed).waitFor()
  expect(await faults(page)).toEqual([])
  // The browser notes the answer that there is another version.
  troubles.length = 0
  await dialog.getByRole('button', { name: words.takeTheirs }).click()
  await expect.poll(written).toContain('name: theirs')
  await button(words.undo).click()
  await step('wait').waitFor()
  await button(words.save).click()
  await dialog.getByLabel(words.remark).fill('waits at the end')
  await dialog.getByRole('button', { name: words.saveAction }).click()
  await page.getByText(words.saved).waitFor()
  await expect.poll(() => page.getByText(words.unsaved).count()).toBe(0)
  const versions = await call('GET', `/v1/jobs/sales/versions`)
  expect(versions[0].remark).toBe('waits at the end')
  await fine()
})

test('of many steps there is a table first, which is sorted, searched and edited', async () => {
  const { id } = await call('GET', '/v1/jobs/many')
  await open(`/jobs/${id}/workflow`)
  await page.getByRole('table', { name: t.steps.title }).waitFor()
  await editor().waitFor()
  await page.getByTitle(words.sort(t.steps.columns.step)).click()
  await page.getByTitle(words.sort(t.steps.columns.step)).click()
  await page
    .getByRole('row')
    .nth(1)
    .getByText(`s${MANY - 1}`)
    .waitFor()
  await page.getByRole('searchbox', { name: t.steps.search }).fill('s77')
  await button('s77').click()
  await form('s77').getByLabel(words.name, { exact: true }).fill('lucky')
  await page.keyboard.press('Enter')

  // Neither has the old name any more: not the step, and not the one that needs it.
  await page.getByText(t.steps.edit.nothing).waitFor()
  await page.getByRole('searchbox', { name: t.steps.search }).fill('lucky')
  await button('lucky').waitFor()
  await button('s78').waitFor()
  await expect.poll(() => page.getByRole('row').filter({ hasText: 'lucky' }).count()).toBe(2)
  await expect.poll(written).toContain('name: lucky')
  await fine()
})

test('a new workflow is written in the form of a job', async () => {
  await open('/jobs/new')
  await page.getByLabel(t.fields.name.label, { exact: true }).fill('Written here')
  await page.getByText(t.form.kinds.workflow, { exact: true }).click()
  await editor().waitFor()
  await page.getByText(words.problems(1)).waitFor()
  await page.getByRole('button', { name: /steps\.first\.job/ }).click()
  await expect.poll(() => editor().evaluate((element) => element.getRootNode() instanceof ShadowRoot)).toBe(true)
  await fine()

  // The cursor is at the value: it is replaced to the end of the line.
  await page.keyboard.press('Shift+End')
  await page.keyboard.type('quick')
  await page.getByText(words.fine).waitFor()
  await button(t.form.create).click()
  await page.getByRole('heading', { level: 1, name: 'Written here' }).waitFor()
  await page.getByRole('link', { name: t.job.tabs.workflow, exact: true }).click()
  await step('first').waitFor()
  await fine()

  // What cannot be read is not saved, and drawing and form wait for it.
  await editor().click()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('nonsense: [')
  await page.getByText(words.unread).waitFor()
  await expect.poll(() => button(words.save).isDisabled()).toBe(true)
  await expect.poll(() => button(words.add).isDisabled()).toBe(true)
})

const MODES: [string, Words, object, boolean][] = [
  ['in Chinese, on a phone', zh, { locale: 'zh-CN', viewport: { width: 375, height: 812 } }, true],
  ['in Chinese, in the dark', zh, { locale: 'zh-CN', colorScheme: 'dark' }, false],
  ['in English, on a phone in the dark', en, { locale: 'en-GB', colorScheme: 'dark', viewport: { width: 375, height: 812 } }, true],
]

describe.each(MODES)('%s', (_, words, options, phone) => {
  test('the editor holds, and is read-only on a phone', async () => {
    const { page, context, troubles } = await watchedPage(browser, options)
    await signIn(page, centre)
    await page.goto(`${centre.address}/jobs/${job}/workflow`)
    await page.getByRole('textbox', { name: words.steps.edit.label }).waitFor()
    await page.locator('[data-step="0"]').click()
    await page.getByRole('region', { name: words.steps.panel('orders') }).waitFor()
    await page.getByText(words.steps.edit.fine).waitFor()
    expect(await page.getByRole('button', { name: words.steps.edit.add }).count()).toBe(phone ? 0 : 1)
    expect(await page.getByText(words.steps.edit.narrow).count()).toBe(phone ? 1 : 0)
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0)
    expect(await faults(page)).toEqual([])
    expect(troubles).toEqual([])
    await context.close()
  })
})
