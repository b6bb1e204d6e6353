import { expect, test } from 'vitest'

import { match, router } from './router.svelte'

test('a path matches its pattern only', () => {
  expect(match('/jobs/:id', '/jobs/42')).toEqual({ id: '42' })
  expect(match('/jobs/:id', '/jobs/42/')).toEqual({ id: '42' })
  expect(match('/jobs/:id', '/jobs')).toBeUndefined()
  expect(match('/jobs/:id/edit', '/jobs/42/history')).toBeUndefined()
  expect(match('/', '/')).toEqual({})
  expect(match('/', '/jobs')).toBeUndefined()
})

test('filters are kept in the address, and empty ones leave it', () => {
  router.go('/jobs')
  router.filter({ text: 'a&b', app: 'orders' })
  expect(router.params.get('text')).toBe('a&b')
  router.filter({ text: '' })
  expect(router.search).toBe('?app=orders')
})
