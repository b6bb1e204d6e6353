// What somebody did, in the reader's words.

import { wordsFor } from '../text/both'
import { text } from '../text/words.svelte'

/** The words for an action of the record; what XXL-JOB's tools ask for is named by its path. */
export const actionWords = (action: string): string => wordsFor(text.t.values.action, action) ?? action
