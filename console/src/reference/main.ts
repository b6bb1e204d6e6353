// The API reference at `/v1/docs`: Swagger UI with the description of this very server.

import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'

import { CSRF_HEADER } from '../api/csrf'
import { curlPlugin } from './curl'
import '../styles/tokens.css'
import './reference.css'
import { theme } from '../theme.svelte'

theme.start()

let csrf: Promise<string | undefined> | undefined

/** The CSRF token of the session in the browser's cookie, if there is one. */
const token = () =>
  (csrf ??= fetch('/v1/me').then(async (response) => (response.ok ? ((await response.json()) as { csrf?: string }).csrf : undefined)))

SwaggerUI({
  url: '/v1/openapi.json',
  dom_id: '#reference',
  docExpansion: 'list',
  filter: true,
  defaultModelExpandDepth: 2,
  defaultModelsExpandDepth: 0,
  defaultModelRendering: 'model',
  displayRequestDuration: true,
  tryItOutEnabled: false,
  // Both would call foreign servers.
  validatorUrl: null,
  queryConfigEnabled: false,
  // The token is the browser's alone, and no part of a command to copy.
  showMutatedRequest: false,
  requestInterceptor: async (request) => {
    if (request.method !== undefined && request.method !== 'GET') {
      const secret = await token()
      if (secret !== undefined) request.headers[CSRF_HEADER] = secret
    }
    return request
  },
  plugins: [curlPlugin],
})
