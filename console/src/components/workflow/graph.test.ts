import { expect, test } from 'vitest'

import type { WorkflowBody } from '../../api/wire'
import { before, circle, cut, draw, graphOf, kindOf, neighbour, pathThrough } from './graph'

const workflow: WorkflowBody = {
  steps: [
    { name: 'orders', job: 'extract' },
    { name: 'users', job: 'extract' },
    { name: 'full', needs: ['users', { step: 'orders', if: 'steps.orders.output.rows > 9' }], job: 'load' },
    { name: 'part', needs: ['users', { step: 'orders', else: true }, 'unknown'], workflow: 'load' },
    { name: 'tell', phase: 'on_failure', job: 'mail' },
    { name: 'tidy', phase: 'finally', wait_ms: 5 },
  ],
}

test('connections have their steps, their place among the needs and their condition', () => {
  const { connections } = graphOf(workflow)
  expect(connections).toEqual([
    { from: 1, to: 2, need: 0, branch: 'always', condition: undefined },
    { from: 0, to: 2, need: 1, branch: 'if', condition: 'steps.orders.output.rows > 9' },
    { from: 1, to: 3, need: 0, branch: 'always', condition: undefined },
    { from: 0, to: 3, need: 1, branch: 'else', condition: undefined },
  ])
})

test('a step is what it does', () => {
  expect(workflow.steps.map(kindOf)).toEqual(['job', 'job', 'job', 'workflow', 'job', 'wait'])
  expect(kindOf({ name: 'sign', approval: { ask: 'go on?' } })).toBe('approval')
})

test('phases are drawn one below the other', () => {
  const graph = graphOf(workflow)
  const { nodes, bands, edges, height } = draw(graph)
  expect(bands.map((band) => band.phase)).toEqual(['main', 'on_failure', 'finally'])
  const lowest = Math.max(...nodes.slice(0, 4).map((node) => node.y))
  expect(nodes[4]!.y).toBeGreaterThan(lowest)
  expect(nodes[5]!.y).toBeGreaterThan(nodes[4]!.y)
  expect(height).toBeGreaterThan(nodes[5]!.y)
  expect(edges.every((points) => points.length >= 2)).toBe(true)
})

test('without steps there is nothing to draw', () => {
  expect(draw(graphOf({ steps: [] }))).toEqual({ width: 0, height: 0, nodes: [], edges: [], bands: [] })
})

test('arrow keys follow the connections and the layers', () => {
  const graph = graphOf(workflow)
  const drawing = draw(graph)
  const right = neighbour(graph, drawing, 0, 'ArrowRight')
  expect([2, 3]).toContain(right)
  expect([0, 1]).toContain(neighbour(graph, drawing, 2, 'ArrowLeft'))
  const [upper, lower] = drawing.nodes[0]!.y < drawing.nodes[1]!.y ? [0, 1] : [1, 0]
  expect(neighbour(graph, drawing, upper, 'ArrowDown')).toBe(lower)
  expect(neighbour(graph, drawing, lower, 'ArrowUp')).toBe(upper)
  expect(neighbour(graph, drawing, 0, 'ArrowLeft')).toBeUndefined()
})

test('a line is level where it begins and ends', () => {
  expect(
    pathThrough([
      { x: 0, y: 0 },
      { x: 10, y: 4 },
    ]),
  ).toBe('M0 0C5 0 5 4 10 4')
  expect(pathThrough([])).toBe('')
})

test('a long text is cut, and wide letters count twice', () => {
  expect(cut('orders', 6)).toBe('orders')
  expect(cut('orders_of_today', 6)).toBe('order…')
  expect(cut('汇总订单', 8)).toBe('汇总订单')
  expect(cut('汇总订单', 6)).toBe('汇总…')
})

test('a connection back to a step before closes a circle', () => {
  const graph = graphOf(workflow)
  expect(circle(graph, 0, 2)).toBeUndefined()
  expect(circle(graph, 2, 0)).toEqual(['orders', 'full', 'orders'])
  expect(circle(graph, 1, 1)).toEqual(['users', 'users'])
})

test('steps that have ended before a step opens', () => {
  const graph = graphOf(workflow)
  expect(before(graph, 2)).toEqual(['orders', 'users'])
  expect(before(graph, 0)).toEqual([])
  expect(before(graph, 4)).toEqual(['orders', 'users', 'full', 'part'])
})
