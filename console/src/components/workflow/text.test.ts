import { expect, test } from 'vitest'

import { lineOf, TEMPLATE, withStep } from './text'

const TEXT = `inputs:
  region: { type: text }
steps:
  - name: orders
    job: extract
  - { name: users, needs: [orders], job: extract }

# Given to those that contain it.
output: "\${{ steps.users.output }}"
`

test('a step is added after the last one, and needs it', () => {
  const added = withStep(TEXT, 'approval')!
  expect(added.text.split('\n').slice(5, 10)).toEqual([
    '  - { name: users, needs: [orders], job: extract }',
    '  - name: step_3',
    '    needs: [users]',
    '    approval: { ask: "Continue?" }',
    '',
  ])
  expect(added.line).toBe(7)
  expect(added.text).toContain('# Given to those')
})

test('names do not repeat', () => {
  const twice = withStep(withStep(TEMPLATE, 'job')!.text, 'wait')!
  expect(twice.text).toContain('name: step_2')
  expect(twice.text).toContain('name: step_3\n    needs: [step_2]\n    wait_ms')
})

test('the first step needs none', () => {
  expect(withStep('steps: []\n', 'wait')).toEqual({ text: 'steps:\n  - name: step_1\n    wait_ms: 60000\n', line: 2 })
})

test('JSON has no place for a line', () => {
  expect(withStep('{"steps": [{"name": "a", "job": "x"}]}', 'job')).toBeUndefined()
})

test('a step is found by its name', () => {
  expect(lineOf(TEXT, 'orders')).toBe(4)
  expect(lineOf(TEXT, 'users')).toBe(6)
  expect(lineOf(TEXT, 'region')).toBeUndefined()
})
