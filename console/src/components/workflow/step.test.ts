import { afterEach, expect, test } from 'vitest'

import type { StepView, WorkflowRunView } from '../../api/wire'
import { text } from '../../text/words.svelte'
import { criticalPath, span } from './step'
import { why } from './why'

const second = (count: number) => new Date(Date.UTC(2026, 5, 21, 8, 0, count)).toISOString()
const NOW = Date.parse(second(100))

/** A step that was open between two seconds. */
function step(name: string, needs: string[], from: number | null, until: number | null, more: Partial<StepView> = {}): StepView {
  return {
    name,
    needs,
    taken: needs.map(() => null),
    phase: 'main',
    state: until === null ? (from === null ? 'blocked' : 'open') : 'succeeded',
    run: null,
    opened_at: from === null ? null : second(from),
    ended_at: until === null ? null : second(until),
    message: null,
    ...more,
  }
}

const run = (steps: StepView[], more: Partial<WorkflowRunView> = {}): WorkflowRunView => ({
  run: 1,
  attempt: 1,
  date: '2026-06-21',
  inputs: {},
  phase: 'main',
  paused: false,
  begun_at: second(0),
  ended_at: null,
  steps,
  ...more,
})

afterEach(() => text.use('en'))

test('a step that is open lasts until now', () => {
  expect(span(step('a', [], 1, 3), NOW)).toEqual({ from: Date.parse(second(1)), until: Date.parse(second(3)) })
  expect(span(step('a', [], 1, null), NOW)?.until).toBe(NOW)
  expect(span(step('a', [], null, null), NOW)).toBeUndefined()
})

test('the critical path leads from the last end back to the beginning', () => {
  const steps = [
    step('fast', [], 0, 2),
    step('slow', [], 0, 9),
    step('both', ['fast', 'slow'], 9, 12),
    step('aside', ['fast'], 2, 4),
    step('tidy', [], 12, 13, { phase: 'finally' }),
    step('never', ['aside'], null, null),
  ]
  expect([...criticalPath(steps, NOW)]).toEqual(['tidy', 'both', 'slow'])
})

test('a step that opened with the first end does not depend on the later one', () => {
  const steps = [step('first', [], 0, 2), step('later', [], 0, 5), step('either', ['first', 'later'], 2, 20)]
  expect([...criticalPath(steps, NOW)]).toEqual(['either', 'first'])
})

test('the critical path passes steps that were skipped', () => {
  const skipped = step('b', ['a'], null, 3, { state: 'skipped' })
  expect([...criticalPath([step('a', [], 0, 3), skipped, step('c', ['b'], 3, 8)], NOW)]).toEqual(['c', 'b', 'a'])
})

test('a run that goes on has a critical path until now', () => {
  const steps = [step('a', [], 0, 2), step('b', ['a'], 2, null)]
  expect([...criticalPath(steps, NOW)]).toEqual(['b', 'a'])
  expect([...criticalPath([step('a', [], null, null)], NOW)]).toEqual([])
})

test('a blocked step names what it waits for, and the rule', () => {
  const waits = step('c', ['a', 'b'], null, null)
  const of = run([step('a', [], 0, 2), step('b', [], 0, null), waits])
  expect(why(waits, { name: 'c', needs: ['a', 'b'], when: 'all_ended' }, of)).toEqual([
    'It waits for b (Running).',
    'It starts when all of them have ended.',
  ])
  expect(why(waits, undefined, run(of.steps, { paused: true })).at(-1)).toBe('The run is paused. Continue it to start further steps.')
  const later = step('tidy', [], null, null, { phase: 'finally' })
  expect(why(later, undefined, of)).toEqual(['Its phase begins last, after all other steps have ended.'])
})

test('an approval names who may decide', () => {
  const asks = step('sign', [], 0, null, { state: 'waiting', message: 'go on?' })
  expect(why(asks, { name: 'sign', approval: { ask: 'go on?', approvers: ['ada', 'bo'] } }, run([asks]))).toEqual([
    'It waits for a decision of ada or bo.',
  ])
  expect(why(asks, { name: 'sign', approval: { ask: 'go on?' } }, run([asks]))[0]).toContain('any user')
})

test('a step that did not run names the reason', () => {
  const failed = step('a', [], 0, 1, { state: 'failed' })
  const unreached = step('b', ['a'], null, 1, { state: 'unreached', taken: [false] })
  const stopped = step('c', ['x'], null, 1, { state: 'cancelled' })
  const branch = step('d', ['a'], null, 1, { state: 'skipped', taken: [false] })
  const condition = step('e', [], null, 1, { state: 'skipped' })
  const of = run([failed, unreached, stopped, branch, condition])
  expect(why(unreached, undefined, of)).toEqual(['It needs a (Failed).'])
  expect(why(stopped, undefined, of)).toEqual(['The run was stopped because of a (Failed).'])
  expect(why(branch, undefined, of)).toEqual(['Connections that were not taken: from a.'])
  expect(why(condition, { name: 'e', if: 'inputs.all' }, of)).toEqual(['Its condition was false: inputs.all'])
  expect(why(failed, undefined, of)).toEqual([])
})

test('of many needs only some are named', () => {
  const many = Array.from({ length: 40 }, (_, index) => step(`s${index}`, [], 0, null))
  const waits = step(
    'all',
    many.map((one) => one.name),
    null,
    null,
  )
  expect(why(waits, undefined, run([...many, waits]))[0]).toContain('34 more')
})
