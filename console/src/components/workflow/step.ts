// Steps of workflow runs: how they look, how long they took, and which of them decided how long the run took.

import type { StepState, StepView } from '../../api/wire'
import type { Tone } from '../tone'
import { PHASES } from './graph'

export const TONES: Record<StepState, Tone> = {
  blocked: 'idle',
  held: 'warn',
  open: 'busy',
  waiting: 'warn',
  succeeded: 'good',
  failed: 'bad',
  skipped: 'idle',
  unreached: 'idle',
  cancelled: 'idle',
}

const at = (time: string | null | undefined) => (time ? Date.parse(time) : undefined)

/** When a step was open, until now if it still is. */
export function span(step: StepView, now: number): { from: number; until: number } | undefined {
  const from = at(step.opened_at)
  if (from === undefined) return undefined
  return { from, until: Math.max(from, at(step.ended_at) ?? now) }
}

/**
 * The critical path: the steps without which the run would have ended earlier. It is followed back from the step that ended
 * last, to the one whose end opened it.
 */
export function criticalPath(steps: StepView[], now: number): Set<string> {
  const byName = new Map(steps.map((step) => [step.name, step]))
  const begun = (step: StepView) => at(step.opened_at) ?? at(step.ended_at) ?? now
  const ended = (step: StepView) => at(step.ended_at) ?? (step.opened_at ? now : undefined)
  const latest = (found: StepView[], before: number) =>
    found.filter((step) => (ended(step) ?? Infinity) <= before).sort((a, b) => ended(b)! - ended(a)!)[0]
  const path = new Set<string>()
  let step = latest(steps, now)
  while (step !== undefined && !path.has(step.name)) {
    path.add(step.name)
    // The steps that can have opened it: its needs, or those of the phases before.
    const { needs, phase } = step
    const earlier = PHASES.slice(0, PHASES.indexOf(phase))
    const candidates =
      needs.length > 0 ? needs.flatMap((name) => byName.get(name) ?? []) : steps.filter((one) => earlier.includes(one.phase))
    step = latest(candidates, begun(step))
  }
  return path
}

/** Whether it waits for people, and not for a time. */
export const asks = (step: StepView) => step.state === 'waiting' && step.message !== null
