import { get, post, put, remove } from './call'
import type { Me, SessionView } from './wire'

export const signIn = (user: string, password: string) => post<Me>('/v1/session', { user, password })
export const signOut = () => remove('/v1/session')
export const me = () => get<Me>('/v1/me')
export const changePassword = (old: string, fresh: string) => put<void>('/v1/me/password', { old, new: fresh })
export const sessions = () => get<SessionView[]>('/v1/me/sessions')
export const endSession = (id: string) => remove(`/v1/me/sessions/${encodeURIComponent(id)}`)
