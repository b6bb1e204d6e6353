// What changed between two texts, line by line: Myers' greedy algorithm, bounded.

export interface Line {
  kind: 'same' | 'added' | 'removed'
  text: string
}

/** Texts that differ in more lines than this are shown whole, since looking further would take too long. */
const EDITS_MAX = 800

/** The lines of both texts in order, or undefined if they differ too much. */
export function diff(before: string, after: string): Line[] | undefined {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  const max = Math.min(a.length + b.length, EDITS_MAX)
  // The furthest reached place in `a` on each diagonal, and a copy of it for every number of edits to walk back.
  const reach = new Map<number, number>([[1, 0]])
  const trail: Map<number, number>[] = []
  for (let edits = 0; edits <= max; edits++) {
    trail.push(new Map(reach))
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++
        y++
      }
      reach.set(k, x)
      if (x >= a.length && y >= b.length) return walkBack(a, b, trail)
    }
  }
  return undefined
}

function walkBack(a: string[], b: string[], trail: Map<number, number>[]): Line[] {
  const lines: Line[] = []
  let x = a.length
  let y = b.length
  for (let edits = trail.length - 1; edits >= 0; edits--) {
    const reach = trail[edits]!
    const k = x - y
    const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
    const previousK = down ? k + 1 : k - 1
    const previousX = edits === 0 ? 0 : (reach.get(previousK) ?? 0)
    const previousY = edits === 0 ? 0 : previousX - previousK
    while (x > previousX && y > previousY && x > 0 && y > 0) {
      lines.push({ kind: 'same', text: a[--x]! })
      y--
    }
    if (edits === 0) break
    if (down) lines.push({ kind: 'added', text: b[--y]! })
    else lines.push({ kind: 'removed', text: a[--x]! })
  }
  return lines.reverse()
}

export type Part = Line | { kind: 'hidden'; count: number }

/** The changes with a few lines around them; long stretches that are alike are folded. */
export function folded(lines: Line[], around = 3): Part[] {
  const near = new Set<number>()
  for (const [index, line] of lines.entries()) {
    if (line.kind !== 'same') for (let at = index - around; at <= index + around; at++) near.add(at)
  }
  const parts: Part[] = []
  for (const [index, line] of lines.entries()) {
    const last = parts.at(-1)
    if (near.has(index)) parts.push(line)
    else if (last?.kind === 'hidden') last.count++
    else parts.push({ kind: 'hidden', count: 1 })
  }
  return parts
}

/** A value as stable lines, so that two of them can be compared. */
export function asLines(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') {
    try {
      return asLines(JSON.parse(value))
    } catch {
      return value
    }
  }
  return JSON.stringify(sorted(value), null, 2)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}
