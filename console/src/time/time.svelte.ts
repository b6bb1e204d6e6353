// Instants and durations as people read them, in the reader's language and zone.

import { text } from '../text/words.svelte'
import { DAY, HOUR, MINUTE, SECOND } from './units'

const KEPT = 'tickwright.zone'

class Clock {
  /** Now, to the second: whatever counts down or up reads this. */
  now = $state(Date.now())
  /** The zone in which instants are shown; the browser's if empty. */
  chosen = $state(localStorage.getItem(KEPT) ?? '')

  get zone(): string {
    return this.chosen || browserZone
  }

  use(zone: string): void {
    this.chosen = zone
    localStorage.setItem(KEPT, zone)
  }

  start(): void {
    setInterval(() => (this.now = Date.now()), 1_000)
  }
}

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone
export const clock = new Clock()

const formats = new Map<string, Intl.DateTimeFormat>()

function formatter(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${text.locale} ${zone} ${JSON.stringify(options)}`
  let found = formats.get(key)
  if (found === undefined) {
    try {
      found = new Intl.DateTimeFormat(text.locale, { timeZone: zone, hourCycle: 'h23', ...options })
    } catch {
      // A zone that this browser does not know.
      found = new Intl.DateTimeFormat(text.locale, { timeZone: 'UTC', hourCycle: 'h23', ...options })
    }
    formats.set(key, found)
  }
  return found
}

const millis = (at: string | number) => (typeof at === 'number' ? at : Date.parse(at))

export const date = (at: string | number, zone = clock.zone) =>
  formatter(zone, { day: 'numeric', month: 'short', year: 'numeric' }).format(millis(at))
export const weekday = (at: string | number, zone = clock.zone) => formatter(zone, { weekday: 'short' }).format(millis(at))
export const dayMonth = (at: string | number, zone = clock.zone) => formatter(zone, { day: 'numeric', month: 'short' }).format(millis(at))
export const monthYear = (at: string | number, zone = clock.zone) => formatter(zone, { month: 'long', year: 'numeric' }).format(millis(at))
export const timeOfDay = (at: string | number, zone = clock.zone) =>
  formatter(zone, { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(millis(at))
export const hourMinute = (at: string | number, zone = clock.zone) =>
  formatter(zone, { hour: '2-digit', minute: '2-digit' }).format(millis(at))
export const precise = (at: string | number, zone = clock.zone) =>
  formatter(zone, { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 }).format(millis(at))
export const full = (at: string | number, zone = clock.zone) =>
  `${formatter(zone, { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }).format(millis(at))} ${timeOfDay(at, zone)}`

/** Today's as time, others with their day. */
export function short(at: string | number, zone = clock.zone): string {
  return date(at, zone) === date(clock.now, zone) ? timeOfDay(at, zone) : `${dayMonth(at, zone)} ${hourMinute(at, zone)}`
}

/** Year, month (from 1) and day on the clocks of a zone. */
export function civil(at: string | number, zone: string): [number, number, number] {
  const parts = Object.fromEntries(
    formatter(zone, { year: 'numeric', month: 'numeric', day: 'numeric', calendar: 'iso8601', numberingSystem: 'latn' })
      .formatToParts(millis(at))
      .map((part) => [part.type, part.value]),
  )
  return [parseInt(parts.year ?? '0'), parseInt(parts.month ?? '0'), parseInt(parts.day ?? '0')]
}

const STEPS: [number, 'd' | 'h' | 'min' | 's'][] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
]
const UNITS = {
  en: { d: ' d', h: ' h', min: ' min', s: ' s', ms: ' ms' },
  zh: { d: ' 天', h: ' 小时', min: ' 分钟', s: ' 秒', ms: ' 毫秒' },
}

/** A duration in at most two units: `340 ms`, `2.4 s`, `3 min 20 s`, `5 d 4 h`. */
export function duration(ms: number): string {
  const units = UNITS[text.language]
  if (ms < 0) return `−${duration(-ms)}`
  if (ms < 1_000) return `${Math.round(ms)}${units.ms}`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')}${units.s}`
  const index = STEPS.findIndex(([size]) => ms >= size)
  const [size, unit] = STEPS[index]!
  const whole = Math.floor(ms / size)
  const next = STEPS[index + 1]
  const rest = next ? Math.floor((ms - whole * size) / next[0]) : 0
  return `${whole}${units[unit]}${next && rest > 0 ? ` ${rest}${units[next[1]]}` : ''}`
}

/** The time between two steps, with its sign: `+1.3 s`, or `−1.3 s` if the second step came first. */
export const offset = (ms: number) => (ms < 0 ? duration(ms) : `+${duration(ms)}`)

/** How long a run took. Databases keep whole seconds, so that nothing means less than one. */
export const took = (ms: number) => (ms <= 0 ? `< ${duration(1_000)}` : duration(ms))

/** How far an instant is from now, in the largest unit: `in 5 min`, `3 h ago`. */
export function relative(at: string | number): string {
  const gap = millis(at) - clock.now
  const size = Math.abs(gap)
  if (size < 1_000) return text.t.common.now
  const [unitSize, unit] = STEPS.find(([step]) => size >= step) ?? STEPS[3]!
  const words = `${Math.floor(size / unitSize)}${UNITS[text.language][unit]}`
  return gap > 0 ? text.t.common.inTime(words) : text.t.common.ago(words)
}
