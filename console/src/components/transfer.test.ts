import { expect, test } from 'vitest'

import type { JobView } from '../api/wire'
import { exported, parsed } from './transfer'

const job = {
  id: 7,
  key: 'orders/sync',
  app: 'orders',
  name: 'Sync <b>',
  schedule: { kind: 'cron', expression: '0 * * * * ?' },
  misfire: { kind: 'skip' },
  overlap: 'allow',
  retry: { count: 0, backoff: { kind: 'fixed', delay_ms: 0 } },
  delivery: 'probe',
  route: 'first',
  block: 'serial',
  children_mode: 'once',
  alert: false,
  schedule_text: 'every minute',
  next_fire_at: null,
  last_fire_at: null,
  created_at: null,
  updated_at: null,
  revision: 3,
  rights: ['view'],
} as JobView

test('what was exported can be imported, without what only the centre knows', () => {
  const [entry] = parsed(exported([job]))!
  expect(entry!.key).toBe('orders/sync')
  expect(entry!.job.name).toBe('Sync <b>')
  expect(entry!.job).not.toHaveProperty('id')
  expect(entry!.job).not.toHaveProperty('rights')
})

test('another file is not taken for one of jobs', () => {
  for (const text of [
    '',
    'x',
    '{}',
    '[]',
    '{"kind":"tickwright/jobs"}',
    '{"kind":"tickwright/jobs","jobs":[{}]}',
    '{"kind":"other","jobs":[]}',
  ])
    expect(parsed(text), text).toBeUndefined()
})
