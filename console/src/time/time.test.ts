import { expect, test } from 'vitest'

import { text } from '../text/words.svelte'
import { civil, clock, duration, offset, relative, timeOfDay } from './time.svelte'

test('a duration has at most two units', () => {
  text.use('en')
  expect(duration(0)).toBe('0 ms')
  expect(duration(999)).toBe('999 ms')
  expect(duration(2_400)).toBe('2.4 s')
  expect(duration(60_000)).toBe('1 min')
  expect(duration(200_000)).toBe('3 min 20 s')
  expect(duration(5 * 86_400_000 + 4 * 3_600_000 + 60_000)).toBe('5 d 4 h')
  text.use('zh')
  expect(duration(200_000)).toBe('3 分钟 20 秒')
})

test('an offset has exactly one sign', () => {
  text.use('en')
  expect(offset(1_300)).toBe('+1.3 s')
  expect(offset(-1_300)).toBe('−1.3 s')
  expect(offset(0)).toBe('+0 ms')
  text.use('zh')
  expect(offset(-1_300)).toBe('−1.3 秒')
})

test('what is to come and what is past are told apart', () => {
  text.use('en')
  clock.now = Date.parse('2026-06-21T10:00:00Z')
  expect(relative('2026-06-21T10:05:10Z')).toBe('in 5 min')
  expect(relative('2026-06-21T07:00:00Z')).toBe('3 h ago')
})

test('an instant is shown on the clocks of the zone, a zone that is unknown as UTC', () => {
  expect(timeOfDay('2026-06-21T10:00:00Z', 'Asia/Shanghai')).toBe('18:00:00')
  expect(timeOfDay('2026-06-21T10:00:00Z', 'Nowhere/Land')).toBe('10:00:00')
  expect(civil('2026-06-30T23:30:00Z', 'Europe/Berlin')).toEqual([2026, 7, 1])
})
