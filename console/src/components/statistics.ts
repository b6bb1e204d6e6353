// Numbers of a span of time, as charts show them.

import type { Statistics } from '../api/wire'
import type { Span } from './span'

export type StatisticsSpan = Statistics & Span

/** The middle of each step, in seconds, as charts count time. */
export const middles = ({ buckets, step_ms }: StatisticsSpan) => buckets.map((bucket) => (Date.parse(bucket.at) + step_ms / 2) / 1_000)
