import { expect, test } from 'vitest'

import type { RunState, RunView } from '../api/wire'
import { health } from './health'

const runs = (...states: RunState[]) =>
  states.map((state, index) => ({ id: index, state, took_ms: 100 * (index + 1), ended_at: `2026-06-21T08:00:0${index}.000Z` }) as RunView)

test('a job whose newest run failed is failing, whatever was before', () => {
  const found = health(runs('running', 'failed', 'lost', 'succeeded', 'succeeded'))
  expect(found.word).toBe('bad')
  expect(found.streak).toEqual({ good: false, count: 2 })
  expect(found.success).toBe(0.5)
})

test('runs that somebody ended count neither way', () => {
  expect(health(runs('cancelled')).word).toBe('none')
  expect(health(runs('cancelled', 'succeeded')).success).toBe(1)
})

test('some failures make a job unsteady', () => {
  expect(health(runs('succeeded', 'failed', 'succeeded')).word).toBe('flaky')
  expect(health(runs('succeeded', 'succeeded', 'succeeded')).typicalMs).toBe(200)
})
