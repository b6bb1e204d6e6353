import { get, post, put, query, remove } from './call'
import type { Page } from './page'
import type { ApiKeyBody, ApiKeyView, NewApiKey, UserBody, UserView } from './wire'

const user = (name: string) => `/v1/users/${encodeURIComponent(name)}`

/** Minimum length of a new password; the same as `LENGTH_MIN` in `crates/server/src/users/password.rs`. */
export const PASSWORD_MIN = 10

/** Returns all users, page by page. */
export async function users(): Promise<UserView[]> {
  const all: UserView[] = []
  let after: string | undefined
  do {
    const page = await get<Page<UserView>>(`/v1/users${query({ after, limit: 200 })}`)
    all.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return all
}

export const saveUser = (name: string, body: UserBody) => put<UserView>(user(name), body)
export const deleteUser = (name: string) => remove(user(name))
export const keys = () => get<ApiKeyView[]>('/v1/keys')
export const addKey = (body: ApiKeyBody) => post<NewApiKey>('/v1/keys', body)
export const endKey = (id: number) => remove(`/v1/keys/${id}`)
