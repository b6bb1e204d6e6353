// Completion of expressions: inputs, outputs of the steps before, and functions.

export interface Scope {
  /** Inputs and their types. */
  inputs: Record<string, string>
  /** Steps that have ended before. */
  steps: string[]
  /** Output of a step in an earlier run, if there is one. */
  output: (step: string) => Promise<unknown>
}

export interface Suggestion {
  name: string
  /** Its type, or its value in an earlier run. */
  hint?: string
  isFunction?: boolean
}

export interface Suggestions {
  /** Where the word begins that they complete. */
  from: number
  items: Suggestion[]
}

/** Functions of expressions. */
export const FUNCTIONS = [
  'size',
  'contains',
  'startsWith',
  'endsWith',
  'string',
  'int',
  'uint',
  'double',
  'bool',
  'type',
  'dyn',
  'max',
  'min',
  'json',
  'add_days',
  'add_months',
  'format_date',
  'default',
  'has',
]

const RUN = ['id', 'date', 'business_date', 'scheduled_at', 'attempt', 'state']

/** What may stand at the end of an expression. */
export async function suggest(before: string, scope: Scope): Promise<Suggestions | undefined> {
  if (isInText(before)) return undefined
  const path = /(?:[A-Za-z_]\w*)?(?:\.\w*)*$/.exec(before)![0]
  const names = path.split('.')
  const word = names.pop()!
  const items = (await members(names, scope)).filter((item) => item.name.toLowerCase().startsWith(word.toLowerCase()))
  return items.length === 0 ? undefined : { from: before.length - word.length, items }
}

async function members([root, step, field, ...rest]: string[], scope: Scope): Promise<Suggestion[]> {
  if (root === undefined) {
    const roots = ['inputs', 'steps', 'run'].map((name) => ({ name }))
    return [...roots, ...FUNCTIONS.map((name) => ({ name, isFunction: true }))]
  }
  if (root === 'inputs' && step === undefined) return Object.entries(scope.inputs).map(([name, hint]) => ({ name, hint }))
  if (root === 'run' && step === undefined) return RUN.map((name) => ({ name }))
  if (root !== 'steps') return []
  if (step === undefined) return scope.steps.map((name) => ({ name }))
  if (!scope.steps.includes(step)) return []
  if (field === undefined) return [{ name: 'output' }, { name: 'state' }]
  if (field !== 'output') return []
  let value = await scope.output(step)
  for (const name of rest) value = isObject(value) ? value[name] : undefined
  if (!isObject(value)) return []
  return Object.entries(value)
    .filter(([name]) => /^[A-Za-z_]\w*$/.test(name))
    .map(([name, inner]) => ({ name, hint: short(inner) }))
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

function short(value: unknown): string {
  const written = JSON.stringify(value) ?? ''
  return written.length > HINT_MAX ? `${written.slice(0, HINT_MAX - 1)}…` : written
}
const HINT_MAX = 40

/** Whether the end is within a text in quotes. */
function isInText(expression: string): boolean {
  let quote = ''
  for (let at = 0; at < expression.length; at++) {
    const letter = expression[at]!
    if (quote !== '' && letter === '\\') at++
    else if (quote === '' && (letter === '"' || letter === "'")) quote = letter
    else if (letter === quote) quote = ''
  }
  return quote !== ''
}

/** The beginning of the expression that a line of a definition ends with; undefined if it does not end with one. */
export function expressionIn(line: string): string | undefined {
  const open = line.lastIndexOf('${{')
  if (open >= 0 && !line.slice(open).includes('}}')) return line.slice(open + 3)
  // Texts in the quotes of YAML: those of the expression are the other ones.
  return /\bif"?:\s+(?:"((?:[^"\\]|\\.)*)|'((?:[^']|'')*)|([^"'#].*|))$/
    .exec(line)
    ?.slice(1)
    .find((part) => part !== undefined)
}
