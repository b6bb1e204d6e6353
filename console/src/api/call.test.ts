import { expect, test } from 'vitest'

import { parseProblem, query } from './call'

test('a query holds only what is there', () => {
  expect(query({ app: 'a b', text: '', after: undefined, limit: 5, none: null, on: false })).toBe('?app=a+b&limit=5&on=false')
  expect(query({})).toBe('')
})

test('a problem of ours is read, a page of somebody else’s is not taken for one', () => {
  expect(parseProblem('{"code":"conflict","detail":"taken"}', 409).code).toBe('conflict')
  for (const text of ['<html>Bad gateway</html>', '', '{}', 'null'])
    expect(parseProblem(text, 502), text).toMatchObject({ code: 'unreachable', detail: 'HTTP 502' })
})
