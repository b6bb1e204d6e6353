// The machine's Chromium, and what every page has to keep: no script of others, no broken policy, nothing that axe finds
// serious.

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Where Chromium is, or undefined. */
export function browserPath() {
  return [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => path && existsSync(path))
}

export const launch = () => chromium.launch({ executablePath: browserPath(), args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })

/** A page that remembers whatever went wrong in it. */
export async function watchedPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: 'Europe/Berlin', ...options })
  await context.addInitScript(() => {
    window.violations = []
    document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`))
  })
  const page = await context.newPage()
  const troubles = []
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // A refused sign-in is an answer we ask for.
    if (message.type() === 'error' && !message.text().includes('status of 401')) troubles.push(`console: ${message.text()}`)
  })
  page.on('dialog', async (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  return { page, context, troubles }
}

/** What axe finds serious or worse on a page, and what its policy refused. */
export async function faults(page) {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`)
  const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  const refused = await page.evaluate(() => window.violations)
  return [...serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`), ...refused]
}
