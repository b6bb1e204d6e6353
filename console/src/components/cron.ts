// Cron expressions as fields, for the editor. What they mean is told by the centre, never guessed here.

import type { CronDialect } from '../api/wire'

export type FieldName = 'second' | 'minute' | 'hour' | 'day' | 'month' | 'weekday' | 'year'

const QUARTZ: FieldName[] = ['second', 'minute', 'hour', 'day', 'month', 'weekday', 'year']
const UNIX: FieldName[] = ['minute', 'hour', 'day', 'month', 'weekday']

/** The names of an expression's fields; the year is shown only where it is written. */
export function names(dialect: CronDialect, expression: string): FieldName[] {
  if (dialect === 'unix') return UNIX
  return split(expression).length > 6 ? QUARTZ : QUARTZ.slice(0, 6)
}

export const split = (expression: string) =>
  expression
    .trim()
    .split(/\s+/)
    .filter((part) => part !== '')

/** The expression with one field changed; fields that are missing before it become `*`. */
export function withField(expression: string, index: number, value: string): string {
  const parts = split(expression)
  while (parts.length < index) parts.push('*')
  parts[index] = value.replace(/\s+/g, '') || '*'
  return parts.join(' ')
}

/** The same times in the other dialect, where the fields are alike; otherwise the expression as it is. */
export function translated(expression: string, to: CronDialect): string {
  const parts = split(expression)
  // Weekdays by number mean another day there, so that only names and "every day" can be taken over.
  const portable = (weekday: string | undefined) => weekday === undefined || !/\d/.test(weekday)
  if (to === 'quartz' && parts.length === 5 && portable(parts[4])) {
    const [minute, hour, day, month, weekday] = parts as [string, string, string, string, string]
    return weekday === '*' ? `0 ${minute} ${hour} ${day} ${month} ?` : `0 ${minute} ${hour} ${day === '*' ? '?' : day} ${month} ${weekday}`
  }
  if (to === 'unix' && parts.length === 6 && parts[0] === '0' && portable(parts[5]))
    return parts
      .slice(1)
      .map((part) => (part === '?' ? '*' : part))
      .join(' ')
  return expression
}

export const PRESETS = {
  minute: '0 * * * * ?',
  five: '0 0/5 * * * ?',
  hourly: '0 0 * * * ?',
  daily: '0 0 2 * * ?',
  weekdays: '0 0 9 ? * MON-FRI',
  monday: '0 0 8 ? * MON',
  first: '0 0 0 1 * ?',
  last: '0 0 0 L * ?',
} as const
