// What happens, as it happens: one stream for the whole console. Events are hints; whoever shows something reads it again.

import { onDestroy } from 'svelte'

import type { Event } from './wire'

type Listener = () => void

/** So long after a refusal the stream is asked for again. */
const AGAIN_MS = 5_000

class Events {
  /** Whether hints arrive now. */
  connected = $state(false)
  #source: EventSource | undefined
  #again: ReturnType<typeof setTimeout> | undefined
  #listeners = new Map<Event['kind'], Set<Listener>>()

  open(): void {
    if (this.#source !== undefined) return
    const source = new EventSource('/v1/events')
    source.onopen = () => {
      this.connected = true
      // Whatever happened while nobody listened is unknown: everything is read again.
      for (const kind of this.#listeners.keys()) this.#tell(kind)
    }
    source.onerror = () => {
      this.connected = false
      // The browser comes again by itself after a cut, but not after a refusal.
      if (source.readyState === EventSource.CLOSED && this.#source === source) {
        this.#source = undefined
        this.#again = setTimeout(() => this.open(), AGAIN_MS)
      }
    }
    source.onmessage = (message) => this.#hear(message.data as string)
    this.#source = source
  }

  close(): void {
    clearTimeout(this.#again)
    this.#source?.close()
    this.#source = undefined
    this.connected = false
  }

  on(kind: Event['kind'], listener: Listener): () => void {
    const listeners = this.#listeners.get(kind) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(kind, listeners)
    return () => listeners.delete(listener)
  }

  /** Has everything about jobs read again, for example in another language. */
  again(): void {
    this.#tell('jobs')
  }

  #hear(text: string): void {
    try {
      this.#tell((JSON.parse(text) as { kind: Event['kind'] }).kind)
    } catch {
      // A hint of a later version; nothing is lost by not understanding it.
    }
  }

  #tell(kind: Event['kind']): void {
    for (const listener of this.#listeners.get(kind) ?? []) listener()
  }
}

export const events = new Events()

/** At most one reload in this time, however many hints come. */
const CALM_MS = 1_000

/** Calls `listener` after hints of these kinds, not more often than is calm, while the component lives. */
export function onEvents(kinds: Event['kind'][], listener: Listener): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = 0
  const hint = () => {
    timer ??= setTimeout(
      () => {
        timer = undefined
        last = Date.now()
        listener()
      },
      Math.max(0, last + CALM_MS - Date.now()),
    )
  }
  const ends = kinds.map((kind) => events.on(kind, hint))
  onDestroy(() => {
    clearTimeout(timer)
    for (const end of ends) end()
  })
}
