// The fields of a job, in the words of its form.

import type { JobBody } from '../api/wire'
import type { Words } from '../text/en'
import { text } from '../text/words.svelte'

const NAMES: Record<keyof JobBody, (form: Words['form']) => string> = {
  app: (form) => form.app,
  name: (form) => form.name,
  schedule: (form) => form.schedule,
  handler: (form) => form.handler,
  param: (form) => form.param,
  script: (form) => form.source,
  enabled: (form) => form.enabled,
  valid_from: (form) => form.validFrom,
  valid_until: (form) => form.validUntil,
  jitter_ms: (form) => form.jitter,
  misfire: (form) => form.misfire,
  overlap: (form) => form.overlap,
  retry: (form) => form.retry,
  delivery: (form) => form.delivery,
  timeout_ms: (form) => form.timeout,
  route: (form) => form.route,
  block: (form) => form.block,
  children: (form) => form.children,
  children_mode: (form) => form.childrenMode,
  alert: (form) => form.alert,
  alert_to: (form) => form.alertTo,
  author: (form) => form.author,
  tags: (form) => form.tags,
}

/** Names of fields, as a reader knows them from the form; one of a later version stays as it is. */
export function fieldsInWords(fields: string[]): string {
  const names = fields.map((field) => NAMES[field as keyof JobBody]?.(text.t.form) ?? field)
  return new Intl.ListFormat(text.locale, { type: 'conjunction' }).format(names)
}
