// Whether the window is as narrow as a phone's: some rows are laid out otherwise then.

const narrow = matchMedia('(max-width: 720px)')

class Width {
  phone = $state(narrow.matches)

  constructor() {
    narrow.addEventListener('change', () => (this.phone = narrow.matches))
  }
}

export const width = new Width()
