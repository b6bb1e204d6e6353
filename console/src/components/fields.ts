// The fields of a job, in the words of its form.

import { text } from '../text/words.svelte'

/** Names of fields, as a reader knows them from the form; one of a later version stays as it is. */
export function fieldsInWords(fields: string[]): string {
  const known: Record<string, { label: string }> = text.t.fields
  const names = fields.map((field) => known[field]?.label ?? field)
  return new Intl.ListFormat(text.locale, { type: 'conjunction' }).format(names)
}
