import { get, query } from './call'
import type { About, Calendar, NodeView, Overview, SettingView, Statistics } from './wire'

const span = (from: number, until: number, stepMs: number) => ({
  from: new Date(from).toISOString(),
  until: new Date(until).toISOString(),
  step_ms: stepMs,
})

export const overview = () => get<Overview>('/v1/overview')
export const statistics = (from: number, until: number, stepMs: number) =>
  get<Statistics>(`/v1/statistics${query(span(from, until, stepMs))}`)
export const calendar = (from: number, until: number, stepMs: number) => get<Calendar>(`/v1/calendar${query(span(from, until, stepMs))}`)
export const nodes = () => get<NodeView[]>('/v1/nodes')
export const settings = () => get<SettingView[]>('/v1/settings')
export const about = () => get<About>('/v1/about')
