import { get, query } from './call'
import type { Page } from './page'
import type { AlertView } from './wire'

export interface AlertFilter {
  app?: string
  job?: string
  kind?: string
  state?: string
  from?: string
  until?: string
}

export const alerts = (filter: AlertFilter, after?: string, signal?: AbortSignal, limit = 100) =>
  get<Page<AlertView>>(`/v1/alerts${query({ ...filter, after, limit })}`, signal)
