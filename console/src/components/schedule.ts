// Schedules as the console shows them.

import type { JobView, Preview, Schedule } from '../api/wire'
import { session } from '../session.svelte'
import { text } from '../text/words.svelte'

/** What somebody typed, for schedules that are typed. */
export const expressionOf = (schedule: Schedule) => (schedule.kind === 'cron' ? schedule.expression : '')

/** The zone whose clocks a job follows. */
export const zoneOf = (job: JobView) => (job.schedule.kind === 'cron' ? job.schedule.zone : undefined) ?? session.me?.zone

export const inReadersWords = (job: JobView) => (text.language === 'zh' ? job.schedule_chinese : job.schedule_english)
export const previewWords = (preview: Preview) => (text.language === 'zh' ? preview.chinese : preview.english)
