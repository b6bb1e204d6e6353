// Durations as people enter them.

export type Unit = 'ms' | 's' | 'm' | 'h' | 'd'
export const UNITS: Unit[] = ['ms', 's', 'm', 'h', 'd']

const SIZES: Record<Unit, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The largest unit in which a duration is a whole number. */
export function split(ms: number): { amount: number; unit: Unit } {
  if (ms === 0) return { amount: 0, unit: 's' }
  const unit = UNITS.findLast((candidate) => ms % SIZES[candidate] === 0) ?? 'ms'
  return { amount: ms / SIZES[unit], unit }
}

export const join = (amount: number, unit: Unit) => Math.round(amount * SIZES[unit])
