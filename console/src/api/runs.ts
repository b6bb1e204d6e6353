import { asProblem, get, post, query } from './call'
import type { Page } from './page'
import type { LogPage, RunView, WorkflowRunView } from './wire'

export interface RunFilter {
  app?: string
  job?: string
  state?: string
  from?: string
  until?: string
}

export const runs = (filter: RunFilter, after?: string, signal?: AbortSignal, limit = 100) =>
  get<Page<RunView>>(`/v1/runs${query({ ...filter, after, limit })}`, signal)
export const run = (id: number) => get<RunView>(`/v1/runs/${id}`)
export const log = (id: number, from: number) => get<LogPage>(`/v1/runs/${id}/log${query({ from })}`)
export const liveLogPath = (id: number, from: number) => `/v1/runs/${id}/log/live${query({ from })}`
export const downloadPath = (id: number) => `/v1/runs/${id}/log/download`
export const kill = (id: number, force: boolean) => post<void>(`/v1/runs/${id}/kill`, { force })
export const again = (id: number) => post<{ run: number }>(`/v1/runs/${id}/again`)

/** The steps of a workflow run; undefined if the run is none, or has not begun. */
export async function steps(id: number): Promise<WorkflowRunView | undefined> {
  try {
    return await get<WorkflowRunView>(`/v1/runs/${id}/steps`)
  } catch (error) {
    if (asProblem(error).code === 'conflict') return undefined
    throw error
  }
}
export const decide = (id: number, step: string, approved: boolean) =>
  post<void>(`/v1/runs/${id}/steps/${encodeURIComponent(step)}/decide`, { approved })
export const pause = (id: number, paused: boolean) => post<void>(`/v1/runs/${id}/${paused ? 'pause' : 'continue'}`)

/** How runs of a job are named in filters. */
export const byJob = (id: number) => `id:${id}`
