import type { RunState } from '../api/wire'

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'idle'

const TONES: Record<RunState, Tone> = {
  waiting: 'idle',
  claimed: 'idle',
  cancelling: 'warn',
  unknown: 'warn',
  running: 'busy',
  succeeded: 'good',
  failed: 'bad',
  timed_out: 'bad',
  lost: 'bad',
  cancelled: 'idle',
}

export const toneOf = (state: RunState): Tone => TONES[state]

/** Whether nothing more happens to a run in this state. */
export const isOver = (state: RunState) => ['succeeded', 'failed', 'timed_out', 'lost', 'cancelled'].includes(state)
