// The machine's Chromium, and what every page has to keep: no script of others, no broken policy, nothing that axe finds
// serious.

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Where Chromium is, or undefined. */
export function browserPath() {
  return [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
    (path) => path && existsSync(path),
  )
}

export const launch = () => chromium.launch({ executablePath: browserPath(), args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })

/** So long an answer may take to be seen. */
const PATIENCE_MS = 30_000

/** A page that remembers whatever went wrong in it. */
export async function watchedPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: 'Europe/Berlin', ...options })
  await context.addInitScript(() => {
    window.violations = []
    document.addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(
        `${event.violatedDirective} ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}:${event.columnNumber} ${event.sample}`,
      ),
    )
  })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const troubles = []
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // A refused sign-in is an answer we ask for, and what the policy refuses is counted by `faults`.
    const expected = /status of 401|Content Security Policy/
    if (message.type() === 'error' && !expected.test(message.text())) troubles.push(`console: ${message.text()}`)
  })
  page.on('dialog', async (dialog) => {
    // The question about unsaved changes: a test leaves the page all the same.
    if (dialog.type() === 'beforeunload') return dialog.accept()
    troubles.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  return { page, context, troubles }
}

/** Signs in as the administrator, whatever the page's language. */
export async function signIn(page, centre) {
  await page.goto(`${centre.address}/sign-in`)
  await page.locator('input[name=username]').fill(centre.user)
  await page.locator('#password').fill(centre.password)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation').first().waitFor()
}

/** Waits for what comes in or goes out softly: half-way it is pale, and axe would say so. What spins for ever does not count. */
function settled() {
  const ends = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity)
  return Promise.allSettled(ends.map(({ finished }) => finished)).then(() => undefined)
}

/** What the page's policy refused, and what axe finds serious or worse. Axe tries styles of its own, so that only what was
 * refused before counts. */
export async function faults(page) {
  await page.evaluate(settled)
  const refused = await page.evaluate(() => window.violations)
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`)
  await page.evaluate(() => (window.violations = []))
  const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return [...refused, ...serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)]
}
