// Alerts in the reader's words.

import type { AlertKind, AlertView } from '../api/wire'
import { wordsFor } from '../text/both'
import type { Words } from '../text/en'
import type { Tone } from './tone'

const TONES: Record<AlertKind, Tone> = { failed: 'bad', timed_out: 'bad', lost: 'bad', late: 'warn', not_run: 'warn', history_lost: 'bad' }

export const alertTone = (kind: AlertKind): Tone => TONES[kind]

/** A way by which people are told; one of a later version keeps its name. */
export const channelIn = (t: Words, channel: string) => wordsFor(t.values.channel, channel) ?? channel

/** By which ways people were told, or are to be, each once. */
export function channelsOf(alert: AlertView, t: Words): string {
  return [...new Set(alert.deliveries.map(({ channel }) => channelIn(t, channel)))].join(', ')
}
