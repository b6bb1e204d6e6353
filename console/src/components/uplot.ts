// What all our charts share: the theme's colors, the reader's zone and words.

import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

import { clock, dayMonth, hourMinute, timeOfDay } from '../time/time.svelte'

/** A color of the theme. */
export const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

const FONT = '11px "Inter Variable", system-ui, sans-serif'

export function axis(values?: (value: number) => string): uPlot.Axis {
  return {
    stroke: color('ink-3'),
    font: FONT,
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
    gap: 6,
    size: values ? 52 : 28,
    values: values && ((_, splits) => splits.map((split) => values(split))),
  }
}

const DAY_S = 86_400
const MINUTE_S = 60

/** The axis of time, on the reader's clocks. */
export function timeAxis(): uPlot.Axis {
  return {
    ...axis(),
    space: 64,
    values: (_, splits, __, ___, step) =>
      splits.map((at) => (step >= DAY_S ? dayMonth(at * 1_000) : step >= MINUTE_S ? hourMinute(at * 1_000) : timeOfDay(at * 1_000))),
  }
}

/** Dates of uPlot on the reader's clocks, so that ticks fall on whole hours there. */
export const tzDate = (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), clock.zone)

/** A drag narrower than this is a click. */
const DRAG_MIN = 8

/** Calls with the span that somebody dragged across, in milliseconds, and takes the mark away. */
export const onDragged = (zoom: (from: number, until: number) => void) => (chart: uPlot) => {
  const { left, width } = chart.select
  if (width < DRAG_MIN) return
  zoom(chart.posToVal(left, 'x') * 1_000, chart.posToVal(left + width, 'x') * 1_000)
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
}

export { uPlot }
