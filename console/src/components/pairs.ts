/** The entries of a record whose keys are known. */
export const pairs = <K extends string>(record: Record<K, string>) => Object.entries(record) as [K, string][]
