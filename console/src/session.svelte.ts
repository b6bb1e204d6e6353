// Who is signed in.

import { useSession } from './api/call'
import { events } from './api/events.svelte'
import * as api from './api/session'
import type { AppView, Me, Right } from './api/wire'
import { router } from './router.svelte'

class Session {
  me = $state.raw<Me>()
  /** Whether it is known yet that somebody is, or nobody. */
  known = $state(false)

  async find(): Promise<void> {
    useSession(undefined, () => {})
    try {
      this.#begin(await api.me())
    } catch {
      this.me = undefined
    }
    this.known = true
  }

  async signIn(user: string, password: string): Promise<void> {
    useSession(undefined, () => {})
    this.#begin(await api.signIn(user, password))
  }

  async signOut(): Promise<void> {
    await api.signOut()
    this.#end()
  }

  #begin(me: Me): void {
    this.me = me
    useSession(me.csrf, () => this.#end())
    events.open()
  }

  #end(): void {
    events.close()
    this.me = undefined
    useSession(undefined, () => {})
    const here = router.path + router.search
    router.go(here === '/' || router.path === '/sign-in' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(here)}`)
  }
}

export const session = new Session()

/** Whether somebody may do that with a job or an app. */
export const may = (thing: { rights: Right[] } | undefined, right: Right) => thing?.rights.includes(right) ?? false

/** The same, where only the app's name is known. */
export const mayIn = (app: string, right: Right) =>
  session.me?.admin || session.me?.grants.some((grant) => grant.app === app && grant.rights.includes(right)) || false

/** The apps in which somebody may do that. */
export const where = (apps: AppView[], right: Right) => apps.filter((app) => may(app, right))
