// The letters of a grid: one for the state of a step in a run.

import type { StepState } from '../../api/wire'

const LETTERS: Record<string, StepState> = {
  B: 'blocked',
  H: 'held',
  O: 'open',
  W: 'waiting',
  S: 'succeeded',
  F: 'failed',
  K: 'skipped',
  U: 'unreached',
  C: 'cancelled',
}

/** The state of a cell; undefined if the run does not have the step. */
export const stateOfCell = (letter: string | undefined): StepState | undefined => LETTERS[letter ?? '']
