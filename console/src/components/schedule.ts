// Schedules as the console shows them.

import type { JobView, Preview, RunView, Schedule } from '../api/wire'
import { session } from '../session.svelte'

/** The cron expression; empty for other schedules. */
export const expressionOf = (schedule: Schedule) => (schedule.kind === 'cron' ? schedule.expression : '')

/** The rules of a timetable, from a text with one per line. */
export const rulesOf = (typed: string) =>
  typed
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line)

/** Whether the schedule follows the clocks of a zone, so that a work calendar may keep or move its times. */
export const byClock = (schedule: Schedule) => schedule.kind === 'cron' || schedule.kind === 'timetable'

/** The zone whose clocks a job follows. */
export const zoneOf = ({ schedule }: JobView) =>
  (schedule.kind === 'cron' || schedule.kind === 'timetable' ? schedule.zone : undefined) ?? session.me?.zone

export const zoneOfRun = (run: RunView) => run.job_zone ?? session.me?.zone

/** What a schedule means. Its zone stands at the end of the centre's words, and is left out where it goes without saying. */
export function withoutZone(words: string, zone: string | undefined): string {
  for (const end of [` (${zone})`, `（${zone}）`]) if (words.endsWith(end)) return words.slice(0, -end.length)
  return words
}

export const inReadersWords = (job: JobView) => withoutZone(job.schedule_text, session.me?.zone)
/** For where the zone stands beside the words. */
export const previewWords = (preview: Preview) => withoutZone(preview.schedule_text, preview.zone)
