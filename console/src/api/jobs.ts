import { answer, get, post, put, query, remove } from './call'
import type { Page } from './page'
import type {
  Bulk,
  BulkAction,
  BulkResult,
  CheckedWorkflow,
  JobBody,
  JobChange,
  JobView,
  JobWorkdays,
  KeyedJob,
  Miss,
  Preview,
  PutResult,
  Schedule,
  ScriptBody,
  ScriptVersion,
  WorkflowCheck,
  WorkflowGrid,
  WorkflowVersion,
} from './wire'

export interface JobFilter {
  app?: string
  enabled?: string
  text?: string
  tag?: string
  workflow?: string
  handler?: string
  author?: string
  sort?: string
}

/** Rows of one page of a list; the largest that the centre gives. */
export const PAGE = 200

const path = (id: number) => `/v1/jobs/id:${id}`
const byKey = (key: string) => `/v1/jobs/${encodeURIComponent(key)}`

export const jobs = (filter: JobFilter, after?: string, signal?: AbortSignal, limit = PAGE) =>
  get<Page<JobView>>(`/v1/jobs${query({ ...filter, after, limit })}`, signal)

/** A job and the tag of this version of it. */
export async function job(id: number): Promise<{ job: JobView; etag: string | null }> {
  const { value, headers } = await answer('GET', path(id), {})
  return { job: value as JobView, etag: headers.get('etag') }
}

/** Creates a job without a key. */
export const create = (body: JobBody) => post<JobView>('/v1/jobs', body)

/** Creates a job with that key; one that has it already is left as it is, and the call refused as outdated. */
export const createAs = (body: JobBody, key: string) => put<JobView>(byKey(key), body, { 'If-None-Match': '*' })

/** Makes the jobs with these keys be so, with a result for each. */
export const putAll = (jobs: KeyedJob[]) => put<PutResult[]>('/v1/jobs', { jobs })

export const edit = (id: number, body: JobBody, etag: string | null) =>
  put<JobView>(path(id), body, etag === null ? undefined : { 'If-Match': etag })

export const destroy = (id: number) => remove(path(id))
export const start = (id: number) => post<JobView>(`${path(id)}/start`)
export const stop = (id: number) => post<JobView>(`${path(id)}/stop`)
export const trigger = (id: number, param?: string, address?: string) =>
  post<{ run: number }>(`${path(id)}/trigger`, { param, address: address || undefined }, { 'Idempotency-Key': crypto.randomUUID() })

export const fires = (id: number, count: number) => get<Preview>(`${path(id)}/fires${query({ count })}`)
export const misses = (id: number, after?: string) => get<Page<Miss>>(`${path(id)}/misses${query({ after, limit: 20 })}`)
export const changes = (id: number, after?: string) => get<Page<JobChange>>(`${path(id)}/changes${query({ after })}`)
export const scripts = (id: number) => get<ScriptVersion[]>(`${path(id)}/script`)
export const saveScript = (id: number, body: ScriptBody) => put<void>(`${path(id)}/script`, body)
/** Does the same with many jobs: those listed, or all that match a filter. */
export const bulk = (which: Pick<Bulk, 'jobs' | 'filter'>, action: BulkAction, app?: string) =>
  post<BulkResult[]>('/v1/jobs/bulk', { ...which, action, app })

export const preview = (schedule: Schedule, workdays: JobWorkdays | undefined, count: number) =>
  post<Preview>('/v1/schedules/preview', { schedule, workdays, count })

/** The last runs of a workflow, step by step; those before a run. */
export const grid = (id: number, before?: number) => get<WorkflowGrid>(`${path(id)}/grid${query({ before })}`)

/** Versions of a workflow, the newest first, without their definitions. */
export const versions = (id: number) => get<WorkflowVersion[]>(`${path(id)}/versions`)
export const version = (id: number, version: number) => get<WorkflowVersion>(`${path(id)}/versions/${version}`)
/** Saves an earlier definition again, unless the job was changed since it was read. */
export const restoreVersion = (id: number, version: number, revision: number) =>
  post<JobView>(`${path(id)}/versions/${version}/restore`, {}, { 'If-Match': `"${revision}"` })

/** Checks a workflow, and gives its text and its definition. */
export const checkWorkflow = (body: WorkflowCheck) => post<CheckedWorkflow>('/v1/workflows/check', body)

/** What people wrote about a job, without what the centre says of it. */
export function bodyOf(view: JobView): JobBody {
  const {
    id,
    key,
    schedule_text,
    next_fire_at,
    last_fire_at,
    created_at,
    updated_at,
    revision,
    fires,
    problem,
    overridden,
    rights,
    ...body
  } = view
  return body
}
