import { expect, test } from 'vitest'

import { StepState } from '../../api/wire'
import { stateOfCell } from './cells'

test('every state has a letter of its own', () => {
  const letters = 'BHOWSFKUC'
  expect([...letters].map(stateOfCell).sort()).toEqual([...StepState].sort())
  expect(stateOfCell('-')).toBeUndefined()
  expect(stateOfCell(undefined)).toBeUndefined()
})
