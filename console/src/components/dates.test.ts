import { expect, test } from 'vitest'

import { dateIn, daysOf } from './dates'

const run = (id: number, day: string, state: 'succeeded' | 'failed' | 'running' | 'cancelled') => ({
  id,
  state,
  scheduled_at: `${day}T16:30:00Z`,
})

test('a time belongs to its date in the zone', () => {
  expect(dateIn('2026-06-20T16:30:00Z', 'Asia/Shanghai')).toBe('2026-06-21')
  expect(dateIn('2026-06-20T16:30:00Z', 'UTC')).toBe('2026-06-20')
})

test('each day has the state of the newest runs of its scheduled times', () => {
  const runs = [
    run(1, '2026-06-01', 'failed'),
    run(9, '2026-06-01', 'succeeded'),
    run(2, '2026-06-02', 'failed'),
    run(3, '2026-06-03', 'running'),
    run(4, '2026-06-05', 'succeeded'),
    { id: 5, state: 'succeeded' as const, scheduled_at: null },
  ]
  const planned = ['2026-06-01T16:30:00Z', '2026-06-04T16:30:00Z', '2026-06-05T16:30:00Z', '2026-06-05T17:30:00Z']
  const days = daysOf(2026, 6, '2026-06-20', 'UTC', runs, planned)
  expect(days).toHaveLength(30)
  expect(days.slice(0, 6).map((day) => day!.state)).toEqual(['good', 'bad', 'open', 'missing', 'missing', undefined])
  expect(days[19]!.later).toBe(false)
  expect(days[20]!.later).toBe(true)
})

test('weeks begin on Monday', () => {
  expect(daysOf(2026, 8, '2026-08-01', 'UTC', [], []).findIndex((day) => day !== undefined)).toBe(5)
})
