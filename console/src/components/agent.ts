// What a browser says of itself, as people call it.

/** The first that is named is it: browsers name those they descend from, too. */
const BROWSERS: [string, RegExp][] = [
  ['Edge', /Edg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /OPR\/(\d+)/],
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /(?:Chrome|HeadlessChrome|CriOS)\/(\d+)/],
  ['Safari', /Version\/(\d+).*Safari/],
]
const SYSTEMS: [string, RegExp][] = [
  ['iOS', /iPhone|iPad/],
  ['Android', /Android/],
  ['Windows', /Windows/],
  ['macOS', /Macintosh/],
  ['Linux', /Linux/],
]

/** "Firefox 140 · Linux", or what it says, where that is something else. */
export function agentName(agent: string): string {
  for (const [name, pattern] of BROWSERS) {
    const version = agent.match(pattern)?.[1]
    if (version === undefined) continue
    const system = SYSTEMS.find(([, pattern]) => pattern.test(agent))?.[0]
    return [`${name} ${version}`, system].filter(Boolean).join(' · ')
  }
  return agent
}
