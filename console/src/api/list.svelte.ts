// A long list that is read page by page as far as somebody scrolls.

import { asProblem } from './call'
import type { Page } from './page'
import type { Problem } from './problem'

export type Read<T> = (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>

/** At most so many rows are read again on a hint; whoever scrolled further reloads by hand. */
export const REFRESH_MAX = 400

export class List<T extends { id: number }> {
  items = $state.raw<T[]>([])
  total = $state<number>()
  problem = $state.raw<Problem>()
  /** Nothing is there yet. */
  fresh = $state(true)
  loading = $state(false)
  /** There may be more. */
  more = $state(true)
  readonly #read: Read<T>
  #next: string | undefined
  /** The rows that are here: one that moves while pages are read may come with two of them. */
  #known = new Set<number>()
  /** Over when the list begins anew. */
  #life = new AbortController()
  /** Reads take turns, so that none builds on rows that another is about to replace. */
  #turn: Promise<unknown> = Promise.resolve()
  #page: Promise<void> | undefined
  #refresh: Promise<void> | undefined

  constructor(read: Read<T>) {
    this.#read = read
  }

  /** Forgets everything and begins anew. */
  restart(): void {
    this.#life.abort()
    this.#life = new AbortController()
    this.#turn = Promise.resolve()
    this.#page = this.#refresh = undefined
    this.#next = undefined
    this.items = []
    this.#known = new Set()
    this.total = undefined
    this.problem = undefined
    this.fresh = true
    this.more = true
    this.loading = false
    void this.load()
  }

  /** Reads the next page, if there is one; who asks meanwhile waits for the same page. */
  load(): Promise<void> {
    if (!this.more) return Promise.resolve()
    this.loading = true
    return (this.#page ??= this.#inTurn(async (life) => {
      try {
        await this.#readPage(life)
      } catch (error) {
        if (life.aborted) return
        this.problem = asProblem(error)
        this.more = false
      }
      if (life.aborted) return
      this.fresh = false
      this.loading = false
      this.#page = undefined
    }))
  }

  /** Reads all pages that are left, and says whether the end was reached: not after a problem, nor if the list began anew. */
  async loadAll(): Promise<boolean> {
    const life = this.#life.signal
    while (this.more && !life.aborted) await this.load()
    return !life.aborted && this.problem === undefined
  }

  /** Shows a row as it is now, wherever it stands. */
  replace(row: T): void {
    this.items = this.items.map((item) => (item.id === row.id ? row : item))
  }

  /** Reads again what is shown, without a flicker. */
  refresh(): Promise<void> {
    if (this.loading || this.fresh) return Promise.resolve()
    return (this.#refresh ??= this.#inTurn(async (life) => {
      try {
        await this.#readAgain(life)
      } catch (error) {
        if (!life.aborted) this.problem = asProblem(error)
      }
      if (!life.aborted) this.#refresh = undefined
    }))
  }

  async #readPage(life: AbortSignal): Promise<void> {
    let page: Page<T>
    // A page may be empty and still have a next one.
    do {
      page = await this.#read(this.#next, life)
      if (life.aborted) return
      this.#take(page)
    } while (this.more && page.items.length === 0)
    this.items = [...this.items, ...added(page.items, this.#known)]
  }

  async #readAgain(life: AbortSignal): Promise<void> {
    const before = this.items
    const shown = Math.min(before.length, REFRESH_MAX)
    const known = new Set<number>()
    let items: T[] = []
    let total: number | undefined
    let after: string | undefined
    let page: Page<T>
    do {
      page = await this.#read(after, life)
      if (life.aborted) return
      items.push(...added(page.items, known))
      // Said with the first page only.
      total ??= page.total
      after = page.next
    } while (after !== undefined && items.length < shown)
    // What lies further down stays.
    if (before.length > REFRESH_MAX && before.length > items.length) items = items.concat(added(before.slice(items.length), known))
    else this.#take(page)
    this.items = items
    this.#known = known
    this.total = total ?? this.total
    this.problem = undefined
  }

  #inTurn(work: (life: AbortSignal) => Promise<void>): Promise<void> {
    const life = this.#life.signal
    const done = this.#turn.then(() => work(life))
    this.#turn = done
    return done
  }

  #take(page: Page<T>): void {
    this.#next = page.next
    this.more = page.next !== undefined
    this.total = page.total ?? this.total
  }
}

/** Those rows that are not known yet; from now on they are. */
const added = <T extends { id: number }>(rows: T[], known: Set<number>) => rows.filter((row) => !known.has(row.id) && known.add(row.id))
