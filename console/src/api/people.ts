import { get, post, put, remove } from './call'
import type { ApiKeyBody, ApiKeyView, NewApiKey, UserBody, UserView } from './wire'

const user = (name: string) => `/v1/users/${encodeURIComponent(name)}`

export const users = () => get<UserView[]>('/v1/users')
export const saveUser = (name: string, body: UserBody) => put<UserView>(user(name), body)
export const deleteUser = (name: string) => remove(user(name))
export const keys = () => get<ApiKeyView[]>('/v1/keys')
export const addKey = (body: ApiKeyBody) => post<NewApiKey>('/v1/keys', body)
export const endKey = (id: number) => remove(`/v1/keys/${id}`)
