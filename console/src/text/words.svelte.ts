// The reader's language, and its words.

import { wordsFor, type Language } from './both'
import { en, type Words } from './en'
import { zh } from './zh'

const DICTIONARIES: Record<Language, Words> = { en, zh }
const KEPT = 'tickwright.language'

class Text {
  language = $state<Language>(first())

  get t(): Words {
    return DICTIONARIES[this.language]
  }

  /** The language's name for `Intl` and for `lang`. */
  get locale(): string {
    return this.language === 'zh' ? 'zh-CN' : 'en-GB'
  }

  use(language: Language): void {
    this.language = language
    localStorage.setItem(KEPT, language)
    document.documentElement.lang = this.locale
  }
}

function first(): Language {
  const kept = localStorage.getItem(KEPT)
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export const text = new Text()

/** Numbers as the reader writes them. */
export const number = (value: number) => value.toLocaleString(text.locale)
export const percent = (part: number) => part.toLocaleString(text.locale, { style: 'percent', maximumFractionDigits: part < 1 ? 1 : 0 })

/** A problem in the reader's words: what happened, and what to do. */
export function inWords(code: string): [string, string] {
  return wordsFor(text.t.values.problem, code) ?? text.t.values.problem.unreachable
}
