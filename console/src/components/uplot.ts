// What all our charts share: the theme's colors, the reader's zone and words.

import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

import { clock, dayMonth, hourMinute, timeOfDay } from '../time/time.svelte'
import type { Span } from './span'

/** A color of the theme, or another of its values. */
export const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

function axis(values?: (value: number) => string): uPlot.Axis {
  return {
    stroke: color('ink-3'),
    font: `11px ${color('font')}`,
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
    gap: 6,
    size: values ? (_, shown) => widest(shown ?? []) : 28,
    values: values && ((_, splits) => splits.map((split) => values(split))),
  }
}

/** Letters of our font are about so wide, Chinese ones twice; the gap and a little air come on top. */
const LETTER = 6.6
const letters = (text: string) => text.length + (text.match(/\p{sc=Han}/gu)?.length ?? 0)
const widest = (shown: string[]) => Math.max(2, ...shown.map(letters)) * LETTER + 14

const DAY_S = 86_400
const MINUTE_S = 60

/** The axis of time, on the reader's clocks. */
function timeAxis(): uPlot.Axis {
  return {
    ...axis(),
    space: 64,
    values: (_, splits, __, ___, step) =>
      splits.map((at) => (step >= DAY_S ? dayMonth(at * 1_000) : step >= MINUTE_S ? hourMinute(at * 1_000) : timeOfDay(at * 1_000))),
  }
}

/** Dates of uPlot on the reader's clocks, so that ticks fall on whole hours there. */
const tzDate = (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), clock.zone)

/** What every chart over time has. Upwards it reaches from nought to a little more than its largest value. */
export function overTime(values: (value: number) => string, atLeast: number): Omit<uPlot.Options, 'width' | 'height' | 'series'> {
  return {
    tzDate,
    legend: { show: false },
    // Half a label of the time hangs over the right edge.
    padding: [10, 28, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.15, atLeast)] } },
    axes: [timeAxis(), axis(values)],
  }
}

/** The same for a given span, across which one can drag to see a part of it. */
export function zoomable(
  span: () => Span,
  values: (value: number) => string,
  atLeast: number,
  zoom: (span: Span) => void,
): Omit<uPlot.Options, 'width' | 'height' | 'series'> {
  const chart = overTime(values, atLeast)
  return {
    ...chart,
    cursor: { ...chart.cursor, drag: { x: true, y: false, setScale: false } },
    scales: { ...chart.scales, x: { range: () => [span().from / 1_000, span().until / 1_000] } },
    hooks: { setSelect: [onDragged(zoom)] },
  }
}

/** A drag narrower than this is a click. */
const DRAG_MIN = 8

/** Calls with the span that somebody dragged across, and takes the mark away. */
const onDragged = (zoom: (span: Span) => void) => (chart: uPlot) => {
  const { left, width } = chart.select
  if (width < DRAG_MIN) return
  zoom({ from: chart.posToVal(left, 'x') * 1_000, until: chart.posToVal(left + width, 'x') * 1_000 })
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
}

export { uPlot }
