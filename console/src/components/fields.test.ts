import { expect, test } from 'vitest'

import { text } from '../text/words.svelte'
import { fieldsInWords } from './fields'

test('fields are called what the form calls them', () => {
  text.use('en')
  expect(fieldsInWords(['schedule', 'timeout_ms', 'of_a_later_version'])).toBe('Schedule, Timeout and of_a_later_version')
  text.use('zh')
  expect(fieldsInWords(['schedule', 'name'])).toBe('调度规则和名称')
  text.use('en')
})
