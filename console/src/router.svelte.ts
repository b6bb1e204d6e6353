// Where the reader is. Links are ordinary links; a click on one of ours changes the page without loading it anew.

class Router {
  path = $state(location.pathname)
  search = $state(location.search)

  get params(): URLSearchParams {
    return new URLSearchParams(this.search)
  }

  go(to: string, { replace = false } = {}): void {
    const url = new URL(to, location.origin)
    if (url.pathname + url.search === location.pathname + location.search) replace = true
    history[replace ? 'replaceState' : 'pushState'](null, '', url)
    const moved = url.pathname !== this.path
    this.#read()
    if (moved) document.querySelector('main')?.scrollTo(0, 0)
  }

  /** Changes some of the query's values and keeps the others; empty ones are taken out. */
  filter(values: Record<string, string | undefined>): void {
    const params = this.params
    for (const [name, value] of Object.entries(values)) {
      if (value) params.set(name, value)
      else params.delete(name)
    }
    const text = params.toString()
    this.go(this.path + (text === '' ? '' : `?${text}`), { replace: true })
  }

  start(): void {
    addEventListener('popstate', () => this.#read())
    addEventListener('click', (event) => {
      const link = (event.target as Element | null)?.closest?.('a')
      if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
      if (link.origin !== location.origin || link.hasAttribute('download') || link.target !== '') return
      if (!isOurs(link.pathname)) return
      event.preventDefault()
      this.go(link.pathname + link.search)
    })
  }

  #read(): void {
    this.path = location.pathname
    this.search = location.search
  }
}

/** Paths below these belong to the server itself. */
const isOurs = (path: string) => !path.startsWith('/v1/') && !path.startsWith('/errors/')

export const router = new Router()

/** A path of our own that an address may send us on to, or the start page: nobody else's, however it is written. */
export function ownPath(next: string | null): string {
  const url = URL.canParse(next ?? '', location.origin) ? new URL(next ?? '', location.origin) : undefined
  return url?.origin === location.origin && isOurs(url.pathname) ? url.pathname + url.search : '/'
}

/** The values of a pattern such as `/jobs/:id` in a path, or undefined if it is another path. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const names = pattern.split('/')
  const parts = path.replace(/\/$/, '').split('/')
  if (pattern === '/') return path === '/' ? {} : undefined
  if (names.length !== parts.length) return undefined
  const values: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const isName = name.startsWith(':')
    const part = decoded(parts[index]!)
    if (part === undefined || (!isName && part !== name)) return undefined
    if (isName) values[name.slice(1)] = part
  }
  return values
}

/** A part of a path as it was meant, or undefined if it cannot be read. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
