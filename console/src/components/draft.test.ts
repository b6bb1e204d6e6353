import { expect, test } from 'vitest'

import { fromLocalInput, toLocalInput, words } from './draft'

test('words are separated with commas of either width', () => {
  expect(words(' a, b，c ,, ')).toEqual(['a', 'b', 'c'])
  expect(words('')).toEqual([])
})

test('an instant goes through the browser’s input and back', () => {
  const at = '2026-06-21T08:00:00.000Z'
  expect(fromLocalInput(toLocalInput(at))).toBe(at)
  expect(fromLocalInput('')).toBeUndefined()
})
