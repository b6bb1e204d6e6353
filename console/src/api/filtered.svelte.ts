// A list whose filters are part of the page's address, so that a view can be sent to a colleague.

import { untrack } from 'svelte'

import { router } from '../router.svelte'
import { List } from './list.svelte'
import type { Page } from './page'

export type Filter<Name extends string> = Partial<Record<Name, string>>

/** The values that the address gives to these names, and the list of what they let through; it begins anew when they change. */
export function filtered<Name extends string, T extends { id: number }>(
  names: readonly Name[],
  read: (filter: Filter<Name>, after: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
): { readonly filter: Filter<Name>; readonly list: List<T> } {
  // Compared as a text: an address that changes elsewhere is no other filter.
  const said = $derived(JSON.stringify(names.flatMap((name) => (router.params.get(name) ? [[name, router.params.get(name)]] : []))))
  const filter = $derived(Object.fromEntries(JSON.parse(said) as [Name, string][]) as Filter<Name>)
  const list = new List<T>((after, signal) => read(filter, after, signal))
  $effect(() => {
    void said
    untrack(() => list.restart())
  })
  return {
    get filter() {
      return filter
    },
    list,
  }
}
