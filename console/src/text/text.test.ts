import { expect, test } from 'vitest'

import { en } from './en'
import { zh } from './zh'

test('both languages hold the same keys, and none is empty', () => {
  expect(keys(zh)).toEqual(keys(en))
})

test('every code of a problem has words', () => {
  // The list in `crates/protocol/src/v1/problem.rs`, and the one for no answer at all.
  const codes = [
    'malformed_request',
    'invalid_fields',
    'not_signed_in',
    'wrong_password',
    'not_allowed',
    'foreign_origin',
    'no_such_path',
    'not_found',
    'wrong_method',
    'conflict',
    'outdated',
    'too_large',
    'too_many_requests',
    'app_offline',
    'executor_unreachable',
    'executor_refused',
    'database_unavailable',
    'database_broken',
    'unreachable',
  ]
  expect(Object.keys(en.problems).sort()).toEqual(codes.sort())
})

test('every trouble with an executor has words', () => {
  // The list in `crates/protocol/src/v1/apps.rs`.
  const codes = [
    'connect_refused',
    'connect_timeout',
    'no_route',
    'name_unknown',
    'address_forbidden',
    'tls_failed',
    'connection_lost',
    'no_answer',
    'gateway_failed',
    'bad_token',
    'not_an_executor',
    'refused',
    'suspended',
    'too_many_calls',
    'other',
  ]
  expect(Object.keys(en.executors.troubles).sort()).toEqual(codes.sort())
})

test('every action on record has words', () => {
  // Those that `crates/server/src/doors/v1/routes.rs` notes, what is noted of each of many jobs, and declarations.
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
