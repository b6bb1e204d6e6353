// Short confirmations that go away by themselves.

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
