import { expect, test } from 'vitest'

import { Block, Delivery, TraceStepKind, Overlap, ProblemCode, Right, Route, TroubleCode } from '../api/wire'
import { en } from './en'
import { zh } from './zh'

test('both languages hold the same keys, and none is empty', () => {
  expect(keys(zh)).toEqual(keys(en))
})

test('every value of the API has words', () => {
  const check = (words: object, values: readonly string[]) => expect(Object.keys(words).sort()).toEqual([...values].sort())
  // The last is for no answer at all.
  check(en.problems, [...ProblemCode, 'unreachable'])
  check(en.executors.troubles, TroubleCode)
  check(en.form.routes, Route)
  check(en.form.blocks, Block)
  check(en.form.overlaps, Overlap)
  check(en.form.deliveries, Delivery)
  check(en.people.rights, Right)
  check(en.run.steps, TraceStepKind)
})

test('every action on record has words', () => {
  // Those that `crates/server/src/api/v1/routes.rs` notes, what is noted of each of many jobs, and declarations.
  const actions = [
    'session.open',
    'session.close',
    'password.change',
    'session.end',
    'user.put',
    'user.delete',
    'key.create',
    'key.delete',
    'app.put',
    'app.delete',
    'token.create',
    'token.end',
    'executor.check',
    'job.create',
    'job.bulk',
    'job.put',
    'job.delete',
    'job.start',
    'job.stop',
    'job.trigger',
    'script.put',
    'run.clear',
    'run.kill',
    'run.again',
    'job.move',
    'job.declare',
  ]
  expect(Object.keys(en.audit.actions).sort()).toEqual(actions.sort())
})

function keys(value: unknown, path = ''): string[] {
  if (typeof value === 'string') {
    expect(value, path).not.toBe('')
    return [path]
  }
  if (typeof value === 'function') return [`${path}(${value.length})`]
  return Object.entries(value as object)
    .flatMap(([key, inner]) => keys(inner, `${path}.${key}`))
    .sort()
}
