// Light or dark. The root element carries the choice as `data-theme`; `system` follows the machine.

export type Choice = 'system' | 'light' | 'dark'

const KEPT = 'tickwright.theme'
const machine = matchMedia('(prefers-color-scheme: dark)')

class Theme {
  choice = $state<Choice>((localStorage.getItem(KEPT) as Choice | null) ?? 'system')
  machineDark = $state(machine.matches)

  get dark(): boolean {
    return this.choice === 'system' ? this.machineDark : this.choice === 'dark'
  }

  start(): void {
    machine.addEventListener('change', () => {
      this.machineDark = machine.matches
      this.#show()
    })
    this.#show()
  }

  use(choice: Choice): void {
    this.choice = choice
    localStorage.setItem(KEPT, choice)
    this.#show()
  }

  #show(): void {
    const root = document.documentElement
    root.dataset.theme = this.dark ? 'dark' : 'light'
    // Swagger UI's own name for it.
    root.classList.toggle('dark-mode', this.dark)
  }
}

export const theme = new Theme()
