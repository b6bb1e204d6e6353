import type { JobPage } from './wire'

/** One page of any list. */
export type Page<T> = Omit<JobPage, 'items'> & { items: T[] }
