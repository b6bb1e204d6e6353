/** What a new workflow begins with. */
export const TEMPLATE = `steps:
  - name: first
    job: key/of/a/job
`
