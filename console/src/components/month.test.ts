import { expect, test } from 'vitest'

import { month } from './month'

test('a month begins under its weekday and counts the fires of each day', () => {
  const grid = month(['2026-06-21T10:00:00+02:00', '2026-06-21T11:00:00+02:00', '2026-06-22T10:00:00+02:00', '2026-07-01T10:00:00+02:00'])!
  expect([grid.year, grid.month]).toEqual([2026, 6])
  // The first of June 2026 is a Monday.
  expect(grid.cells[0]).toEqual({ day: 1, fires: 0, first: false, off: false, holiday: undefined })
  expect(grid.cells).toHaveLength(30)
  expect(grid.cells[20]).toEqual({ day: 21, fires: 2, first: true, off: false, holiday: undefined })
  expect(grid.cells[21]?.fires).toBe(1)
})

test('days that a work calendar skips have the name of their holiday', () => {
  const grid = month(
    ['2026-10-08T09:00:00+08:00'],
    [{ local: '2026-10-01T09:00:00', holiday: '国庆节' }, { local: '2026-10-04T09:00:00' }],
  )!
  const days = grid.cells.filter((cell) => cell !== undefined)
  expect([days[0]?.off, days[0]?.holiday]).toEqual([true, '国庆节'])
  expect([days[3]?.off, days[3]?.holiday]).toEqual([true, undefined])
  expect(days[7]?.off).toBe(false)
})

test('without fires there is no month to show', () => {
  expect(month([])).toBeUndefined()
})
