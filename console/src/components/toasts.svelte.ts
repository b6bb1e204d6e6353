// Short words about what was done, or was not; they go away by themselves.

import { asProblem } from '../api/call'
import { inWords } from '../text/words.svelte'

export interface Toast {
  id: number
  words: string
  tone: 'good' | 'bad'
  href?: string
}

const SHOWN_MS = 5_000

class Toasts {
  list = $state.raw<Toast[]>([])
  #last = 0

  say(words: string, { tone = 'good', href }: { tone?: 'good' | 'bad'; href?: string } = {}): void {
    const id = ++this.#last
    this.list = [...this.list, { id, words, tone, href }]
    setTimeout(() => (this.list = this.list.filter((toast) => toast.id !== id)), SHOWN_MS)
  }
}

export const toasts = new Toasts()

/** Does something that a button asks for; what goes wrong is said in the reader's words. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toasts.say(inWords(asProblem(error).code)[0], { tone: 'bad' })
  }
}
