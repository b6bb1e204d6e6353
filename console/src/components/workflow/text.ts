// The text of a workflow while it is written.

import type { StepKind } from './graph'

/** What a new workflow begins with. */
export const TEMPLATE = `steps:
  - name: first
    job: key/of/a/job
`

const ACTIONS: Record<Exclude<StepKind, 'workflow'>, string> = {
  job: 'job: key/of/a/job',
  approval: 'approval: { ask: "Continue?" }',
  wait: 'wait_ms: 60000',
}

export type Insertable = keyof typeof ACTIONS
export const INSERTABLE = Object.keys(ACTIONS) as Insertable[]

/** Names of steps, in the order of the text. */
const names = (text: string) => [...text.matchAll(/(?:^|[\s{,])(?:- *)?["']?name["']?: *["']?([a-z0-9_]+)/g)].map((found) => found[1]!)

/**
 * Adds a step below the others, after the last of them. Returns the text and the line of the new step; undefined if the steps
 * are not a list of lines, so that there is no such place.
 */
export function withStep(text: string, kind: Insertable): { text: string; line: number } | undefined {
  const lines = text.replace(/\n+$/, '').split('\n')
  const start = lines.findIndex((line) => /^steps:\s*(\[\s*\])?\s*(#.*)?$/.test(line))
  if (start < 0) return undefined
  const isNext = (line: string) => /^[^\s#-]/.test(line)
  let end = lines.findIndex((line, index) => index > start && isNext(line))
  if (end < 0) end = lines.length
  // Not after empty lines and comments that belong to what follows.
  while (end > start + 1 && /^\s*(#.*)?$/.test(lines[end - 1]!)) end--
  const item = lines.slice(start + 1, end).find((line) => /^\s*- /.test(line))
  const indent = item?.match(/^\s*/)?.[0] ?? '  '
  const known = names(text)
  let number = known.length + 1
  while (known.includes(`step_${number}`)) number++
  const last = known.at(-1)
  const step = [`name: step_${number}`, ...(last === undefined ? [] : [`needs: [${last}]`]), ACTIONS[kind]]
  const added = step.map((line, index) => `${indent}${index === 0 ? '- ' : '  '}${line}`)
  const head = lines[start]!.replace(/\[\s*\]/, '').trimEnd()
  const next = [...lines.slice(0, start), head, ...lines.slice(start + 1, end), ...added, ...lines.slice(end)]
  return { text: `${next.join('\n')}\n`, line: end + 1 }
}

/** Line of a step, from 1. */
export function lineOf(text: string, step: string): number | undefined {
  const found = text.split('\n').findIndex((line) => names(line).includes(step))
  return found < 0 ? undefined : found + 1
}
