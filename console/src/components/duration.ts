// Durations as people enter them.

import { DAY, HOUR, MINUTE, SECOND } from '../time/units'

export type Unit = 'ms' | 's' | 'm' | 'h' | 'd'
export const UNITS: Unit[] = ['ms', 's', 'm', 'h', 'd']

const SIZES: Record<Unit, number> = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY }

/** The largest unit in which a duration is a whole number. */
export function split(ms: number): { amount: number; unit: Unit } {
  if (ms === 0) return { amount: 0, unit: 's' }
  const unit = UNITS.findLast((candidate) => ms % SIZES[candidate] === 0) ?? 'ms'
  return { amount: ms / SIZES[unit], unit }
}

export const join = (amount: number, unit: Unit) => Math.round(amount * SIZES[unit])
