import { expect, test } from 'vitest'

import { List } from './list.svelte'
import type { Page } from './page'

interface Row {
  id: number
}

const rows = (from: number, until: number): Row[] => Array.from({ length: until - from }, (_, index) => ({ id: from + index }))

/** A list of so many rows, in pages of 100. */
const source =
  (count: number) =>
  async (after: string | undefined): Promise<Page<Row>> => {
    const from = Number(after ?? 0)
    const until = Math.min(from + 100, count)
    return { items: rows(from, until), next: until < count ? String(until) : undefined, total: count }
  }

test('pages are read one after the other until there are no more', async () => {
  const list = new List<Row>(source(250))
  for (let turn = 0; turn < 5; turn++) await list.load()
  expect(list.items.map((row) => row.id)).toEqual(rows(0, 250).map((row) => row.id))
  expect([list.more, list.total, list.fresh]).toEqual([false, 250, false])
})

test('an empty page with a next one is not the end', async () => {
  const list = new List<Row>(async (after) => (after === undefined ? { items: [], next: 'on' } : { items: rows(0, 1) }))
  await list.load()
  expect(list.items).toHaveLength(1)
})

test('a refresh shows what is new without forgetting what was scrolled to', async () => {
  let count = 150
  const list = new List<Row>(async (after) => source(count)(after))
  await list.load()
  await list.load()
  count = 151
  await list.refresh()
  expect(list.items).toHaveLength(151)
})

test('a row that moves while pages are read is shown once', async () => {
  const pages: Record<string, Page<Row>> = { '': { items: rows(0, 100), next: 'on' }, on: { items: rows(99, 120) } }
  const list = new List<Row>(async (after) => pages[after ?? '']!)
  expect(await list.loadAll()).toBe(true)
  expect(list.items.map((row) => row.id)).toEqual(rows(0, 120).map((row) => row.id))
})

test('who asks for a page that is being read waits for that one', async () => {
  const list = new List<Row>(source(1_000))
  await Promise.all([list.load(), list.load(), list.loadAll(), list.load()])
  expect(list.items).toHaveLength(1_000)
})

test('beginning anew ends the reading of all', async () => {
  const list = new List<Row>(source(100_000))
  const all = list.loadAll()
  await list.load()
  list.restart()
  expect(await all).toBe(false)
  await list.load()
  expect(list.items.length).toBeLessThan(1_000)
})

test('one row is shown anew, however far down it stands', async () => {
  const list = new List<Row & { on?: boolean }>(source(1_000))
  await list.loadAll()
  list.replace({ id: 900, on: true })
  expect(list.items.filter((row) => row.on).map((row) => row.id)).toEqual([900])
  expect(list.items).toHaveLength(1_000)
})

test('what goes wrong is kept to be shown, and ends the reading', async () => {
  const list = new List<Row>(async () => {
    throw new Error('cut')
  })
  await list.load()
  expect(list.problem?.code).toBe('unreachable')
  expect(list.more).toBe(false)
})
