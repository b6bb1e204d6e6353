// The text of a workflow as a tree: the steps that it describes, and edits of single fields. An edit replaces few characters,
// so that comments, order and layout of everything else stay as they were written.

import {
  Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  Scalar,
  stringify,
  type Node,
  type Pair,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'

import type { Need, StepBody, WorkflowBody } from '../../api/wire'

/** Replaces a part of a text. */
export interface Edit {
  from: number
  to: number
  insert: string
}

export interface Source {
  text: string
  workflow: WorkflowBody
  /** The tree of each step. */
  nodes: YAMLMap[]
  root: YAMLMap
}

/** An edit of a text that could be read; nothing where it does not apply. */
export type Op = (source: Source) => Edit[]

/** Parses a text; undefined if it is no workflow. Fields with other types than they should have are left out. */
export function read(text: string): Source | undefined {
  try {
    const document = parseDocument(text)
    const root = document.contents
    if (document.errors.length > 0 || !isMap(root)) return undefined
    const list = root.get('steps')
    const nodes = isSeq(list) ? list.items.filter((item): item is YAMLMap.Parsed => isMap(item)) : []
    const steps = nodes.map((node) => asStep(node.toJS(document)))
    const { steps: _, ...rest } = root.toJS(document) as WorkflowBody
    return { text, workflow: { ...rest, steps }, nodes, root }
  } catch {
    // Nested too deeply, or too many aliases.
    return undefined
  }
}

function asStep(written: Record<string, unknown>): StepBody {
  const needs = Array.isArray(written.needs) ? written.needs.filter(isNeed) : []
  return { ...written, name: String(written.name ?? ''), needs } as StepBody
}

const isNeed = (need: unknown): need is Need =>
  typeof need === 'string' || (typeof need === 'object' && need !== null && typeof (need as { step?: unknown }).step === 'string')

/** The name of the step that a connection comes from. */
export const stepOf = (need: Need) => (typeof need === 'string' ? need : need.step)

/** Applies edits one after the other. The text stays as it is where it cannot be read. */
export function apply(text: string, ...ops: Op[]): string {
  for (const op of ops) {
    const source = read(text)
    if (source === undefined) return text
    const edits = op(source).sort((a, b) => b.from - a.from)
    for (const { from, to, insert } of edits) text = text.slice(0, from) + insert + text.slice(to)
  }
  return text
}

/** The least part of a text that has to be replaced to get another one. */
export function difference(before: string, after: string): Edit {
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from++
  let same = 0
  while (same < shorter - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) }
}

/** Where a step begins and ends in the text. */
export function placeOf({ text, nodes, workflow }: Source, name: string): { from: number; to: number } | undefined {
  const node = nodes[workflow.steps.findIndex((step) => step.name === name)]
  return node && { from: node.range![0], to: endOf(text, node) }
}

/** The step at a place of the text. */
export function stepAt({ text, nodes, workflow }: Source, at: number): string | undefined {
  const line = text.lastIndexOf('\n', at - 1) + 1
  const found = nodes.findIndex((node) => text.lastIndexOf('\n', node.range![0]) + 1 <= line && at <= endOf(text, node))
  return workflow.steps[found]?.name
}

/** Sets a field of a step, for example `['approval', 'ask']`; undefined removes it. */
export function setField(step: string, path: string[], value: unknown): Op {
  return (source) => {
    const node = source.nodes[source.workflow.steps.findIndex((one) => one.name === step)]
    return node ? setIn(source.text, node, path, value) : []
  }
}

/** Sets a field of the workflow itself. */
export const setOption =
  (key: string, value: unknown): Op =>
  ({ text, root }) =>
    setIn(text, root, [key], value)

/** Adds a step behind another one, or at the end. */
export function addStep(step: Record<string, unknown>, behind?: string): Op {
  return ({ text, root, nodes, workflow }) => {
    const list = root.get('steps')
    if (!isSeq(list) || list.items.length === 0) return set(text, root, 'steps', [step], true)
    const index = workflow.steps.findIndex((one) => one.name === behind)
    const last = (index < 0 ? list.items.at(-1) : nodes[index]) as Node
    return insertBehind(text, list, last, step)
  }
}

/** Removes a step. Steps that need it need what it needed. */
export function removeStep(name: string): Op[] {
  const reconnect: Op = (source) => {
    const { workflow } = source
    const gone = workflow.steps.find((step) => step.name === name)
    if (gone === undefined) return []
    return workflow.steps.flatMap((step) => {
      const needs = step.needs ?? []
      if (!needs.some((need) => stepOf(need) === name)) return []
      const known = new Set(needs.map(stepOf))
      const inherited = (gone.needs ?? []).filter((need) => !known.has(stepOf(need)))
      const next = needs.flatMap((need) => (stepOf(need) === name ? inherited : [need]))
      return setField(step.name, ['needs'], next.length > 0 ? next : undefined)(source)
    })
  }
  const remove: Op = ({ text, root, nodes, workflow }) => {
    const list = root.get('steps')
    const node = nodes[workflow.steps.findIndex((step) => step.name === name)]
    if (!isSeq(list) || node === undefined) return []
    if (list.items.length === 1) return set(text, root, 'steps', [])
    return removeItem(text, list, list.items.indexOf(node))
  }
  return [reconnect, remove]
}

/** Connects two steps; nothing if they are connected already. */
export function connect(from: string, to: string): Op {
  return (source) => {
    const index = source.workflow.steps.findIndex((step) => step.name === to)
    const needs = source.workflow.steps[index]?.needs ?? []
    const node = source.nodes[index]
    if (node === undefined || needs.some((need) => stepOf(need) === from)) return []
    const list = node.get('needs')
    const last = isSeq(list) ? (list.items.at(-1) as Node | undefined) : undefined
    return isSeq(list) && last ? insertBehind(source.text, list, last, from) : set(source.text, node, 'needs', [from])
  }
}

/** Replaces a connection of a step, by its position; undefined removes it. */
export function setNeed(step: string, index: number, need: Need | undefined): Op {
  return ({ text, nodes, workflow }) => {
    const node = nodes[workflow.steps.findIndex((one) => one.name === step)]
    const list = node?.get('needs')
    if (!node || !isSeq(list) || list.items[index] === undefined) return []
    if (need === undefined) return list.items.length === 1 ? set(text, node, 'needs', undefined) : removeItem(text, list, index)
    const item = list.items[index] as Node
    return [{ from: item.range![0], to: endOf(text, item), insert: inline(need, isJson(text, list)) }]
  }
}

/** Renames a step, wherever connections and expressions name it. */
export function renameStep(before: string, after: string): Op {
  return ({ text, root, nodes, workflow }) => {
    const edits: Edit[] = []
    const replace = (node: unknown) => {
      if (isScalar(node) && node.value === before) {
        edits.push({ from: node.range![0], to: endOf(text, node), insert: inline(after, text[node.range![0]] === '"') })
      }
    }
    const inExpressions = (node: Node, whole: boolean) => {
      const from = node.range![0]
      const to = endOf(text, node)
      const part = text.slice(from, to)
      const next = renameIn(part, before, after, whole)
      if (next !== part) edits.push({ ...shifted(difference(part, next), from) })
    }
    const walk = (node: unknown, key: string) => {
      if (isMap(node)) {
        for (const pair of node.items) walk(pair.value, isScalar(pair.key) ? String(pair.key.value) : '')
      } else if (isSeq(node)) for (const item of node.items) walk(item, key)
      else if (isScalar(node) && typeof node.value === 'string') inExpressions(node, key === 'if')
    }
    const index = workflow.steps.findIndex((step) => step.name === before)
    if (index < 0) return []
    replace(nodes[index]!.get('name', true))
    for (const node of nodes) {
      const needs = node.get('needs')
      if (isSeq(needs)) for (const need of needs.items) replace(isMap(need) ? need.get('step', true) : need)
      for (const pair of node.items) if (isScalar(pair.key) && pair.key.value !== 'script') walk(pair.value, String(pair.key.value))
    }
    walk(root.get('output', true), 'output')
    return edits
  }
}

const shifted = ({ from, to, insert }: Edit, by: number): Edit => ({ from: from + by, to: to + by, insert })

/** Replaces the name of a step in an expression, or in a text with expressions; texts in quotes are left alone. */
export function renameIn(text: string, before: string, after: string, whole: boolean): string {
  const member = new RegExp(`(\\bsteps\\s*\\.\\s*)${before}\\b`, 'g')
  const key = new RegExp(`(\\bsteps\\s*\\[\\s*(\\\\?["']))${before}(?=\\2\\s*\\])`, 'g')
  const rename = (expression: string) =>
    expression
      .replace(key, `$1${after}`)
      .split(/('(?:[^'\\]|\\.)*')/)
      .map((part, index) => (index % 2 === 1 ? part : part.replace(member, `$1${after}`)))
      .join('')
  return whole ? rename(text) : text.replace(/\$\{\{[\s\S]*?\}\}/g, rename)
}

function setIn(text: string, map: YAMLMap, path: string[], value: unknown): Edit[] {
  const [key, ...rest] = path as [string, ...string[]]
  if (rest.length === 0) return set(text, map, key, value)
  const inner = map.get(key)
  if (isMap(inner) && (value !== undefined || inner.items.length > 1)) return setIn(text, inner, rest, value)
  const nested = value === undefined ? undefined : rest.reduceRight<unknown>((built, name) => ({ [name]: built }), value)
  return set(text, map, key, nested)
}

/** Order in which fields of steps are written. Other fields follow. */
const ORDER = ['name', 'phase', 'needs', 'when', 'at_least', 'if', 'app', 'job', 'handler', 'script', 'workflow', 'approval', 'wait_ms']
const rank = (key: unknown) => (ORDER.includes(String(key)) ? ORDER.indexOf(String(key)) : ORDER.length)
const keyOf = (pair: Pair) => (isScalar(pair.key) ? pair.key.value : undefined)

function set(text: string, map: YAMLMap, key: string, value: unknown, block = false): Edit[] {
  const index = map.items.findIndex((pair) => keyOf(pair) === key)
  const pair = map.items[index]
  if (pair === undefined) return value === undefined ? [] : insertPair(text, map, key, value)
  if (value === undefined) return removePair(text, map, index)
  const old = pair.value as Node | null
  const start = (pair.key as Node).range![0]
  const end = endOf(text, pair)
  if (map.flow) {
    const from = old ? old.range![0] : end
    return [{ from, to: end, insert: `${/\s/.test(text[from - 1] ?? '') ? '' : ' '}${inline(value, isJson(text, map))}` }]
  }
  const written = lines(key, value, columnOf(text, start), block)
  const isOneLine = old !== null && !text.slice(start, end).includes('\n') && !written.includes('\n')
  // A comment behind the old value stays.
  if (isOneLine && old.range![1] > old.range![0]) return [{ from: old.range![0], to: end, insert: written.slice(key.length + 2) }]
  return [{ from: start, to: end, insert: written }]
}

function insertPair(text: string, map: YAMLMap, key: string, value: unknown): Edit[] {
  const json = isJson(text, map)
  const before = map.items.findLast((pair) => rank(keyOf(pair)) <= rank(key)) ?? map.items[0]
  if (before === undefined) {
    return [{ from: map.range![0], to: map.range![1], insert: inline({ [key]: value }, json) }]
  }
  const end = endOf(text, before)
  if (map.flow) return [{ from: end, to: end, insert: `, ${json ? JSON.stringify(key) : key}: ${inline(value, json)}` }]
  const at = lineEnd(text, end)
  const column = columnOf(text, (before.key as Node).range![0])
  return [{ from: at, to: at, insert: `\n${' '.repeat(column)}${lines(key, value, column)}` }]
}

function removePair(text: string, map: YAMLMap, index: number): Edit[] {
  if (map.items.length === 1) return [{ from: map.range![0], to: endOf(text, map), insert: '{}' }]
  const start = (map.items[index]!.key as Node).range![0]
  const next = map.items[index + 1]
  const before = map.items[index - 1]
  if (map.flow || before === undefined) {
    if (next) return [{ from: start, to: (next.key as Node).range![0], insert: '' }]
    return [{ from: endOf(text, before!), to: endOf(text, map.items[index]!), insert: '' }]
  }
  const from = text.lastIndexOf('\n', start)
  return [{ from, to: lineEnd(text, endOf(text, map.items[index]!)), insert: '' }]
}

function insertBehind(text: string, list: YAMLSeq, last: Node, value: unknown): Edit[] {
  const end = endOf(text, last)
  if (list.flow) return [{ from: end, to: end, insert: `, ${inline(value, isJson(text, list))}` }]
  const dash = text.lastIndexOf('-', last.range![0] - 1)
  const column = columnOf(text, dash)
  const at = lineEnd(text, end)
  return [{ from: at, to: at, insert: `\n${' '.repeat(column)}- ${item(value, column + 2)}` }]
}

function removeItem(text: string, list: YAMLSeq, index: number): Edit[] {
  const node = list.items[index] as Node
  const next = list.items[index + 1] as Node | undefined
  if (list.flow) {
    if (next) return [{ from: node.range![0], to: next.range![0], insert: '' }]
    return [{ from: endOf(text, list.items[index - 1] as Node), to: endOf(text, node), insert: '' }]
  }
  const dash = text.lastIndexOf('-', node.range![0] - 1)
  const line = text.lastIndexOf('\n', dash) + 1
  const end = lineEnd(text, endOf(text, node))
  return [{ from: line, to: Math.min(text.length, end + 1), insert: '' }]
}

/** The end of what is written for a node or a pair, without the line break and comments behind it. */
function endOf(text: string, node: Node | Pair): number {
  if ('key' in node) {
    const value = node.value as Node | null
    const key = endOf(text, node.key as Node)
    const colon = text.indexOf(':', key) + 1
    return value?.range && value.range[1] > colon ? endOf(text, value) : colon
  }
  if (isCollection(node) && !node.flow && node.items.length > 0) return endOf(text, node.items.at(-1) as Node | Pair)
  const end = node.range![1]
  const isBlock = isScalar(node) && (node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED)
  return isBlock ? text.slice(0, end).trimEnd().length : end
}

const lineEnd = (text: string, at: number) => {
  const found = text.indexOf('\n', at)
  return found < 0 ? text.length : found
}
const columnOf = (text: string, at: number) => at - (text.lastIndexOf('\n', at - 1) + 1)

/** Whether keys and texts are written in quotes. */
function isJson(text: string, node: YAMLMap | YAMLSeq): boolean {
  if (!node.flow) return false
  const first = node.items[0]
  const key = isMap(node) ? ((first as Pair | undefined)?.key as Node | undefined) : (first as Node | undefined)
  return key?.range ? text[key.range[0]] === '"' || (isMap(first) && isJson(text, first)) : text.trimStart().startsWith('{')
}

/** A value in one line. */
function inline(value: unknown, json: boolean): string {
  if (json) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item) => inline(item, false)).join(', ')}]`
  if (typeof value !== 'object' || value === null) return scalar(value)
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return fields.length === 0 ? '{}' : `{ ${fields.map(([key, inner]) => `${scalar(key)}: ${inline(inner, false)}`).join(', ')} }`
}

/** A value within brackets. */
function scalar(value: unknown): string {
  const list = new Document([value])
  const contents = list.contents as unknown as YAMLSeq
  contents.flow = true
  return list.toString({ lineWidth: 0, flowCollectionPadding: false }).trim().slice(1, -1)
}

/** A field as lines at a column, the first one without its indentation. */
function lines(key: string, value: unknown, column: number, block = false): string {
  const below = `\n${' '.repeat(column + 2)}`
  if (block && Array.isArray(value)) return `${key}:${value.map((one) => `${below}- ${item(one, column + 4)}`).join('')}`
  const written = JSON.stringify(value)
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && (written.length > LINE_MAX || written.includes('\\n'))) {
    return `${key}:${fieldsOf(value, column + 2)
      .map((field) => below + field)
      .join('')}`
  }
  if (typeof value === 'object') return `${key}: ${inline(value, false)}`
  const [first, ...rest] = stringify({ [key]: value }, { lineWidth: 0 })
    .trimEnd()
    .split('\n')
  return [first, ...rest.map((line) => (line === '' ? line : ' '.repeat(column) + line))].join('\n')
}

const fieldsOf = (value: object, column: number) =>
  Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([key, inner]) => lines(key, inner, column))

/** A step, or another item of a list. */
const item = (value: unknown, column: number): string =>
  typeof value === 'object' && value !== null ? fieldsOf(value, column).join(`\n${' '.repeat(column)}`) : inline(value, false)

/** Longest value that is written in the line of its key. */
const LINE_MAX = 90

/** A name for a new step that is not taken. */
export function freshName({ steps }: WorkflowBody, wanted: string): string {
  const taken = new Set(steps.map((step) => step.name))
  const base = wanted.replace(/[^a-z0-9_]+/g, '_').replace(/^_+|_+$/g, '') || 'step'
  if (!taken.has(base)) return base
  for (let number = 2; ; number++) if (!taken.has(`${base}_${number}`)) return `${base}_${number}`
}
