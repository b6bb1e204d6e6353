import { expect, test } from 'vitest'

import { match, ownPath, router } from './router.svelte'

test('a path matches its pattern only', () => {
  expect(match('/jobs/:id', '/jobs/42')).toEqual({ id: '42' })
  expect(match('/jobs/:id', '/jobs/42/')).toEqual({ id: '42' })
  expect(match('/jobs/:id', '/jobs')).toBeUndefined()
  expect(match('/jobs/:id/edit', '/jobs/42/history')).toBeUndefined()
  expect(match('/', '/')).toEqual({})
  expect(match('/', '/jobs')).toBeUndefined()
  expect(match('/jobs/:id', '/jobs/a%20b')).toEqual({ id: 'a b' })
  expect(match('/jobs/:id', '/jobs/%E0%A4%A')).toBeUndefined()
})

test('an address sends nobody elsewhere', () => {
  expect(ownPath('/jobs?text=a')).toBe('/jobs?text=a')
  for (const next of [null, '', '//elsewhere/', '/\\elsewhere/', 'https://elsewhere/', 'javascript:alert(1)', 'http://[', '/v1/docs'])
    expect(ownPath(next), next ?? 'nothing').toBe('/')
})

test('filters are kept in the address, and empty ones leave it', () => {
  router.go('/jobs')
  router.filter({ text: 'a&b', app: 'orders' })
  expect(router.params.get('text')).toBe('a&b')
  router.filter({ text: '' })
  expect(router.search).toBe('?app=orders')
})
