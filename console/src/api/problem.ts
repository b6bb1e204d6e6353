import type * as wire from './wire'

/** An error of the centre, or `unreachable` when it did not answer at all. */
export interface Problem extends Omit<wire.Problem, 'code'> {
  code: wire.ProblemCode | 'unreachable'
}
