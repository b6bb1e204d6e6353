// How a job is doing, from its last runs.

import type { RunView } from '../api/wire'
import { isOver } from './tone'

export interface Health {
  word: 'good' | 'flaky' | 'bad' | 'none'
  /** The share of its runs that succeeded, of those that are over. */
  success: number | undefined
  /** How many of the newest ended alike, and how. */
  streak: { good: boolean; count: number } | undefined
  /** Half of its successful runs took no longer. */
  typicalMs: number | undefined
  lastSuccess: string | null
  lastFailure: string | null
}

/** From runs, newest first. Runs that somebody ended are neither good nor bad. */
export function health(runs: RunView[]): Health {
  const over = runs.filter((run) => isOver(run.state) && run.state !== 'cancelled')
  const good = over.filter((run) => run.state === 'succeeded')
  const firstGood = over[0]?.state === 'succeeded'
  const turn = over.findIndex((run) => (run.state === 'succeeded') !== firstGood)
  const count = turn < 0 ? over.length : turn
  const took = good.flatMap((run) => (run.took_ms === null ? [] : [run.took_ms])).sort((a, b) => a - b)
  return {
    word: over.length === 0 ? 'none' : !firstGood ? 'bad' : good.length < over.length * 0.95 ? 'flaky' : 'good',
    success: over.length === 0 ? undefined : good.length / over.length,
    streak: over.length === 0 ? undefined : { good: firstGood, count },
    typicalMs: took[Math.floor(took.length / 2)],
    lastSuccess: good[0]?.ended_at ?? null,
    lastFailure: over.find((run) => run.state !== 'succeeded')?.ended_at ?? null,
  }
}
