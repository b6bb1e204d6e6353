// Texts that would do harm if anything ever took them for more than text, in every field that takes a text, by every way that
// leads to one; then every page, in both languages. Nothing of them may run, nothing may be asked for because of them, and
// each is shown as it was written.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { launch, signIn, watchedPage } from './browser.js'
import { api, startCentre } from './centre.js'
import { startExecutor } from './executor.js'

/** Short, since some fields are. */
const TEXTS = [
  `<img src=/pwned onerror=pwned=1>'"&lt;`,
  '<svg onload=pwned=1><animate onbegin=pwned=1>',
  '<details open ontoggle=pwned=1>x</details>',
  '</textarea></title><script>pwned=1</script>',
  '"><a href=javascript:pwned=1 onfocus=pwned=1>',
  '${7*7} #{7*7} {{7*7}} <%=7*7%> <#assign x=7*7>',
  '\u202Egnp.exe\u202C \u001b[31mred \u001b]8;;//pwned\u0007',
  'first\r\nSet-Cookie: pwned=1\r\n\r\n<script>x()</script>',
]
/** All of them, where there is room. */
const ALL = TEXTS.join('\n')

let browser: Browser
let centre: Awaited<ReturnType<typeof startCentre>>
let executor: Awaited<ReturnType<typeof startExecutor>>
/** What is there: jobs with scripts, jobs with handlers, and runs. */
const scripts: number[] = []
const handlers: number[] = []
const runs: number[] = []

beforeAll(async () => {
  centre = await startCentre()
  await writeByV1()
  await writeAsExecutor()
  await writeAsOldScripts()
  browser = await launch()
})
afterAll(async () => {
  await browser.close()
  await executor.end()
  await centre.end()
})

async function writeByV1() {
  const call = await api(centre)
  await call('PUT', '/v1/apps/hostile', { title: TEXTS[0] })
  const { token } = await call('POST', '/v1/apps/hostile/tokens')
  executor = await startExecutor(centre, 'hostile', token, { log: ALL, result: ALL, refusal: ALL })
  for (const [index, text] of TEXTS.entries()) {
    await call('PUT', `/v1/apps/titled-${index}`, { title: text })
    const texts = { app: 'hostile', name: text, schedule: { kind: 'none' }, author: text, tags: [text], param: ALL, alert: true }
    // A name by which programs call a job has no control characters.
    const key = encodeURIComponent(text.replaceAll(/\p{Cc}/gu, ''))
    const script = { language: 'shell', source: ALL, remark: text }
    const withScript = await call('PUT', `/v1/jobs/${key}`, { ...texts, script })
    const withHandler = await call('POST', '/v1/jobs', { ...texts, handler: text, alert_to: [text] })
    expect(await call('GET', `/v1/jobs/id:${withHandler.id}`)).toMatchObject({ name: text, author: text, handler: text, param: ALL })
    await call('PUT', `/v1/jobs/id:${withScript.id}/script`, { language: 'shell', source: `${ALL}\n${text}`, remark: text })
    await call('PUT', `/v1/users/${encodeURIComponent(text)}`, {
      password: 'a good password',
      grants: [{ app: 'hostile', rights: ['view'] }],
    })
    await call('POST', '/v1/keys', { name: text, apps: ['hostile'], rights: ['view'] })
    const { run } = await call('POST', `/v1/jobs/id:${withHandler.id}/trigger`, { param: text })
    scripts.push(withScript.id)
    handlers.push(withHandler.id)
    runs.push(run)
  }
  const refused = await call('POST', '/v1/jobs', { app: 'hostile', name: 'refused', schedule: { kind: 'none' }, handler: 'refused' })
  runs.push((await call('POST', `/v1/jobs/id:${refused.id}/trigger`, {})).run)
}

/** As executors and the programs beside them: what they register, report and manage. */
async function writeAsExecutor() {
  for (const text of TEXTS) {
    for (const registered of [
      { registryGroup: 'EXECUTOR', registryKey: 'hostile', registryValue: `http://127.0.0.1:9/${text}` },
      { registryGroup: 'EXECUTOR', registryKey: text, registryValue: executor.address },
      { registryGroup: text, registryKey: 'hostile', registryValue: executor.address },
    ])
      expect((await executor.tell('/api/registry', registered)).ok).toBe(true)
    await executor.tell('/api/callback', [{ logId: runs[0], logDateTim: 1, handleCode: 500, handleMsg: text }])
    await executor.tell('/api/addJob', {
      jobGroup: 1,
      name: text,
      author: text,
      scheduleType: 'NONE',
      misfireStrategy: 'DO_NOTHING',
      executorRouteStrategy: 'FIRST',
      executorBlockStrategy: 'SERIAL_EXECUTION',
      executorHandler: text,
      executorParam: text,
      glueType: 'BEAN',
    })
  }
}

/** As scripts that were written for XXL-JOB's own pages. */
async function writeAsOldScripts() {
  const form = (path: string, fields: Record<string, string>, cookie = '') =>
    fetch(centre.address + path, { method: 'POST', headers: { Cookie: cookie }, body: new URLSearchParams(fields) })
  const opened = await form('/auth/doLogin', { userName: centre.user, password: centre.password })
  const cookie = opened.headers.get('set-cookie')!.split(';')[0]!
  for (const text of TEXTS) {
    // Nobody of that name may come in; who tried is on record.
    await form('/auth/doLogin', { userName: text, password: text })
    const added = await form(
      '/jobinfo/insert',
      {
        jobGroup: '1',
        jobDesc: text,
        author: text,
        alarmEmail: text,
        scheduleType: 'NONE',
        misfireStrategy: 'DO_NOTHING',
        executorRouteStrategy: 'FIRST',
        executorHandler: text,
        executorParam: ALL,
        executorBlockStrategy: 'SERIAL_EXECUTION',
        glueType: 'GLUE_SHELL',
        glueSource: ALL,
        glueRemark: text,
      },
      cookie,
    )
    const { data: id } = (await added.json()) as { data: string }
    await form('/jobcode/save', { id, glueSource: `${ALL}${text}`, glueRemark: text }, cookie)
    await form('/jobgroup/insert', { appname: 'old-scripts', name: text, addressType: '0', addressList: text }, cookie)
    await form('/user/insert', { username: text, password: 'a good password', role: '0', permission: text }, cookie)
  }
}

describe.each(['en-GB', 'zh-CN'])('in %s', (locale) => {
  let page: Page
  let troubles: string[]
  const foreign: string[] = []

  beforeAll(async () => {
    ;({ page, troubles } = await watchedPage(browser, { locale }))
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (url.origin !== centre.address || url.pathname === '/pwned') foreign.push(request.url())
    })
    await signIn(page, centre)
  })
  afterAll(async () => {
    await page.context().close()
  })

  /** Goes there, and waits until everything has been read. */
  async function visit(path: string) {
    await page.goto(centre.address + path)
    await settled()
  }

  const settled = () => page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('main .bone'))

  /** Texts that have to be on the page, letter by letter; a shadow tree counts as well. */
  async function shows(...texts: string[]) {
    await page.waitForFunction((wanted) => {
      const all = [document.documentElement, ...[...document.querySelectorAll('*')].flatMap(({ shadowRoot }) => shadowRoot ?? [])]
      const fields = [...document.querySelectorAll<HTMLInputElement>('input, textarea')].map((field) => field.value)
      const shown = [...all.map((root) => root.textContent), ...fields].join('\n').replaceAll(/\s+/g, ' ')
      return wanted.every((text) => shown.includes(text.replaceAll(/\s+/g, ' ')))
    }, texts)
  }

  async function harmless() {
    const found = await page.evaluate(() => ({
      ran: 'pwned' in window,
      refused: window.violations,
      elements: document.querySelectorAll(
        'main :is(img, iframe, object, embed, animate, script, [onerror], [onload], [onfocus], [ontoggle])',
      ).length,
      title: document.title,
      cookie: document.cookie,
    }))
    expect(found).toMatchObject({ ran: false, refused: [], elements: 0, cookie: '' })
    expect([...troubles, ...foreign]).toEqual([])
  }

  test('lists show them as they were written', async () => {
    for (const path of ['/', '/jobs', '/runs', '/alerts', '/executors', '/calendars', '/users', '/keys', '/audit', '/settings', '/about']) {
      await visit(path)
      if (['/jobs', '/alerts', '/users', '/keys', '/executors'].includes(path)) await shows(...TEXTS)
      await harmless()
    }
  })

  test('so do jobs, their forms, scripts and histories', async () => {
    for (const [index, text] of TEXTS.entries()) {
      const [script, handler] = [`/jobs/${scripts[index]}`, `/jobs/${handlers[index]}`]
      for (const path of [handler, script, `${script}/edit`, `${script}/script`, `${script}/history`]) {
        await visit(path)
        await shows(text)
        await harmless()
      }
    }
  })

  test('so do runs, with their logs and what executors said', async () => {
    for (const id of runs) {
      await visit(`/runs/${id}`)
      await shows(ALL)
      await harmless()
    }
  })

  test('so do dialogs, and the search', async () => {
    for (const text of TEXTS.slice(0, 5)) {
      await visit(`/jobs?tag=${encodeURIComponent(text)}&text=${encodeURIComponent(text)}`)
      await shows(text)
      await page.keyboard.press('/')
      await page.getByRole('dialog').getByRole('combobox').fill(text)
      await page.getByRole('dialog').getByRole('option').filter({ hasText: text }).first().waitFor()
      await harmless()
      await page.keyboard.press('Escape')
    }
    await visit('/users')
    await page.locator('tbody tr').filter({ hasText: TEXTS[1] }).getByRole('button').first().click()
    await page.getByRole('dialog').waitFor()
    await harmless()
    await page.keyboard.press('Escape')
    for (const path of ['/alerts', '/audit']) {
      await visit(path)
      await page.getByRole('table').getByRole('button').first().click()
      await page.getByRole('dialog').waitFor()
      await harmless()
      await page.keyboard.press('Escape')
    }
  })

  test('an address leads to no script', async () => {
    const nexts = ['javascript:pwned=1', '//pwned.example/', '/\\pwned.example/', ...TEXTS].map(
      (next) => `/sign-in?next=${encodeURIComponent(next)}`,
    )
    const filters = TEXTS.map(encodeURIComponent).map((text) => `/runs?job=${text}&from=${text}&state=${text}`)
    const missing = TEXTS.map(encodeURIComponent).map((text) => `/jobs/${text}`)
    for (const path of [...nexts, ...filters, ...missing, '/jobs/%E0%A4%A']) {
      await visit(path)
      expect(await page.evaluate(() => ['pwned' in window, window.violations, location.origin])).toEqual([false, [], centre.address])
    }
    expect(foreign).toEqual([])
  })
})

declare global {
  interface Window {
    violations: string[]
  }
}
