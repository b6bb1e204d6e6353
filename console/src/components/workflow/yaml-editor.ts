// The text of a workflow in an editor: completion, problems marked where they are, and the cursor.

import { autocompletion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { EditorState, StateEffect, StateField } from '@codemirror/state'
import { Decoration, EditorView, type DecorationSet } from '@codemirror/view'

import type { WorkflowProblem } from '../../api/wire'
import { openEditor, type Editor } from '../editor'
import { expressionIn, suggest, type Scope } from './expression'

export interface Help {
  /** What an expression at a place of the text may name. */
  scope: (at: number) => Scope
  /** Values of a field that are known: names of steps, handlers, keys of jobs. */
  values: (field: 'needs' | 'handler' | 'job' | 'workflow', words: string) => Promise<string[]> | string[]
  onchange: (text: string) => void
  /** The cursor was moved, by the reader. */
  oncursor: (at: number) => void
}

export interface WorkflowEditor extends Editor {
  mark(problems: WorkflowProblem[]): void
  /** Brings a place into sight, without taking the focus. */
  reveal(at: number): void
}

const setMarks = StateEffect.define<DecorationSet>()
const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setMarks)) return effect.value
    return value.map(transaction.changes)
  },
  provide: (field) => EditorView.decorations.from(field),
})

const look = EditorView.theme({
  '.problem': { textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px', backgroundColor: 'var(--bad-soft)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)',
    color: 'var(--ink)',
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    overflow: 'hidden',
    boxShadow: 'var(--shadow-l)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '12px', maxHeight: '220px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--accent)' },
  '.cm-completionDetail': { color: 'var(--ink-3)', fontStyle: 'normal' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
})

/** Fields of a step. */
const FIELDS = [
  'name',
  'phase',
  'needs',
  'when',
  'at_least',
  'if',
  'app',
  'job',
  'handler',
  'script',
  'workflow',
  'approval',
  'wait_ms',
  'with',
  'param',
  'retry',
  'timeout_ms',
  'allow_failure',
  'delivery',
  'route',
]

export function openWorkflow(place: HTMLElement, text: string, label: string, readOnly: boolean, help: Help): WorkflowEditor {
  const editor = openEditor(place, text, 'yaml', label, readOnly, help.onchange, [
    marks,
    look,
    autocompletion({ override: [(context) => complete(context, help)], icons: false }),
    EditorState.allowMultipleSelections.of(false),
    EditorView.updateListener.of((update) => {
      const isTheirs = update.transactions.some((one) => one.isUserEvent('select') || one.isUserEvent('input'))
      if (isTheirs && update.view.hasFocus) help.oncursor(update.state.selection.main.head)
    }),
  ])
  const { view } = editor
  return {
    ...editor,
    mark(problems) {
      const document = view.state.doc
      const places = problems.flatMap(({ line, column = 1 }) => {
        if (line === undefined || line < 1 || line > document.lines) return []
        const { from, to, text } = document.line(line)
        const start = Math.min(from + column - 1, to)
        const end = start + (/^[^\s#]+( +[^\s#]+)*/.exec(text.slice(start - from))?.[0].length ?? 0)
        return end > start ? [Decoration.mark({ class: 'problem' }).range(start, end)] : []
      })
      view.dispatch({ effects: setMarks.of(Decoration.set(places, true)) })
    },
    reveal(at) {
      const anchor = Math.min(at, view.state.doc.length)
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) })
    },
  }
}

async function complete(context: CompletionContext, help: Help): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos)
  const before = line.text.slice(0, context.pos - line.from)
  const expression = expressionIn(before)
  if (expression !== undefined) {
    const found = await suggest(expression, help.scope(context.pos))
    if (!found || (found.from === expression.length && !context.explicit && !expression.endsWith('.'))) return null
    const options = found.items.map(({ name, hint, isFunction }) => ({ label: name, detail: hint, apply: isFunction ? `${name}(` : name }))
    return { from: context.pos - (expression.length - found.from), options, validFor: /^\w*$/ }
  }
  const value = /(?:^|[\s{,])(handler|job|workflow):\s+["']?([^\s"'{},#]*)$/.exec(before)
  const need = /needs:\s*\[(?:[^\]]*[,\s])?([\w]*)$/.exec(before) ?? /\bstep:\s+(\w*)$/.exec(before)
  if (value) return valuesOf(context, help, value[1] as 'handler', value[2]!)
  if (need) return valuesOf(context, help, 'needs', need[1]!)
  const key = /^\s+(?:- )?(\w+)$/.exec(before)
  if (!key) return null
  return { from: context.pos - key[1]!.length, options: FIELDS.map((label) => ({ label, apply: `${label}: ` })), validFor: /^\w*$/ }
}

async function valuesOf(context: CompletionContext, help: Help, field: 'needs' | 'handler' | 'job' | 'workflow', words: string) {
  const found = await help.values(field, words)
  return found.length === 0 ? null : { from: context.pos - words.length, options: found.map((label) => ({ label })) }
}
