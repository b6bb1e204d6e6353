// A month as rows of weeks that begin on Monday.

export interface Cell {
  day: number
  /** How many of the given fires fall on it. */
  fires: number
  /** The first of them does. */
  first: boolean
  /** A work calendar skips or moves times of it, and it has no other fire. */
  off: boolean
  /** Name of its holiday. */
  holiday: string | undefined
}

/** A time with the name of its holiday. */
interface Named {
  local: string
  holiday?: string
}

/**
 * The month of the first of these local times (`2026-06-21T10:00:00+02:00`); cells before its first day are empty.
 * `marked` are times with names of holidays, also those that do not fire.
 */
export function month(locals: string[], marked: Named[] = []): { year: number; month: number; cells: (Cell | undefined)[] } | undefined {
  const first = locals[0]
  if (first === undefined) return undefined
  const counts = new Map<string, number>()
  for (const local of locals) counts.set(local.slice(0, 10), (counts.get(local.slice(0, 10)) ?? 0) + 1)
  const marks = new Set(marked.map((time) => time.local.slice(0, 10)))
  const names = new Map(marked.flatMap(({ local, holiday }) => (holiday ? [[local.slice(0, 10), holiday] as const] : [])))
  const year = parseInt(first.slice(0, 4))
  const number = parseInt(first.slice(5, 7))
  const before = (new Date(Date.UTC(year, number - 1, 1)).getUTCDay() + 6) % 7
  const days = new Date(Date.UTC(year, number, 0)).getUTCDate()
  const cells: (Cell | undefined)[] = Array.from({ length: before }, () => undefined)
  for (let day = 1; day <= days; day++) {
    const key = `${first.slice(0, 8)}${String(day).padStart(2, '0')}`
    const fires = counts.get(key) ?? 0
    const off = fires === 0 && marks.has(key)
    cells.push({ day, fires, first: key === first.slice(0, 10), off, holiday: names.get(key) })
  }
  return { year, month: number, cells }
}
