// A curl command for each operation, to copy without sending it.

import type { Component, Operation, System } from 'swagger-ui-dist/swagger-ui-es-bundle.js'

/** The command for an operation; parts in braces and `$TICKWRIGHT_KEY` are for the reader to replace. */
export function curl(origin: string, path: string, method: string, operation: Operation, sample: (schema: unknown) => string): string {
  const lines = [`curl -X ${method.toUpperCase()} '${origin}${path}'`]
  if ((operation.security ?? []).length > 0) lines.push(`-H "Authorization: Bearer $TICKWRIGHT_KEY"`)
  const schema = operation.requestBody?.content?.['application/json']?.schema
  if (schema !== undefined) {
    lines.push(`-H 'Content-Type: application/json'`)
    lines.push(`-d '${sample(schema).replaceAll("'", `'\\''`)}'`)
  }
  return lines.join(' \\\n  ')
}

/** Shows the command above the responses. */
export const curlPlugin = () => ({
  wrapComponents: {
    responses: (Original: Component, system: System) => (props: { path: string; method: string }) => {
      const { createElement: element } = system.React
      const operation = system.specSelectors.specResolvedSubtree(['paths', props.path, props.method])?.toJS()
      if (operation === undefined) return element(Original, props)
      const sample = (schema: unknown) => system.fn.getSampleSchema(schema, 'application/json', { includeWriteOnly: true })
      const command = curl(location.origin, props.path, props.method, operation, sample)
      const copy = () => void navigator.clipboard.writeText(command)
      return element(
        'div',
        null,
        element(
          'div',
          { className: 'curl' },
          element('h4', null, 'curl'),
          // Browsers offer the clipboard only over TLS, and on this machine.
          isSecureContext ? element('button', { className: 'btn', type: 'button', onClick: copy }, 'Copy as curl') : null,
          element('pre', { tabIndex: 0 }, command),
        ),
        element(Original, props),
      )
    },
  },
})
