import { expect, test } from 'vitest'

import { changes } from './changes'

test('steps are added, changed or removed, whatever the order of their fields', () => {
  const before = {
    steps: [
      { name: 'a', job: 'x' },
      { name: 'b', needs: ['a'], job: 'y' },
      { name: 'c', wait_ms: 1 },
    ],
  }
  const after = {
    steps: [
      { job: 'x', name: 'a' },
      { name: 'b', needs: ['a'], job: 'z' },
      { name: 'd', wait_ms: 1 },
    ],
  }
  expect(changes(before, after)).toEqual({ added: ['d'], changed: ['b'], removed: ['c'] })
})
