import { get, post, query } from './call'
import type { Page } from './page'
import type { BackfillBody, BackfillPlan, BackfillStarted, BackfillTime, BackfillView, InstantState } from './wire'

const of = (job: number) => `/v1/jobs/id:${job}/backfills`

/** What a backfill would run; nothing is started. */
export const plan = async (job: number, body: BackfillBody): Promise<BackfillPlan | undefined> =>
  (await post<BackfillStarted>(of(job), { ...body, dry_run: true })).plan

export const start = (job: number, body: BackfillBody) => post<BackfillStarted>(of(job), body, { 'Idempotency-Key': crypto.randomUUID() })

export const backfills = (job: number, after?: string, limit = 20) =>
  get<Page<BackfillView>>(`/v1/backfills${query({ job: `id:${job}`, after, limit })}`)

export const times = (id: number, state: InstantState, limit = 50) =>
  get<Page<BackfillTime>>(`/v1/backfills/${id}/times${query({ state, limit })}`)

export type BackfillChange = 'pause' | 'continue' | 'cancel' | 'retry'

export const change = (id: number, change: BackfillChange) => post<BackfillView>(`/v1/backfills/${id}/${change}`)
