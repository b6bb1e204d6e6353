// A job while somebody fills in its form.

import type { JobBody, JobView } from '../api/wire'
import { bodyOf } from '../api/jobs'

export function emptyDraft(app: string): JobBody {
  return {
    app,
    name: '',
    schedule: { kind: 'cron', expression: '0 0/5 * * * ?', dialect: 'quartz' },
    handler: '',
    param: '',
    misfire: { kind: 'skip' },
    overlap: 'allow',
    retry: { count: 0, backoff: { kind: 'fixed', delay_ms: 0 } },
    delivery: 'probe',
    route: 'first',
    block: 'serial',
    children: [],
    children_mode: 'once',
    alert: false,
    alert_to: [],
    author: '',
    tags: [],
  }
}

export const draftOf = (job: JobView): JobBody => ({ ...emptyDraft(job.app), ...bodyOf(job) })

/** Words separated with commas, of either width. */
export const words = (text: string) =>
  text
    .split(/[,，]/)
    .map((word) => word.trim())
    .filter((word) => word !== '')

/** The value of a `datetime-local` input for an instant, on the browser's clocks, and back. */
export function toLocalInput(at: string | undefined): string {
  const moment = new Date(at ?? '')
  // An address may say anything.
  if (Number.isNaN(moment.getTime())) return ''
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export const fromLocalInput = (value: string): string | undefined => (value === '' ? undefined : new Date(value).toISOString())
