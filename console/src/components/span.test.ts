import { expect, test } from 'vitest'

import { chooseStep } from './span'

test('a span has as many buckets as fit a chart', () => {
  for (const span of [1_000, 3_600_000, 86_400_000, 604_800_000, 31_536_000_000]) {
    expect(span / chooseStep(span)).toBeLessThanOrEqual(60)
  }
  expect(chooseStep(86_400_000)).toBe(1_800_000)
  expect(chooseStep(3_600_000)).toBe(60_000)
})
