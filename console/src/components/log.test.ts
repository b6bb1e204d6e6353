import { expect, test } from 'vitest'

import { find, parts, withPage } from './log'

const page = (from: number, text: string) => ({ from, text, next: 0, end: false })

test('pages are put together, and lines that come twice are shown once', () => {
  let lines = withPage([], page(1, 'one\ntwo\n'))
  expect(lines).toEqual(['one', 'two'])
  lines = withPage(lines, page(2, 'two\nthree\r\nfour'))
  expect(lines).toEqual(['one', 'two', 'three', 'four'])
  expect(withPage(lines, page(5, ''))).toBe(lines)
})

test('words are found whatever their case, and marked as text', () => {
  const lines = ['An ERROR', 'fine', 'error, error']
  expect(find(lines, 'error')).toEqual([0, 2])
  expect(find(lines, '')).toEqual([])
  expect(parts('error, Error!', 'ERROR')).toEqual(['', 'error', ', ', 'Error', '!'])
  expect(parts('<b>', '')).toEqual(['<b>'])
})
