// Jobs as a file, to be kept or taken elsewhere.

import { bodyOf } from '../api/jobs'
import type { JobBody, JobView } from '../api/wire'

export interface Entry {
  key?: string
  job: JobBody
}

/** What a file of jobs says at its top, so that another file is not taken for one. */
const KIND = 'tickwright/jobs'

export const exported = (jobs: JobView[]): string =>
  JSON.stringify({ kind: KIND, jobs: jobs.map((job): Entry => ({ key: job.key, job: bodyOf(job) })) }, null, 2)

/** The jobs in a file, or undefined if it is not one of ours. */
export function parsed(text: string): Entry[] | undefined {
  try {
    const file = JSON.parse(text) as { kind?: string; jobs?: Entry[] }
    if (file.kind !== KIND || !Array.isArray(file.jobs)) return undefined
    return file.jobs.every((entry) => typeof entry.job?.name === 'string') ? file.jobs : undefined
  } catch {
    return undefined
  }
}

/** Hands a text to the browser as a file to keep. */
export function save(content: string, name = 'jobs.json'): void {
  const url = URL.createObjectURL(new Blob([content], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
