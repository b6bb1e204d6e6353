import { expect, test } from 'vitest'

import { asLines, diff, folded, type Line } from './diff'

const side = (lines: Line[], kind: 'added' | 'removed') =>
  lines
    .filter((line) => line.kind === 'same' || line.kind === kind)
    .map((line) => line.text)
    .join('\n')

test('both texts can be read from their difference', () => {
  const texts = ['', 'a', 'a\nb', 'b\na\nc', 'x\ny\nz', 'a\nb\nc\nd\ne', 'a\nc\nd\nf\ne', '\n\n']
  for (const before of texts) {
    for (const after of texts) {
      const lines = diff(before, after)!
      expect(side(lines, 'removed'), `${before} → ${after}`).toBe(before)
      expect(side(lines, 'added'), `${before} → ${after}`).toBe(after)
    }
  }
})

test('one changed line is one removed and one added', () => {
  const lines = diff('echo 1\necho 2\necho 3', 'echo 1\necho two\necho 3')!
  expect(lines.map((line) => line.kind)).toEqual(['same', 'removed', 'added', 'same'])
})

test('texts that differ too much are not compared', () => {
  const many = (word: string) => Array.from({ length: 3_000 }, (_, index) => `${word}${index}`).join('\n')
  expect(diff(many('a'), many('b'))).toBeUndefined()
})

test('what is alike is folded away from the changes', () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n')
  const parts = folded(diff(before, `${before}\nmore`)!)
  expect(parts[0]).toEqual({ kind: 'hidden', count: 17 })
  expect(parts.at(-1)).toEqual({ kind: 'added', text: 'more' })
})

test('objects are compared whatever the order of their fields', () => {
  expect(asLines({ b: 1, a: { d: 2, c: 3 } })).toBe(asLines('{"a":{"c":3,"d":2},"b":1}'))
})
