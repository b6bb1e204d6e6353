// The days of a month with what happened to a job's scheduled times on them.

import type { RunState } from '../api/wire'
import { isOver, toneOf } from './tone'

export type DayState = 'good' | 'bad' | 'open' | 'missing'

export interface Day {
  /** For example `2026-06-21`. */
  date: string
  day: number
  state?: DayState
  /** Whether it is after today. */
  later: boolean
}

/** The date of a time in a zone, for example `2026-06-21`. */
export function dateIn(at: string | number, zone: string | undefined): string {
  // Sweden writes dates as ISO does.
  return new Date(at).toLocaleDateString('sv-SE', { timeZone: zone })
}

interface Run {
  id: number
  scheduled_at: string | null
  state: RunState
}

/**
 * Days of a month, with empty places before the first one, so that weeks begin on Monday. The newest run of each scheduled time
 * counts. A day is bad if one of them failed, open if one goes on, and missing if a scheduled time had no run.
 */
export function daysOf(
  year: number,
  month: number,
  today: string,
  zone: string | undefined,
  runs: Run[],
  planned: string[],
): (Day | undefined)[] {
  const newest = new Map<string, Run>()
  for (const run of runs) {
    const known = run.scheduled_at === null ? undefined : newest.get(run.scheduled_at)
    if (run.scheduled_at !== null && (known === undefined || known.id < run.id)) newest.set(run.scheduled_at, run)
  }
  const states = new Map<string, DayState>()
  const RANK: DayState[] = ['good', 'missing', 'open', 'bad']
  const note = (date: string, state: DayState) => {
    const known = states.get(date)
    if (known === undefined || RANK.indexOf(known) < RANK.indexOf(state)) states.set(date, state)
  }
  for (const [at, { state }] of newest) note(dateIn(at, zone), !isOver(state) ? 'open' : toneOf(state) === 'good' ? 'good' : 'bad')
  for (const at of planned) if (!newest.has(at)) note(dateIn(at, zone), 'missing')
  const before = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7
  const count = new Date(Date.UTC(year, month, 0)).getUTCDate()
  const days = Array.from({ length: count }, (_, index): Day => {
    const date = `${year}-${String(month).padStart(2, '0')}-${String(index + 1).padStart(2, '0')}`
    return { date, day: index + 1, state: states.get(date), later: date > today }
  })
  return [...Array.from({ length: before }, () => undefined), ...days]
}
