// Spans of time, and how finely they are counted.

import { DAY, HOUR, MINUTE, SECOND } from '../time/units'

/** From when until when, in milliseconds. */
export interface Span {
  from: number
  until: number
}

const STEPS = [10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY]

/** About so many buckets fit a chart well; the centre gives at most 400. */
const WANTED = 60

/** The smallest round step with which a span has about as many buckets as fit. */
export const chooseStep = (spanMs: number): number =>
  STEPS.find((step) => spanMs / step <= WANTED) ?? Math.ceil(spanMs / WANTED / DAY) * DAY
