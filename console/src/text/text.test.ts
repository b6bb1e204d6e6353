import { expect, test } from 'vitest'

import * as wire from '../api/wire'
import { en } from './en'
import { zh } from './zh'

test('both languages hold the same keys, and none is empty', () => {
  expect(keys(zh)).toEqual(keys(en))
})

test('every value of the API has words', () => {
  const check = (words: object, values: readonly string[]) => expect(Object.keys(words).sort()).toEqual([...values].sort())
  // The last is for no response at all.
  check(en.values.problem, [...wire.ProblemCode, 'unreachable'])
  check(en.values.trouble, wire.TroubleCode)
  check(en.values.runState, wire.RunState)
  check(en.values.missReason, wire.MissReason)
  check(en.values.route, wire.Route)
  check(en.values.block, wire.Block)
  check(en.values.overlap, wire.Overlap)
  check(en.values.delivery, wire.Delivery)
  check(en.values.childrenMode, wire.ChildrenMode)
  check(en.values.alertKind, wire.AlertKind)
  check(en.values.alertState, wire.AlertState)
  check(en.values.alertStateHint, wire.AlertState)
  check(en.values.right, wire.Right)
  check(en.values.rightHint, wire.Right)
  check(en.values.traceStep, wire.TraceStepKind)
  check(en.values.stepState, wire.StepState)
  check(en.values.stepPhase, wire.Phase)
  check(en.values.joinRule, wire.JoinRule)
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
    'calendar.put',
    'calendar.import',
    'calendar.delete',
    'secret.put',
    'secret.delete',
    'token.create',
    'token.end',
    'executor.check',
    'job.create',
    'job.batch',
    'job.bulk',
    'job.put',
    'job.delete',
    'job.start',
    'job.stop',
    'job.trigger',
    'backfill.start',
    'backfill.pause',
    'backfill.continue',
    'backfill.cancel',
    'backfill.retry',
    'script.put',
    'workflow.restore',
    'run.clear',
    'run.kill',
    'run.again',
    'run.pause',
    'run.continue',
    'run.resume',
    'step.decide',
    'job.move',
    'job.declare',
  ]
  expect(Object.keys(en.values.action).sort()).toEqual(actions.sort())
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
