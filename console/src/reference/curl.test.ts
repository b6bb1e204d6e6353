import { expect, test } from 'vitest'

import { curl } from './curl'

test('a command names what the reader has to replace, and quotes the body', () => {
  const origin = 'http://127.0.0.1:8080'
  expect(curl(origin, '/v1/session', 'post', { security: [] }, () => '')).toBe("curl -X POST 'http://127.0.0.1:8080/v1/session'")
  const content = { 'application/json': { schema: {} } }
  const command = curl(origin, '/v1/jobs/{job}', 'put', { security: [{}], requestBody: { content } }, () => `{"name":"it's"}`)
  expect(command).toBe(
    [
      `curl -X PUT 'http://127.0.0.1:8080/v1/jobs/{job}'`,
      `-H "Authorization: Bearer $TICKWRIGHT_KEY"`,
      `-H 'Content-Type: application/json'`,
      `-d '{"name":"it'\\''s"}'`,
    ].join(' \\\n  '),
  )
})
