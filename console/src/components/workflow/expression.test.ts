import { expect, test } from 'vitest'

import { expressionIn, suggest, type Scope } from './expression'

const scope: Scope = {
  inputs: { region: 'text', full: 'bool' },
  steps: ['orders', 'users'],
  output: async (step) => (step === 'orders' ? { rows: 5, file: { name: 'a', 'not-a-name': 1 } } : undefined),
}

async function names(before: string) {
  const found = await suggest(before, scope)
  return found && [before.slice(found.from), ...found.items.map((item) => item.name)]
}

test('inputs, steps and what a run is known by', async () => {
  expect(await names('inputs.')).toEqual(['', 'region', 'full'])
  expect(await names('size(inputs.re')).toEqual(['re', 'region'])
  expect(await names('steps.')).toEqual(['', 'orders', 'users'])
  expect(await names('steps.orders.')).toEqual(['', 'output', 'state'])
  expect(await names('run.bus')).toEqual(['bus', 'business_date'])
  expect(await names('inputs.full || st')).toEqual(['st', 'steps', 'startsWith', 'string'])
})

test('fields of outputs of an earlier run, with their values', async () => {
  expect((await suggest('steps.orders.output.', scope))!.items).toEqual([
    { name: 'rows', hint: '5' },
    { name: 'file', hint: '{"name":"a","not-a-name":1}' },
  ])
  expect(await names('steps.orders.output.file.')).toEqual(['', 'name'])
  expect(await names('steps.users.output.')).toBeUndefined()
  expect(await names('steps.later.')).toBeUndefined()
})

test('in a text nothing is completed', async () => {
  expect(await names("inputs.region == 'in")).toBeUndefined()
  expect(await names("inputs.region == 'in' && run.id")).toEqual(['id', 'id'])
})

test('where an expression begins in a line', () => {
  const check = (line: string, expression: string | undefined) => expect(expressionIn(line)).toBe(expression)
  check('    with: { a: "${{ inputs.', ' inputs.')
  check('    with: { a: "${{ inputs.a }}-', undefined)
  check('    if: inputs.a && st', 'inputs.a && st')
  check(`  - { step: a, if: "inputs.a == 'x' && st`, "inputs.a == 'x' && st")
  check(`  - { step: a, if: "inputs.a", `, undefined)
  check('    job: a', undefined)
  check('    if: ', '')
})
