import { expect, test } from 'vitest'

const SOURCES = import.meta.glob<string>(['../**/*.{svelte,css,ts}', '!../**/*.test.ts'], { query: '?raw', import: 'default', eager: true })

test('colors are written in tokens.css only', () => {
  const written = Object.entries(SOURCES)
    .filter(([path]) => !path.endsWith('/tokens.css'))
    .flatMap(([path, source]) =>
      (source.match(/(?<![\w&])#[0-9a-f]{3,8}\b(?=[;'")\s])|\b(?:rgb|hsl)a?\([^)]*\)/gi) ?? []).map((color) => `${path}: ${color}`),
    )
  expect(written).toEqual([])
})
