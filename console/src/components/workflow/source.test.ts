import { expect, test } from 'vitest'

import {
  addStep,
  apply,
  connect,
  difference,
  freshName,
  read,
  removeStep,
  renameIn,
  renameStep,
  setField,
  setNeed,
  setOption,
  stepAt,
  placeOf,
  type Op,
} from './source'

const TEXT = `# Sales of the day.
inputs:
  region: { type: text } # north or south
steps:
  # Reads the shop.
  - name: orders
    job: extract # the old one
    with:
      table: orders
  - { name: users, needs: [orders], job: extract }

  - name: load
    needs:
      - orders   # first
      - { step: users, if: "steps.orders.output.rows > 1 && inputs.region != 'steps.orders'" }
    if: steps.orders.state == 'succeeded'
    job: load
    param: |
      from \${{ steps.orders.output.file }}
      of orders

# Given to those that contain it.
output: "\${{ steps.users.output }}"
`

/** Lines that an edit takes out and puts in. */
function changed(text: string, ...ops: Op[]): string[] {
  const after = apply(text, ...ops)
  expect(read(after), after).toBeDefined()
  const { from, to, insert } = difference(text, after)
  const start = text.lastIndexOf('\n', from - 1) + 1
  const tail = text.indexOf('\n', to)
  const rest = text.slice(to, tail < 0 ? undefined : tail)
  const gone = (text.slice(start, to) + rest).split('\n').map((line) => `-${line}`)
  const come = (text.slice(start, from) + insert + rest).split('\n').map((line) => `+${line}`)
  return [...gone, ...come]
}

test('a field is set where it stands, and its comment stays', () => {
  expect(changed(TEXT, setField('orders', ['job'], 'extract2'))).toEqual([
    '-    job: extract # the old one',
    '+    job: extract2 # the old one',
  ])
  expect(changed(TEXT, setField('users', ['job'], 'a/b'))).toEqual([
    '-  - { name: users, needs: [orders], job: extract }',
    '+  - { name: users, needs: [orders], job: a/b }',
  ])
  expect(changed(TEXT, setField('orders', ['with'], { table: 'orders', day: 'x' }))).toEqual([
    '-    with:',
    '-      table: orders',
    '+    with: { table: orders, day: x }',
  ])
})

test('a new field is written behind those that come before it', () => {
  expect(apply(TEXT, setField('load', ['timeout_ms'], 60_000))).toContain('      of orders\n    timeout_ms: 60000\n\n#')
  expect(changed(TEXT, setField('orders', ['if'], 'inputs.region == "north"'))).toEqual([
    '-    job: extract # the old one',
    '+    if: inputs.region == "north"',
    '+    job: extract # the old one',
  ])
  expect(changed(TEXT, setField('users', ['retry'], { count: 2 }))).toEqual([
    '-  - { name: users, needs: [orders], job: extract }',
    '+  - { name: users, needs: [orders], job: extract, retry: { count: 2 } }',
  ])
  expect(apply(TEXT, setOption('on_error', 'continue'))).toBe(`${TEXT}on_error: continue\n`)
})

test('a text of several lines is written as a block', () => {
  const after = apply(
    TEXT,
    setField('orders', ['job'], undefined),
    setField('orders', ['script'], { language: 'shell', source: 'a\n\nb\n' }),
  )
  expect(after).toContain('    script:\n      language: shell\n      source: |\n        a\n\n        b\n')
  expect(read(after)!.workflow.steps[0]!.script).toEqual({ language: 'shell', source: 'a\n\nb\n' })
})

test('a field is removed with its lines', () => {
  expect(apply(TEXT, setField('load', ['param'], undefined))).toContain('    job: load\n\n# Given')
  expect(apply(TEXT, setField('users', ['needs'], undefined))).toContain('{ name: users, job: extract }')
  expect(apply(TEXT, setField('users', ['job'], undefined))).toContain('{ name: users, needs: [orders] }')
  expect(apply(TEXT, setField('orders', ['nothing'], undefined))).toBe(TEXT)
})

test('a step is added behind another one', () => {
  const after = apply(TEXT, addStep({ name: 'new', needs: ['users'], approval: { ask: 'Go on?' } }, 'users'))
  expect(after).toContain('job: extract }\n  - name: new\n    needs: [users]\n    approval: { ask: Go on? }\n\n  - name: load')
  expect(apply('steps: []\n', addStep({ name: 'a', wait_ms: 1 }))).toBe('steps:\n  - name: a\n    wait_ms: 1\n')
  expect(apply('on_error: stop\n', addStep({ name: 'a', wait_ms: 1 }))).toContain('name: a')
})

test('JSON stays JSON', () => {
  const json = '{"steps": [{"name": "a", "job": "x"}]}'
  const after = apply(json, addStep({ name: 'b', job: 'y' }), connect('a', 'b'), setField('a', ['timeout_ms'], 5), renameStep('a', 'c'))
  expect(JSON.parse(after)).toEqual({
    steps: [
      { name: 'c', job: 'x', timeout_ms: 5 },
      { name: 'b', job: 'y', needs: ['c'] },
    ],
  })
})

test('connections are added, changed and removed', () => {
  expect(apply(TEXT, connect('load', 'orders'))).toContain('  - name: orders\n    needs: [load]\n    job: extract')
  expect(apply(TEXT, connect('load', 'users'))).toContain('needs: [orders, load]')
  expect(apply(TEXT, connect('users', 'load'))).toBe(TEXT)
  expect(apply(TEXT, setNeed('load', 0, undefined))).toContain('    needs:\n      - { step: users')
  expect(apply(TEXT, setNeed('load', 0, { step: 'orders', else: true }))).toContain('      - { step: orders, else: true }   # first\n')
  expect(apply(TEXT, setNeed('users', 0, undefined))).toContain('{ name: users, job: extract }')
})

test('a step is removed, and those after it need what it needed', () => {
  const after = apply(TEXT, ...removeStep('users'))
  expect(read(after)!.workflow.steps.map((step) => [step.name, step.needs])).toEqual([
    ['orders', []],
    ['load', ['orders']],
  ])
  expect(after).toContain('# Reads the shop.')
  expect(apply('steps:\n  - name: a\n    wait_ms: 1\n', ...removeStep('a'))).toBe('steps: []\n')
})

test('a step is renamed where it is named, and only there', () => {
  const after = apply(TEXT, renameStep('orders', 'sales'))
  const { steps } = read(after)!.workflow
  expect(steps[0]!.name).toBe('sales')
  expect(steps[1]!.needs).toEqual(['sales'])
  expect(steps[2]!.needs).toEqual(['sales', { step: 'users', if: "steps.sales.output.rows > 1 && inputs.region != 'steps.orders'" }])
  expect(steps[2]!.if).toBe("steps.sales.state == 'succeeded'")
  expect(steps[2]!.param).toBe('from ${{ steps.sales.output.file }}\nof orders\n')
  expect(after).toContain('table: orders')
  expect(after).toContain('- sales   # first')
  expect(renameIn('steps["a"].x + steps.a.y + steps.ab.z', 'a', 'c', true)).toBe('steps["c"].x + steps.c.y + steps.ab.z')
})

test('a place of the text belongs to a step', () => {
  const source = read(TEXT)!
  for (const name of ['orders', 'users', 'load']) expect(stepAt(source, placeOf(source, name)!.from)).toBe(name)
  expect(stepAt(source, TEXT.indexOf('table'))).toBe('orders')
  expect(stepAt(source, TEXT.indexOf('region'))).toBeUndefined()
})

test('what cannot be read has no steps, and is not edited', () => {
  for (const text of ['', '- a', 'steps: [', '['.repeat(20_000)]) expect(read(text)).toBeUndefined()
  expect(apply('steps: [', setField('a', ['job'], 'x'))).toBe('steps: [')
  expect(read('steps: [1, { name: 5, needs: a }]')!.workflow.steps).toEqual([{ name: '5', needs: [] }])
})

test('a new name is not taken', () => {
  const { workflow } = read(TEXT)!
  expect(freshName(workflow, 'wait')).toBe('wait')
  expect(freshName(workflow, 'Orders')).toBe('rders')
  expect(freshName(workflow, 'orders')).toBe('orders_2')
})
