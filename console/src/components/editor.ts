// The code editor: CodeMirror in a shadow tree of its own. There its styles are constructed sheets, which the page's
// content security policy allows, where a style element would be refused.

import { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory, redo, undo } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

import type { ScriptLanguage } from '../api/wire'

/** Languages that are written in an editor. */
export type EditorLanguage = ScriptLanguage | 'yaml'

/** Each language's rules are loaded when they are first needed. */
const LOADERS: Record<EditorLanguage, () => Promise<Extension>> = {
  shell: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell),
  python: async () => (await import('@codemirror/lang-python')).python(),
  python2: async () => (await import('@codemirror/lang-python')).python(),
  php: async () => (await import('@codemirror/lang-php')).php(),
  node: async () => (await import('@codemirror/lang-javascript')).javascript(),
  powershell: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/powershell')).powerShell),
  groovy: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/groovy')).groovy),
  yaml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/yaml')).yaml),
}

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', color: 'var(--ink)', backgroundColor: 'var(--surface)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontVariantLigatures: 'none', lineHeight: '1.65' },
  '.cm-content': { caretColor: 'var(--accent)', padding: '12px 0' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--ink-3)', border: 'none', paddingLeft: '6px' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 26%, transparent) !important',
  },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--ink)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--warn-soft)' },
})

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.modifier], color: 'var(--accent)', fontWeight: '550' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment, tags.meta], color: 'var(--ink-3)', fontStyle: 'italic' },
  { tag: [tags.function(tags.variableName), tags.standard(tags.variableName), tags.definition(tags.variableName)], color: 'var(--busy)' },
  { tag: [tags.typeName, tags.className, tags.tagName], color: 'var(--bad)' },
])

/** Typing over a selection is done here. Left to the browser, it joins the lines itself and gives the rest a style of its
 * own, which the page's policy refuses. */
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== 'insertText' || event.data === null || event.isComposing || view.state.readOnly) return false
    if (view.state.selection.ranges.every((range) => range.empty)) return false
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
    event.preventDefault()
    return true
  },
})

export interface Editor {
  view: EditorView
  show(source: string): void
  /** Replaces a part, as a change that is undone by itself. */
  change(edit: { from: number; to: number; insert: string }): void
  language(language: EditorLanguage): void
  /** Puts the cursor on a line, from 1, and brings it into sight. */
  jump(line: number, column?: number): void
  undo(): void
  redo(): void
  destroy(): void
}

/** Puts an editor into a place. */
export function openEditor(
  place: HTMLElement,
  source: string,
  language: EditorLanguage,
  label: string,
  readOnly: boolean,
  onchange: (source: string) => void,
  more: Extension = [],
): Editor {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' })
  const rules = new Compartment()
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: source,
      extensions: [
        lineNumbers(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        highlightSelectionMatches(),
        indentUnit.of(language === 'yaml' ? '  ' : '    '),
        keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
        syntaxHighlighting(colors),
        typeOver,
        look,
        rules.of([]),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorState.readOnly.of(readOnly),
        more,
        EditorView.updateListener.of((update) => update.docChanged && onchange(update.state.doc.toString())),
      ],
    }),
  })
  // Long lines are scrolled by keyboard, too.
  view.scrollDOM.tabIndex = 0
  const use = (next: EditorLanguage) => void LOADERS[next]().then((extension) => view.dispatch({ effects: rules.reconfigure(extension) }))
  use(language)
  return {
    view,
    change: (changes) => view.dispatch({ changes, annotations: isolateHistory.of('full'), scrollIntoView: true }),
    show: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    language: use,
    jump(line, column = 1) {
      const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines))
      const anchor = Math.min(found.from + column - 1, found.to)
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) })
      view.focus()
    },
    undo: () => void undo(view),
    redo: () => void redo(view),
    destroy: () => view.destroy(),
  }
}
