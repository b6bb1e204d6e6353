// Why a step has not run, in plain words.

import type { StepBody, StepView, WorkflowRunView } from '../../api/wire'
import { text } from '../../text/words.svelte'
import { full } from '../../time/time.svelte'
import { PHASES } from './graph'
import { asks } from './step'

/** Reasons why a step does not run, or did not; none if it does or did. */
export function why(step: StepView, definition: StepBody | undefined, of: WorkflowRunView): string[] {
  const t = text.t.steps.why
  switch (step.state) {
    case 'held':
      return [t.paused]
    case 'waiting':
      return [...(asks(step) ? [approvers(definition)] : []), ...(step.due_at ? [t.until(full(step.due_at))] : [])]
    case 'blocked':
      return [...blocked(step, definition, of), ...(of.paused ? [t.paused] : [])]
    case 'skipped':
      return skipped(step, definition, of)
    case 'unreached': {
      const failed = of.steps.filter((one) => step.needs.includes(one.name) && ['failed', 'unreached', 'cancelled'].includes(one.state))
      return [failed.length > 0 ? t.failedNeeds(named(failed)) : t.cannot, ...rule(step, definition)]
    }
    case 'cancelled': {
      const failed = of.steps.filter((one) => one.state === 'failed')
      return [failed.length > 0 ? t.stoppedBy(named(failed)) : t.cancelled]
    }
    default:
      return []
  }
}

function approvers(definition: StepBody | undefined): string {
  const names = definition?.approval?.approvers ?? []
  return names.length > 0 ? text.t.steps.why.approvers(list(names, 'disjunction')) : text.t.steps.why.anyOperator
}

function blocked(step: StepView, definition: StepBody | undefined, of: WorkflowRunView): string[] {
  const t = text.t.steps.why
  if (PHASES.indexOf(of.phase) < PHASES.indexOf(step.phase)) return [step.phase === 'finally' ? t.atEnd : t.afterFailure]
  const open = of.steps.filter((one) => step.needs.includes(one.name) && one.ended_at === null)
  return [...(open.length > 0 ? [t.needs(named(open))] : []), ...rule(step, definition)]
}

function skipped(step: StepView, definition: StepBody | undefined, of: WorkflowRunView): string[] {
  const t = text.t.steps.why
  const notTaken = step.needs.filter((_, index) => step.taken[index] === false)
  if (notTaken.length > 0) return [t.notTaken(list(notTaken)), ...rule(step, definition)]
  if (definition?.if !== undefined) return [t.conditionFalse(definition.if)]
  return step.phase === 'on_failure' && of.ended_at !== null ? [t.noFailure] : []
}

/** Which ends of its needs open the step, if there are several. */
function rule(step: StepView, definition: StepBody | undefined): string[] {
  if (step.needs.length < 2) return []
  const t = text.t.steps
  if (definition?.at_least !== undefined && definition.at_least !== null) return [t.why.atLeast(definition.at_least)]
  return [text.t.values.joinRule[definition?.when ?? 'joined']]
}

const named = (steps: StepView[]) => list(steps.map((step) => `${step.name} (${text.t.values.stepState[step.state]})`))

/** Names in a list; of many only the first. */
function list(names: string[], type: Intl.ListFormatType = 'conjunction'): string {
  const shown = names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX), text.t.steps.more(names.length - NAMES_MAX)] : names
  return new Intl.ListFormat(text.locale, { type }).format(shown)
}

const NAMES_MAX = 6
