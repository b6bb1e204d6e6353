import { asProblem, get, post, query } from './call'
import type { Page } from './page'
import type { LogPage, Resume, Resumed, RunView, StepView, WorkflowBody, WorkflowRunView } from './wire'

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
/** The definition that a workflow run uses. */
export const workflow = (id: number) => get<WorkflowBody>(`/v1/runs/${id}/workflow`)

const stepPath = (id: number, step: string) => `/v1/runs/${id}/steps/${encodeURIComponent(step)}`
export const step = (id: number, name: string) => get<StepView>(stepPath(id, name))
export const decide = (id: number, step: string, approved: boolean, remark: string) =>
  post<void>(`${stepPath(id, step)}/decide`, { approved, remark })
export const pause = (id: number, paused: boolean) => post<void>(`/v1/runs/${id}/${paused ? 'pause' : 'continue'}`)
export const resume = (id: number, asked: Partial<Resume>) => post<Resumed>(`/v1/runs/${id}/resume`, asked)

/** How runs of a job are named in filters. */
export const byJob = (id: number) => `id:${id}`
