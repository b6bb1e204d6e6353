import { expect, test } from 'vitest'

import { rulesOf, withoutZone } from './schedule'

test('the zone at the end of the words is left out where it is the given one', () => {
  expect(withoutZone('At 02:00, every day (Asia/Shanghai)', 'Asia/Shanghai')).toBe('At 02:00, every day')
  expect(withoutZone('每天 02:00（Asia/Shanghai）', 'Asia/Shanghai')).toBe('每天 02:00')
  expect(withoutZone('At 02:00, every day (America/New_York)', 'Asia/Shanghai')).toBe('At 02:00, every day (America/New_York)')
})

test('each line that is not blank is a rule', () => {
  expect(rulesOf('  workday 1 of month at 09:00 \n\n cron 0 0 12 ? * SAT\n')).toEqual([
    'workday 1 of month at 09:00',
    'cron 0 0 12 ? * SAT',
  ])
  expect(rulesOf('\n ')).toEqual([])
})
