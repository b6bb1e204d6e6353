// What a change of a workflow does to its steps.

import type { WorkflowBody } from '../../api/wire'
import { asLines } from '../diff'

export interface Changes {
  added: string[]
  changed: string[]
  removed: string[]
}

/** Steps that are new, different, or gone. */
export function changes(before: WorkflowBody, after: WorkflowBody): Changes {
  const old = new Map(before.steps.map((step) => [step.name, asLines(step)]))
  const now = new Set(after.steps.map((step) => step.name))
  return {
    added: after.steps.filter((step) => !old.has(step.name)).map((step) => step.name),
    changed: after.steps.filter((step) => old.has(step.name) && old.get(step.name) !== asLines(step)).map((step) => step.name),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  }
}
