// Something read from the centre, with the states every page has to show: not there yet, there, failed.

import { asProblem } from './call'
import type { Problem } from './problem'

/** A value that can be read again. A failed reload keeps what was there and says what went wrong. */
export class Loaded<T> {
  value = $state.raw<T>()
  problem = $state.raw<Problem>()
  #read: () => Promise<T>
  #turn = 0

  constructor(read: () => Promise<T>) {
    this.#read = read
    void this.reload()
  }

  async reload(): Promise<void> {
    const turn = ++this.#turn
    try {
      const value = await this.#read()
      if (turn !== this.#turn) return
      this.value = value
      this.problem = undefined
    } catch (error) {
      if (turn === this.#turn) this.problem = asProblem(error)
    }
  }
}
