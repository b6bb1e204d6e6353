import { describe, expect, test } from 'vitest'

import { GAP, layout, type Edge, type Layout } from './graph-layout'

const SIZE = { width: 200, height: 50 }

/** Numbers that look random, and are the same in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state % sides
  }
}

function random(count: number, edges: number, seed: number): Edge[] {
  const roll = dice(seed)
  const found = new Map<string, Edge>()
  for (let index = 0; index < edges; index++) {
    const to = 1 + roll(count - 1)
    const from = Math.max(0, to - 1 - roll(12))
    found.set(`${from} ${to}`, [from, to])
  }
  return [...found.values()]
}

function check({ nodes, layers, edges, width, height }: Layout, connections: readonly Edge[]) {
  connections.forEach(([from, to], index) => {
    expect(layers[to], `${from} → ${to}`).toBeGreaterThan(layers[from]!)
    const points = edges[index]!
    for (let point = 1; point < points.length; point++) expect(points[point]!.x).toBeGreaterThan(points[point - 1]!.x)
    expect(points[0]).toEqual({ x: nodes[from]!.x + SIZE.width / 2, y: nodes[from]!.y })
    expect(points.at(-1)).toEqual({ x: nodes[to]!.x - SIZE.width / 2, y: nodes[to]!.y })
  })
  for (const x of new Set(nodes.map((node) => node.x))) {
    const column = nodes.filter((node) => node.x === x)
    const ys = column.map((node) => node.y).sort((a, b) => a - b)
    for (let index = 1; index < ys.length; index++) {
      expect(ys[index]! - ys[index - 1]!).toBeGreaterThanOrEqual(SIZE.height + GAP.height - 1e-6)
    }
  }
  for (const { x, y } of nodes) {
    expect(x - SIZE.width / 2).toBeGreaterThanOrEqual(0)
    expect(x + SIZE.width / 2).toBeLessThanOrEqual(width)
    expect(y - SIZE.height / 2).toBeGreaterThanOrEqual(-1e-6)
    expect(y + SIZE.height / 2).toBeLessThanOrEqual(height + 1e-6)
  }
}

describe('every connection leads forward and no steps overlap', () => {
  test.each([1, 2, 3, 4, 5])('in a random graph %i', (seed) => {
    const edges = random(60, 110, seed)
    check(layout(60, edges, SIZE), edges)
  })

  test('of a thousand steps', () => {
    const edges = random(1_000, 1_950, 7)
    check(layout(1_000, edges, SIZE), edges)
  })

  test('where one step needs a thousand', () => {
    const edges = Array.from({ length: 1_000 }, (_, index): Edge => [index, 1_000])
    check(layout(1_001, edges, SIZE), edges)
  })

  test('where many connections pass a long chain', () => {
    const chain = Array.from({ length: 399 }, (_, index): Edge => [index, index + 1])
    const long = Array.from({ length: 199 }, (_, index): Edge => [index, 399 - index]).filter(([from, to]) => to - from > 1)
    check(layout(400, [...chain, ...long], SIZE), [...chain, ...long])
  })
})

test('a chain is a straight line', () => {
  const { nodes, height } = layout(
    3,
    [
      [0, 1],
      [1, 2],
    ],
    SIZE,
  )
  expect(new Set(nodes.map((node) => node.y)).size).toBe(1)
  expect(height).toBe(SIZE.height)
})

test('a step stands between those that need it', () => {
  const { nodes } = layout(
    3,
    [
      [0, 1],
      [0, 2],
    ],
    SIZE,
  )
  expect(nodes[0]!.y).toBeCloseTo((nodes[1]!.y + nodes[2]!.y) / 2)
})

test('connections that need not cross do not', () => {
  // In the order of the definition they would.
  const { nodes } = layout(
    4,
    [
      [0, 3],
      [1, 2],
    ],
    SIZE,
  )
  expect(Math.sign(nodes[0]!.y - nodes[1]!.y)).toBe(Math.sign(nodes[3]!.y - nodes[2]!.y))
})

test('a connection that passes a layer keeps clear of the steps there', () => {
  const edges: Edge[] = [
    [0, 1],
    [1, 2],
    [0, 2],
  ]
  const { nodes, edges: drawn } = layout(3, edges, SIZE)
  const [passing] = drawn[2]!.slice(1, -1)
  expect(Math.abs(passing!.y - nodes[1]!.y)).toBeGreaterThan(SIZE.height / 2)
})

test('a circle is drawn, too', () => {
  const { nodes } = layout(
    3,
    [
      [0, 1],
      [1, 2],
      [2, 1],
      [1, 1],
    ],
    SIZE,
  )
  expect(nodes).toHaveLength(3)
  expect(new Set(nodes.map((node) => `${node.x} ${node.y}`)).size).toBe(3)
})

test('nothing at all has no size', () => {
  expect(layout(0, [], SIZE)).toEqual({ width: 0, height: 0, nodes: [], layers: [], edges: [] })
})
