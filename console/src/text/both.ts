// Words of both languages side by side.

export type Language = 'en' | 'zh'

/** One text in both languages. */
export type Both<Word = string> = Record<Language, Word>

/** A text in both languages for each value. */
export type Each<Value extends string, Word = string> = Record<Value, Both<Word>>

/** The texts of one language. */
export type In<Tree> = Tree extends Both<infer Word> ? Word : { [Key in keyof Tree]: In<Tree[Key]> }

export function inLanguage<Tree extends object>(tree: Tree, language: Language): In<Tree> {
  if (language in tree) return (tree as Both<unknown>)[language] as In<Tree>
  return Object.fromEntries(Object.entries(tree).map(([key, inner]) => [key, inLanguage(inner as object, language)])) as In<Tree>
}

/** The words for a value that a later version, or another program, may have chosen. */
export const wordsFor = <Word>(words: Record<string, Word>, value: string): Word | undefined => words[value]
