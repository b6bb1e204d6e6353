import { expect, test } from 'vitest'

import { join, split } from './duration'

test('a duration is shown in the largest unit that keeps it whole', () => {
  expect(split(0)).toEqual({ amount: 0, unit: 's' })
  expect(split(1_500)).toEqual({ amount: 1_500, unit: 'ms' })
  expect(split(90_000)).toEqual({ amount: 90, unit: 's' })
  expect(split(7_200_000)).toEqual({ amount: 2, unit: 'h' })
})

test('splitting and joining gives the same duration', () => {
  for (const ms of [1, 999, 60_000, 61_000, 86_400_000]) {
    const { amount, unit } = split(ms)
    expect(join(amount, unit)).toBe(ms)
  }
})
