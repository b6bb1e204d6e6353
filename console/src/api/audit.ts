import { get, query } from './call'
import type { Page } from './page'
import type { AuditView } from './wire'

export interface AuditFilter {
  principal?: string
  action?: string
  object?: string
}

export const audit = (filter: AuditFilter, after?: string, signal?: AbortSignal) =>
  get<Page<AuditView>>(`/v1/audit${query({ ...filter, after, limit: 100 })}`, signal)
