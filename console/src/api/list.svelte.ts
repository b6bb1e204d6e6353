// A long list that is read page by page as far as somebody scrolls.

import { asProblem } from './call'
import type { Page, Problem } from './wire'

type Read<T> = (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>

/** At most so many rows are read again on a hint; whoever scrolled further reloads by hand. */
const REFRESH_MAX = 400

export class List<T extends { id: number }> {
  items = $state.raw<T[]>([])
  total = $state<number>()
  problem = $state.raw<Problem>()
  /** Nothing is there yet. */
  fresh = $state(true)
  loading = $state(false)
  /** There may be more. */
  more = $state(true)
  #next: string | undefined
  #read: Read<T>
  #abort: AbortController | undefined

  constructor(read: Read<T>) {
    this.#read = read
  }

  /** Forgets everything and begins anew, with another filter. */
  restart(read: Read<T>): void {
    this.#abort?.abort()
    this.#read = read
    this.#next = undefined
    this.items = []
    this.total = undefined
    this.problem = undefined
    this.fresh = true
    this.more = true
    this.loading = false
    void this.load()
  }

  /** Reads the next page, if there is one. A page may be empty and still have a next one. */
  async load(): Promise<void> {
    if (this.loading || !this.more) return
    this.loading = true
    const abort = (this.#abort = new AbortController())
    try {
      const page = await this.#read(this.#next, abort.signal)
      if (abort.signal.aborted) return
      this.items = [...this.items, ...page.items]
      this.#take(page)
    } catch (error) {
      if (abort.signal.aborted) return
      this.problem = asProblem(error)
      this.more = false
    }
    this.fresh = false
    this.loading = false
    if (this.more && this.items.length === 0) await this.load()
  }

  /** Reads again what is shown, without a flicker. */
  async refresh(): Promise<void> {
    if (this.loading || this.fresh) return
    const shown = Math.min(this.items.length, REFRESH_MAX)
    const abort = (this.#abort = new AbortController())
    try {
      const items: T[] = []
      let total: number | undefined
      let after: string | undefined
      let page: Page<T>
      do {
        page = await this.#read(after, abort.signal)
        if (abort.signal.aborted) return
        items.push(...page.items)
        // Said with the first page only.
        total ??= page.total
        after = page.next
      } while (after !== undefined && items.length < shown)
      if (this.items.length > REFRESH_MAX && this.items.length > items.length) {
        // What lies further down stays; rows that moved up are not shown twice.
        const seen = new Set(items.map((item) => item.id))
        this.items = [...items, ...this.items.slice(items.length).filter((item) => !seen.has(item.id))]
      } else {
        this.items = items
        this.#take(page)
      }
      this.total = total ?? this.total
      this.problem = undefined
    } catch (error) {
      if (!abort.signal.aborted) this.problem = asProblem(error)
    }
  }

  #take(page: Page<T>): void {
    this.#next = page.next
    this.more = page.next !== undefined
    this.total = page.total ?? this.total
  }
}
