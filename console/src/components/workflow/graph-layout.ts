// Places the steps of a graph in layers, from left to right: a step stands right of everything that it needs. Long
// connections pass between other steps through points of their own, and the order in a layer avoids crossings.

export interface Size {
  width: number
  height: number
}

export interface Point {
  x: number
  y: number
}

/** A connection, by the positions of its steps. */
export type Edge = readonly [from: number, to: number]

export interface Layout extends Size {
  /** Centers of the steps. */
  nodes: Point[]
  /** Layer of each step, from 0. */
  layers: number[]
  /** Points of each connection, from the right side of a step to the left side of another. */
  edges: Point[][]
}

/** Space between layers, and between the steps of a layer. */
export const GAP: Size = { width: 76, height: 18 }

/** Space that a passing connection takes in a layer. */
const LANE = 10
const SWEEPS = 8
/** Beyond this many points, long connections are drawn straight: a drawing with so many of them is not readable anyway. */
const POINTS_MAX = 20_000

/** What stands in a layer: a step, or a point of a connection. */
interface Item {
  layer: number
  size: number
  y: number
  /** Neighbours in the layer before and after. */
  before: number[]
  after: number[]
}

/** Lays out `count` steps of the same size. Connections that close a circle may lead back; all others lead forward. */
export function layout(count: number, edges: readonly Edge[], size: Size): Layout {
  const layers = layersOf(count, edges)
  const items: Item[] = layers.map((layer) => ({ layer, size: size.height, y: 0, before: [], after: [] }))
  const chains = connect(items, edges)
  const rows = rowsOf(items)
  order(items, rows)
  place(items, rows)

  const top = Math.min(0, ...items.slice(0, count).map((item) => item.y - item.size / 2))
  const center = (layer: number) => size.width / 2 + layer * (size.width + GAP.width)
  const at = (index: number): Point => ({ x: center(items[index]!.layer), y: items[index]!.y - top })
  const nodes = layers.map((_, index) => at(index))
  const bottom = nodes.reduce((low, node) => Math.max(low, node.y + size.height / 2), 0)
  const depth = layers.reduce((deep, layer) => Math.max(deep, layer + 1), 0)
  const points = edges.map(([from, to], index) => {
    const [start, end] = [at(from), at(to)]
    const passed = chains[index]!.map(at)
    return [{ ...start, x: start.x + size.width / 2 }, ...passed, { ...end, x: end.x - size.width / 2 }]
  })
  return { width: Math.max(0, depth * (size.width + GAP.width) - GAP.width), height: bottom, nodes, layers, edges: points }
}

/** The length of the longest way to each step. */
function layersOf(count: number, edges: readonly Edge[]): number[] {
  const layers = new Array<number>(count).fill(0)
  const open = new Array<number>(count).fill(0)
  const after: number[][] = Array.from({ length: count }, () => [])
  for (const [from, to] of edges) {
    if (from === to) continue
    after[from]!.push(to)
    open[to]!++
  }
  const ready: number[] = []
  const placed = new Array<boolean>(count).fill(false)
  for (let index = 0; index < count; index++) if (open[index] === 0) ready.push(index)
  let next = 0
  for (let done = 0; done < count; done++) {
    let step = ready[done]
    if (step === undefined) {
      // A circle: the first of its steps is taken as if it needed no other.
      while (placed[next]) next++
      step = next
      ready.push(step)
    }
    placed[step] = true
    for (const to of after[step]!) {
      if (placed[to]) continue
      layers[to] = Math.max(layers[to]!, layers[step]! + 1)
      if (--open[to]! === 0) {
        placed[to] = true
        ready.push(to)
      }
    }
  }
  return layers
}

/** Connects neighbours, and adds the points of connections that pass other layers. Returns these points for each. */
function connect(items: Item[], edges: readonly Edge[]): number[][] {
  const span = ([from, to]: Edge) => items[to]!.layer - items[from]!.layer
  const points = edges.reduce((sum, edge) => sum + Math.max(0, span(edge) - 1), 0)
  return edges.map((edge) => {
    const [from, to] = edge
    if (span(edge) < 1 || (span(edge) > 1 && points > POINTS_MAX)) return []
    const chain: number[] = []
    let last = from
    const link = (next: number) => {
      items[last]!.after.push(next)
      items[next]!.before.push(last)
      last = next
    }
    for (let layer = items[from]!.layer + 1; layer < items[to]!.layer; layer++) {
      items.push({ layer, size: LANE, y: 0, before: [], after: [] })
      chain.push(items.length - 1)
      link(items.length - 1)
    }
    link(to)
    return chain
  })
}

function rowsOf(items: Item[]): number[][] {
  const rows: number[][] = []
  items.forEach((item, index) => (rows[item.layer] ??= []).push(index))
  return rows
}

/** Orders each layer by the mean position of its neighbours, forward and back, and keeps the order with the fewest crossings. */
function order(items: Item[], rows: number[][]): void {
  const rank = new Array<number>(items.length).fill(0)
  const number = (row: number[]) => row.forEach((item, index) => (rank[item] = index))
  rows.forEach(number)
  let best = rows.map((row) => [...row])
  let fewest = crossings(items, rows, rank)
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
    const forward = sweep % 2 === 0
    for (const row of forward ? rows : rows.toReversed()) {
      const weight = new Map(
        row.map((item) => {
          const near = forward ? items[item]!.before : items[item]!.after
          return [item, near.length === 0 ? rank[item]! : mean(near.map((other) => rank[other]!))]
        }),
      )
      row.sort((a, b) => weight.get(a)! - weight.get(b)!)
      number(row)
    }
    const count = crossings(items, rows, rank)
    if (count < fewest) {
      fewest = count
      best = rows.map((row) => [...row])
    }
  }
  best.forEach((row, layer) => (rows[layer] = row))
}

/** Number of crossings: pairs of connections between two layers whose ends are in opposite order. */
export function crossings(items: { after: number[] }[], rows: number[][], rank: number[]): number {
  let count = 0
  for (const row of rows) {
    // Ends in the order of their starts; each one crosses those before it that end further down.
    const ends = row.flatMap((item) => items[item]!.after.map((other) => rank[other]!).sort((a, b) => a - b))
    const width = ends.reduce((most, end) => Math.max(most, end + 1), 0)
    const tree = new Array<number>(width + 1).fill(0)
    ends.forEach((end, seen) => {
      let before = 0
      for (let at = end + 1; at > 0; at -= at & -at) before += tree[at]!
      count += seen - before
      for (let at = end + 1; at <= width; at += at & -at) tree[at]!++
    })
  }
  return count
}

/** Moves each layer as near to its neighbours as its order allows, forward and back. */
function place(items: Item[], rows: number[][]): void {
  for (const row of rows) settle(items, row, (item) => items[item]!.y)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forward = sweep % 2 === 0
    for (const row of forward ? rows : rows.toReversed()) {
      settle(items, row, (item) => {
        const near = forward ? items[item]!.before : items[item]!.after
        return near.length === 0 ? items[item]!.y : mean(near.map((other) => items[other]!.y))
      })
    }
  }
}

/** Places a layer with the least sum of squared distances from the wanted places: neighbours that would overlap move
 * together, by their mean. */
function settle(items: Item[], row: number[], wanted: (item: number) => number): void {
  const blocks: { sum: number; items: number }[] = []
  const offsets: number[] = []
  let offset = 0
  row.forEach((item, index) => {
    const previous = row[index - 1]
    if (previous !== undefined) offset += (items[previous]!.size + items[item]!.size) / 2 + GAP.height
    offsets.push(offset)
    let block = { sum: wanted(item) - offset, items: 1 }
    for (let last = blocks.at(-1); last && last.sum / last.items > block.sum / block.items; last = blocks.at(-1)) {
      blocks.pop()
      block = { sum: last.sum + block.sum, items: last.items + block.items }
    }
    blocks.push(block)
  })
  let index = 0
  for (const block of blocks) {
    for (let left = block.items; left > 0; left--, index++) items[row[index]!]!.y = block.sum / block.items + offsets[index]!
  }
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
