// Spans of time, and how finely they are counted.

/** From when until when, in milliseconds. */
export interface Span {
  from: number
  until: number
}

const STEPS = [10_000, 30_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000]

/** About so many buckets fit a chart well; the centre gives at most 400. */
const WANTED = 60

/** The smallest round step with which a span has about as many buckets as fit. */
export const chooseStep = (spanMs: number): number =>
  STEPS.find((step) => spanMs / step <= WANTED) ?? Math.ceil(spanMs / WANTED / 86_400_000) * 86_400_000
