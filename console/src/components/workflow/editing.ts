// How the drawing of a workflow is changed.

/** A connection, by its second step and its position among the needs of that. */
export interface Chosen {
  to: string
  need: number
}

export interface Editing {
  /** The selected connection. */
  edge?: Chosen
  choose: (edge: Chosen) => void
  connect: (from: string, to: string) => void
  add: () => void
  /** Takes a key that was pressed at a step or a connection; false if it means nothing here. */
  key: (event: KeyboardEvent, step?: string) => boolean
}
