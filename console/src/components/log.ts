// The lines of a log, as they arrive.

import type { LogPage } from '../api/wire'

/** Lines that are kept in the page; a longer log is downloaded. */
export const LINES_MAX = 200_000

/** The lines with those of one more page, which may bring some again that are there already. */
export function withPage(lines: string[], page: LogPage): string[] {
  if (page.text === '') return lines
  const fresh = page.text.replace(/\r?\n$/, '').split(/\r?\n/)
  const known = Math.max(0, lines.length - (page.from - 1))
  const more = fresh.slice(known)
  return more.length === 0 ? lines : [...lines, ...more].slice(0, LINES_MAX)
}

/** The numbers of the lines that hold these words, whatever their case. */
export function find(lines: string[], words: string): number[] {
  if (words === '') return []
  const wanted = words.toLowerCase()
  return lines.flatMap((line, index) => (line.toLowerCase().includes(wanted) ? [index] : []))
}

/** A line in parts, every second of which is a match. */
export function parts(line: string, words: string): string[] {
  if (words === '') return [line]
  const result: string[] = []
  const lower = line.toLowerCase()
  const wanted = words.toLowerCase()
  let from = 0
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    result.push(line.slice(from, at), line.slice(at, at + wanted.length))
    from = at + wanted.length
  }
  return [...result, line.slice(from)]
}
