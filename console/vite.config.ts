import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

import { svelte } from '@sveltejs/vite-plugin-svelte'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

// Where `npm run dev` finds a scheduling centre.
const CENTRE = process.env.TICKWRIGHT_CENTRE ?? 'http://127.0.0.1:8080'

export default defineConfig({
  plugins: [svelte(), compressed()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The API reference is a page of its own: the console does not load it.
    rollupOptions: { input: ['index.html', 'docs.html'] },
  },
  // Tests compare numbers with the server's sources.
  server: { proxy: { '/v1': { target: CENTRE } }, fs: { allow: [process.env.VITEST ? '..' : '.'] } },
  test: { environment: 'happy-dom', include: ['src/**/*.test.ts'] },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
})

/** Writes `.br` and `.gz` beside every file that gets smaller by it, so that the server never compresses anything. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle({ dir }) {
      for (const entry of readdirSync(dir!, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(html|js|css|svg|json|txt)$/.test(entry.name)) continue
        const path = join(entry.parentPath, entry.name)
        const plain = readFileSync(path)
        for (const [ending, packed] of [
          ['br', brotliCompressSync(plain)],
          ['gz', gzipSync(plain, { level: 9 })],
        ] as const) {
          if (packed.length < plain.length) writeFileSync(`${path}.${ending}`, packed)
        }
      }
    },
  }
}
