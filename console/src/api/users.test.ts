import { expect, test } from 'vitest'

import rules from '../../../crates/server/src/users/password.rs?raw'
import { PASSWORD_MIN } from './users'

test('the console asks for passwords as long as the server does', () => {
  expect(rules).toContain(`const LENGTH_MIN: usize = ${PASSWORD_MIN};`)
})
