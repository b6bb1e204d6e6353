// One request to the centre: JSON both ways, the session's second secret with every change, and problems as `ApiError`s.

import { text } from '../text/words.svelte'
import { CSRF_HEADER } from './csrf'
import type { Problem } from './problem'

/** The centre said no, or did not answer. */
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail)
  }
}

interface Options {
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

let csrf: string | undefined
let onSignedOut: () => void = () => {}

/** The secret that `GET /v1/me` gave, and what to do when the session is over. */
export function useSession(secret: string | undefined, signedOut: () => void): void {
  csrf = secret
  onSignedOut = signedOut
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, { signal })
export const post = <T>(path: string, body?: unknown, headers?: Record<string, string>) => call<T>('POST', path, { body, headers })
export const put = <T>(path: string, body: unknown, headers?: Record<string, string>) => call<T>('PUT', path, { body, headers })
export const remove = (path: string) => call<void>('DELETE', path, {})

async function call<T>(method: string, path: string, { body, headers, signal }: Options): Promise<T> {
  return (await answer(method, path, { body, headers, signal })).value as T
}

/** The same, with the answer's headers, for those who need its `ETag`. */
export async function answer(
  method: string,
  path: string,
  { body, headers = {}, signal }: Options,
): Promise<{ value: unknown; headers: Headers }> {
  const sent: Record<string, string> = { Accept: 'application/json', 'Accept-Language': text.language, ...headers }
  if (method !== 'GET' && csrf !== undefined) sent[CSRF_HEADER] = csrf
  if (body !== undefined) sent['Content-Type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: 'same-origin',
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(unreachable(0))
  }
  const answer = await response.text()
  if (response.ok) return { value: answer === '' ? undefined : JSON.parse(answer), headers: response.headers }
  const problem = parseProblem(answer, response.status)
  if (problem.code === 'not_signed_in') onSignedOut()
  throw new ApiError(problem)
}

/** What an error answer says; one that is not ours (a proxy's page) is told apart by its status alone. */
export function parseProblem(text: string, status: number): Problem {
  try {
    const problem = JSON.parse(text) as Problem
    if (typeof problem.code === 'string') return problem
  } catch {
    // Not JSON: a proxy's page, or nothing.
  }
  return unreachable(status)
}

function unreachable(status: number): Problem {
  return { type: '/errors/unreachable', status, title: '', code: 'unreachable', detail: status === 0 ? '' : `HTTP ${status}` }
}

/** Any error as a problem, to be shown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof ApiError) return error.problem
  return {
    type: '/errors/unreachable',
    status: 0,
    title: '',
    code: 'unreachable',
    detail: error instanceof Error ? error.message : String(error),
  }
}

/** A query string of what is there; empty values are left out. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const parts = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') parts.set(name, String(value))
  }
  const text = parts.toString()
  return text === '' ? '' : `?${text}`
}
