import { expect, test } from 'vitest'

import { names, split, translated, withField } from './cron'

test('an expression has the fields of its dialect, the year only where it is written', () => {
  expect(names('quartz', '0 0 2 * * ?')).toHaveLength(6)
  expect(names('quartz', '0 0 2 * * ? 2027').at(-1)).toBe('year')
  expect(names('unix', '0 2 * * *')[0]).toBe('minute')
})

test('changing one field leaves the others', () => {
  expect(withField('0 0 2 * * ?', 2, '4')).toBe('0 0 4 * * ?')
  expect(withField('0', 2, '4')).toBe('0 * 4')
  expect(withField('0 0 2 * * ?', 1, ' ')).toBe('0 * 2 * * ?')
  expect(split('  0   0 2 ')).toEqual(['0', '0', '2'])
})

test('an expression is taken over into the other dialect only where it means the same', () => {
  expect(translated('30 2 * * *', 'quartz')).toBe('0 30 2 * * ?')
  expect(translated('0 9 * * MON-FRI', 'quartz')).toBe('0 0 9 ? * MON-FRI')
  expect(translated('0 0 9 ? * MON-FRI', 'unix')).toBe('0 9 * * MON-FRI')
  expect(translated('0 9 * * 1', 'quartz')).toBe('0 9 * * 1')
  expect(translated('5 0 9 * * ?', 'unix')).toBe('5 0 9 * * ?')
})
