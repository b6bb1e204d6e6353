import { get, post, put, remove } from './call'
import type { AppBody, AppView, ExecutorView, NewToken, TokenView } from './wire'

const path = (name: string) => `/v1/apps/${encodeURIComponent(name)}`

export const apps = () => get<AppView[]>('/v1/apps')
export const save = (name: string, body: AppBody) => put<AppView>(path(name), body)
export const destroy = (name: string) => remove(path(name))
export const tokens = (name: string) => get<TokenView[]>(`${path(name)}/tokens`)
export const addToken = (name: string) => post<NewToken>(`${path(name)}/tokens`)
export const endToken = (name: string, id: number) => remove(`${path(name)}/tokens/${id}`)
export const check = (name: string, address: string) => post<ExecutorView>(`${path(name)}/executors/check`, { address })
