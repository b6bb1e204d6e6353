// What components show, in a document.

import { createRawSnippet, flushSync, mount, unmount, type Component } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import { StepState, type RunState, type WorkflowRunView } from '../api/wire'
import { en } from '../text/en'
import { text } from '../text/words.svelte'
import Diff from './Diff.svelte'
import LogView from './LogView.svelte'
import ProblemNote from './ProblemNote.svelte'
import Rows from './Rows.svelte'
import StateBadge from './StateBadge.svelte'
import Timeline from './Timeline.svelte'
import Gantt from './workflow/Gantt.svelte'
import Grid from './workflow/Grid.svelte'
import StepBadge from './workflow/StepBadge.svelte'
import StepTable from './workflow/StepTable.svelte'

const NASTY = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'

let mounted: object | undefined

function show<P extends Record<string, unknown>>(component: Component<P>, props: P): HTMLElement {
  text.use('en')
  document.body.replaceChildren()
  mounted = mount(component as Component<Record<string, unknown>>, { target: document.body, props })
  flushSync()
  return document.body
}

afterEach(async () => {
  if (mounted) await unmount(mounted)
  mounted = undefined
})

test('every state of a run has a word and a shape', () => {
  const shapes = new Set<string>()
  for (const state of Object.keys(en.values.runState) as RunState[]) {
    const body = show(StateBadge, { state })
    expect(body.textContent).toContain(en.values.runState[state])
    shapes.add(body.querySelector('svg')!.innerHTML)
  }
  // Those that wait look alike, as do those in doubt and those being ended.
  expect(shapes.size).toBeGreaterThanOrEqual(7)
})

test('a step of a trace shows its offset from the step before, with one sign', () => {
  const body = show(Timeline, {
    steps: [
      { kind: 'scheduled', at: '2026-06-21T10:00:00.000Z' },
      { kind: 'claimed', at: '2026-06-21T09:59:58.700Z' },
      { kind: 'sent', at: '2026-06-21T10:00:00.000Z' },
    ],
    open: false,
    bad: false,
  })
  expect([...body.querySelectorAll('.gap')].map((gap) => gap.textContent)).toEqual(['−1.3 s', '+1.3 s'])
})

test('of a hundred thousand rows only those in sight exist', () => {
  const items = Array.from({ length: 100_000 }, (_, id) => ({ id }))
  const head = createRawSnippet(() => ({ render: () => '<span>head</span>' }))
  const row = createRawSnippet<[{ id: number }]>((item) => ({ render: () => `<div class="line">row ${item().id}</div>` }))
  const body = show(Rows as unknown as Component<Record<string, unknown>>, {
    items,
    head,
    row,
    label: 'rows',
    rowHeight: 50,
    more: false,
    loading: false,
    onend: () => {},
    columns: '1fr',
  })
  expect(body.querySelectorAll('.window .line').length).toBeLessThan(100)
  expect(body.textContent).toContain('row 0')
})

test('markup in a log is text', () => {
  const body = show(LogView, { lines: [NASTY, 'fine'], end: true, live: false, download: '/x' })
  expect(body.textContent).toContain(NASTY)
  expect(body.querySelector('img, script')).toBeNull()
})

test('markup in a difference is text', () => {
  const body = show(Diff, { before: 'a', after: NASTY })
  expect(body.textContent).toContain(NASTY)
  expect(body.querySelector('img, script')).toBeNull()
})

test('a problem is told in the reader’s words, with what the centre said', () => {
  const problem = { type: '', status: 409, title: '', code: 'app_offline' as const, detail: `no executor of ${NASTY}` }
  const body = show(ProblemNote, { problem })
  expect(body.textContent).toContain(en.values.problem.app_offline[0])
  expect(body.textContent).toContain(NASTY)
  expect(body.querySelector('img, script')).toBeNull()
})

test('every state of a step has a word and a shape of its own', () => {
  const shapes = new Set<string>()
  for (const state of StepState) {
    const body = show(StepBadge, { state })
    expect(body.textContent).toContain(en.values.stepState[state])
    shapes.add(body.querySelector('svg')!.innerHTML)
  }
  expect(shapes.size).toBe(StepState.length)
})

const RUN: WorkflowRunView = {
  run: 1,
  attempt: 1,
  date: '2026-06-21',
  inputs: {},
  phase: 'main',
  paused: false,
  begun_at: '2026-06-21T10:00:00Z',
  ended_at: '2026-06-21T10:00:10Z',
  steps: ['first', 'second'].map((name, index) => ({
    name,
    phase: 'main',
    needs: index === 0 ? [] : ['first'],
    taken: index === 0 ? [] : [true],
    state: index === 0 ? 'succeeded' : 'failed',
    run: 2,
    opened_at: `2026-06-21T10:00:0${index * 4}Z`,
    ended_at: `2026-06-21T10:00:0${index * 4 + 4}Z`,
    message: index === 0 ? null : NASTY,
  })),
}

test('a table of steps shows their messages as text', () => {
  const body = show(StepTable, { of: RUN, definitions: new Map(), onselect: () => {} })
  expect(body.textContent).toContain(NASTY)
  expect(body.querySelector('img, script')).toBeNull()
  expect(body.querySelectorAll('.window .line')).toHaveLength(2)
})

test('a time line has a bar for each step, where it was open', () => {
  const body = show(Gantt, { of: RUN, onselect: () => {} })
  const bars = [...body.querySelectorAll<HTMLElement>('.bar')].map((bar) => [bar.style.left, bar.style.width])
  expect(bars).toEqual([
    ['0%', '40%'],
    ['40%', '40%'],
  ])
  expect(body.querySelectorAll('.critical')).toHaveLength(2)
})

test('a cell of a grid leads to its step, and is empty if the run has none', () => {
  const run = { id: 7, scheduled_at: '2026-06-21T10:00:00Z', state: 'failed' as const, took_ms: 5, cells: 'SF-' }
  const body = show(Grid, { grid: { steps: ['first', 'second', 'third'], runs: [run], next: null } })
  const links = [...body.querySelectorAll('.space a')].map((link) => link.getAttribute('href'))
  expect(links).toEqual(['/runs/7?step=first', '/runs/7?step=second'])
  expect(body.textContent).toContain(en.steps.missing)
})
