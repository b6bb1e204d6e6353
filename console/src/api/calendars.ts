import { get, post, remove } from './call'
import type { WorkCalendarImport, WorkCalendarImported, WorkCalendarView } from './wire'

const path = (name: string) => `/v1/work-calendars/${encodeURIComponent(name)}`

/** All work calendars, without their days. */
export const calendars = () => get<WorkCalendarView[]>('/v1/work-calendars')
export const calendar = (name: string) => get<WorkCalendarView>(path(name))
export const destroy = (name: string) => remove(path(name))

/** Imports a file into a new or existing calendar. */
export const importInto = (name: string, body: WorkCalendarImport) => post<WorkCalendarImported>(`${path(name)}/import`, body)
