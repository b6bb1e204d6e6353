import { defineConfig } from 'vitest/config'

// One story after the other, in a real browser against a real centre.
export default defineConfig({
  test: { environment: 'node', include: ['browser/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false },
})
