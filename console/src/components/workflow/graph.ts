// A workflow as a graph: its steps and connections, and where they are drawn.

import type { Phase, StepBody, WorkflowBody } from '../../api/wire'
import { layout, type Point, type Size } from './graph-layout'

export type StepKind = 'handler' | 'script' | 'job' | 'workflow' | 'approval' | 'wait'

/** A connection, by the positions of its steps. */
export interface Connection {
  from: number
  to: number
  /** Position among the needs of the second step. */
  need: number
  branch: 'always' | 'if' | 'else'
  condition?: string
}

export interface Graph {
  steps: StepBody[]
  connections: Connection[]
}

/** Phases in the order in which they run. */
export const PHASES: readonly Phase[] = ['main', 'on_failure', 'finally']

export const phaseOf = (step: StepBody): Phase => step.phase ?? 'main'

export function kindOf(step: StepBody): StepKind {
  if (step.approval) return 'approval'
  if (step.wait_ms !== undefined) return 'wait'
  if (step.script) return 'script'
  if (step.handler !== undefined) return 'handler'
  return step.workflow === undefined ? 'job' : 'workflow'
}

/** What a step calls: a handler, a job, a workflow or the language of a script. */
export const calledBy = (step: StepBody) => step.job ?? step.workflow ?? step.handler ?? step.script?.language

/** Connects the steps of a definition. One that is being written may name steps that do not exist. */
export function graphOf({ steps }: WorkflowBody): Graph {
  const positions = new Map<string, number>()
  steps.forEach((step, index) => positions.has(step.name) || positions.set(step.name, index))
  const connections = steps.flatMap((step, to) =>
    (step.needs ?? []).flatMap((need, index): Connection[] => {
      const named = typeof need === 'string' ? { step: need } : need
      const from = positions.get(named.step)
      if (from === undefined) return []
      const branch = named.if !== undefined ? 'if' : named.else ? 'else' : 'always'
      return [{ from, to, need: index, branch, condition: named.if }]
    }),
  )
  return { steps, connections }
}

/** The steps of the circle that a connection would close, from its second step back to itself; undefined without one. */
export function circle(graph: Graph, from: number, to: number): string[] | undefined {
  const after = new Map<number, number[]>()
  for (const edge of graph.connections) after.set(edge.from, [...(after.get(edge.from) ?? []), edge.to])
  const cameFrom = new Map<number, number>([[to, -1]])
  const open = [to]
  for (let step = open.shift(); step !== undefined; step = open.shift()) {
    if (step === from) {
      const path: number[] = []
      for (let at = from; at !== -1; at = cameFrom.get(at)!) path.unshift(at)
      return [...path, to].map((index) => graph.steps[index]!.name)
    }
    for (const next of after.get(step) ?? []) {
      if (!cameFrom.has(next)) open.push(next)
      if (!cameFrom.has(next)) cameFrom.set(next, step)
    }
  }
  return undefined
}

/** Steps that have ended whenever a step opens: those that it needs, theirs, and those of the phases before. */
export function before(graph: Graph, step: number): string[] {
  const found = new Set<number>()
  const needs = new Map<number, number[]>()
  for (const edge of graph.connections) needs.set(edge.to, [...(needs.get(edge.to) ?? []), edge.from])
  const open = [step]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const need of needs.get(at) ?? []) if (!found.has(need)) open.push(need)
    for (const need of needs.get(at) ?? []) found.add(need)
  }
  const phase = PHASES.indexOf(phaseOf(graph.steps[step]!))
  return graph.steps
    .filter((one, index) => index !== step && (found.has(index) || PHASES.indexOf(phaseOf(one)) < phase))
    .map((one) => one.name)
}

export interface Drawing extends Size {
  /** Center and layer of each step. */
  nodes: (Point & { layer: number; phase: Phase })[]
  /** Points of each connection. */
  edges: Point[][]
  /** Phases with steps, and where they begin. */
  bands: { phase: Phase; y: number }[]
}

export const NODE: Size = { width: 196, height: 50 }

/** Space above a phase, for its name. */
const BAND = 44

/** Lays out each phase by itself, one below the other. */
export function draw({ steps, connections }: Graph): Drawing {
  const drawing: Drawing = { width: 0, height: 0, nodes: [], edges: connections.map(() => []), bands: [] }
  const phases = PHASES.filter((phase) => steps.some((step) => phaseOf(step) === phase))
  for (const phase of phases) {
    const members = [...steps.keys()].filter((index) => phaseOf(steps[index]!) === phase)
    const local = new Map(members.map((index, position) => [index, position]))
    const inside = [...connections.keys()].filter((index) => local.has(connections[index]!.from) && local.has(connections[index]!.to))
    const edges = inside.map((index) => [local.get(connections[index]!.from)!, local.get(connections[index]!.to)!] as const)
    const placed = layout(members.length, edges, NODE)
    const top = drawing.height + (phases.length > 1 ? BAND : 0)
    drawing.bands.push({ phase, y: drawing.height })
    const below = ({ x, y }: Point): Point => ({ x, y: y + top })
    placed.nodes.forEach((node, index) => (drawing.nodes[members[index]!] = { ...below(node), layer: placed.layers[index]!, phase }))
    placed.edges.forEach((points, index) => (drawing.edges[inside[index]!] = points.map(below)))
    drawing.width = Math.max(drawing.width, placed.width)
    drawing.height = top + placed.height
  }
  return drawing
}

/** A smooth line through points, level at each of them. */
export function pathThrough(points: Point[]): string {
  const [first, ...rest] = points
  if (first === undefined) return ''
  let path = `M${first.x} ${first.y}`
  let last = first
  for (const point of rest) {
    const middle = (last.x + point.x) / 2
    path += `C${middle} ${last.y} ${middle} ${point.y} ${point.x} ${point.y}`
    last = point
  }
  return path
}

export type Direction = 'ArrowLeft' | 'ArrowRight' | 'ArrowUp' | 'ArrowDown'

/** The step that an arrow key leads to: along a connection, or to the next one in the layer. */
export function neighbour({ connections }: Graph, { nodes }: Drawing, from: number, key: Direction): number | undefined {
  const here = nodes[from]
  if (here === undefined) return undefined
  const near = (found: number[]) => found.sort((a, b) => Math.abs(nodes[a]!.y - here.y) - Math.abs(nodes[b]!.y - here.y))[0]
  switch (key) {
    case 'ArrowRight':
      return near(connections.filter((edge) => edge.from === from).map((edge) => edge.to))
    case 'ArrowLeft':
      return near(connections.filter((edge) => edge.to === from).map((edge) => edge.from))
    default: {
      const way = key === 'ArrowDown' ? 1 : -1
      const beyond = (index: number) => (nodes[index]!.y - here.y) * way > 0
      const column = [...nodes.keys()].filter((index) => beyond(index) && nodes[index]!.layer === here.layer)
      return near(column)
    }
  }
}

/** As much of a text as fits, in characters of a fixed width; wide ones count twice. */
export function cut(text: string, width: number): string {
  let used = 0
  let end = 0
  for (const letter of text) {
    used += letter.codePointAt(0)! > 0x2e80 ? 2 : 1
    if (used > width) return `${text.slice(0, Math.max(0, end - 1))}…`
    end += letter.length
  }
  return text
}
