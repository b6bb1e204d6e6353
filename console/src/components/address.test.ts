import { expect, test } from 'vitest'

import { hostOf } from './address'

test('an address is shortened to its host and port', () => {
  expect(hostOf('http://10.0.0.7:9999/')).toBe('10.0.0.7:9999')
  expect(hostOf('https://executor.example.com/jobs')).toBe('executor.example.com')
  expect(hostOf('http://[fd00::7]:9999/')).toBe('[fd00::7]:9999')
  expect(hostOf('no address')).toBe('no address')
})
