// The words of `/v1`, as `crates/protocol/src/v1` has them. Instants are RFC 3339 texts in UTC, durations milliseconds.

export type Instant = string

export interface Page<T> {
  items: T[]
  next?: string
  total?: number
}

export type ProblemCode =
  | 'malformed_request'
  | 'invalid_fields'
  | 'not_signed_in'
  | 'wrong_password'
  | 'not_allowed'
  | 'foreign_origin'
  | 'no_such_path'
  | 'not_found'
  | 'wrong_method'
  | 'conflict'
  | 'outdated'
  | 'too_large'
  | 'too_many_requests'
  | 'app_offline'
  | 'executor_unreachable'
  | 'executor_refused'
  | 'database_unavailable'
  | 'database_broken'

export interface FieldProblem {
  field: string
  detail: string
}

export interface Problem {
  type: string
  status: number
  title: string
  /** One of `ProblemCode`, or `unreachable` when the centre did not answer at all. */
  code: ProblemCode | 'unreachable'
  detail: string
  fields?: FieldProblem[]
}

export type Right = 'view' | 'operate' | 'edit' | 'script'
export const RIGHTS: Right[] = ['view', 'operate', 'edit', 'script']

export interface Grant {
  app: string
  rights: Right[]
}

export interface Me {
  user: string
  admin: boolean
  grants: Grant[]
  csrf?: string
  zone: string
}

export interface UserBody {
  password?: string
  admin: boolean
  disabled: boolean
  grants: Grant[]
}

export interface UserView {
  id: number
  name: string
  admin: boolean
  disabled: boolean
  grants: Grant[]
  changed_at: Instant | null
}

export interface SessionView {
  id: string
  ip: string
  agent: string
  opened_at: Instant
  seen_at: Instant
  current: boolean
}

export interface ApiKeyBody {
  name: string
  apps?: string[]
  rights: Right[]
  expires_at?: Instant
}

export interface ApiKeyView extends ApiKeyBody {
  id: number
  user: string
  created_at: Instant
  used_at: Instant | null
}

export interface NewApiKey {
  id: number
  key: string
}

export type Addressing = { kind: 'registered' } | { kind: 'manual'; addresses: string[] }

export interface AppBody {
  title: string
  addressing: Addressing
}

export interface ExecutorView {
  address: string
  state: 'alive' | 'suspect'
  seen_at: Instant | null
  suspect_since: Instant | null
  trouble?: Trouble
  handlers: string[]
}

/** Why the last call to an executor failed: a code of ours, and what was said at the time. */
export interface Trouble {
  code: string
  detail: string
}

export interface AppView extends AppBody {
  id: number
  name: string
  executors: ExecutorView[]
  /** Those that were there within a day and are not any more. */
  gone?: { address: string; seen_at: Instant }[]
  jobs: number
  rights: Right[]
}

export interface TokenView {
  id: number
  created_at: Instant | null
  expires_at: Instant | null
}

export interface NewToken {
  id: number
  token: string
}

export type CronDialect = 'quartz' | 'unix'

export type Schedule =
  | { kind: 'cron'; expression: string; dialect?: CronDialect; zone?: string; dst?: string }
  | { kind: 'fixed_rate'; every_ms: number; anchor?: Instant }
  | { kind: 'fixed_delay'; delay_ms: number }
  | { kind: 'once'; at: Instant }
  | { kind: 'none' }

export interface PreviewFire {
  at: Instant
  local: string
  clock_changed: boolean
}

export interface Preview {
  english: string
  chinese: string
  zone: string
  fires: PreviewFire[]
}

export type Misfire = { kind: 'skip' } | { kind: 'fire_once' } | { kind: 'fire_all'; window_ms: number; max: number }
export type Overlap = 'allow' | 'skip' | 'wait' | 'replace'
export type Delivery = 'at_most_once' | 'probe' | 'at_least_once'
export type ChildrenMode = 'once' | 'each'
export type Backoff = { kind: 'fixed'; delay_ms: number } | { kind: 'exponential'; first_ms: number; max_ms: number }

export const ROUTES = [
  'FIRST',
  'LAST',
  'ROUND',
  'RANDOM',
  'CONSISTENT_HASH',
  'LEAST_FREQUENTLY_USED',
  'LEAST_RECENTLY_USED',
  'FAILOVER',
  'BUSYOVER',
  'SHARDING_BROADCAST',
] as const
export const BLOCKS = ['SERIAL_EXECUTION', 'DISCARD_LATER', 'COVER_EARLY'] as const

export type ScriptLanguage = 'shell' | 'python' | 'python2' | 'php' | 'node' | 'powershell' | 'groovy'
export const LANGUAGES: ScriptLanguage[] = ['shell', 'python', 'python2', 'node', 'php', 'powershell', 'groovy']

export interface ScriptBody {
  language: ScriptLanguage
  source: string
  remark?: string
}

export interface ScriptVersion {
  id: number
  language: ScriptLanguage | null
  source: string
  remark: string
  saved_at: Instant | null
}

export interface JobBody {
  app: string
  name: string
  schedule: Schedule
  handler?: string
  param?: string
  script?: ScriptBody
  enabled?: boolean
  valid_from?: Instant
  valid_until?: Instant
  jitter_ms?: number
  misfire: Misfire
  overlap: Overlap
  retry: { count: number; backoff: Backoff }
  delivery: Delivery
  timeout_ms?: number
  route: string
  block: string
  children?: string[]
  children_mode: ChildrenMode
  alert: boolean
  alert_to?: string[]
  author?: string
  tags?: string[]
}

export interface JobView extends JobBody {
  id: number
  key?: string
  schedule_english: string
  schedule_chinese: string
  next_fire_at: Instant | null
  last_fire_at: Instant | null
  created_at: Instant | null
  updated_at: Instant | null
  revision: number
  problem?: string
  overridden?: string[]
  rights: Right[]
}

export type BulkAction = 'start' | 'stop' | 'delete' | 'move'

export interface BulkResult {
  job: number
  problem?: Problem
}

export interface JobChange {
  at: Instant
  by: string
  action: string
  before: unknown
  after: unknown
}

export type RunState =
  'waiting' | 'claimed' | 'cancelling' | 'unknown' | 'running' | 'succeeded' | 'failed' | 'timed_out' | 'lost' | 'cancelled'

export type Origin =
  { kind: 'schedule' } | { kind: 'misfire' } | { kind: 'manual' } | { kind: 'child'; of: number } | { kind: 'retry'; of: number }

export type MomentKind =
  'scheduled' | 'claimed' | 'routed' | 'sent' | 'accepted' | 'refused' | 'in_doubt' | 'taken_over' | 'ended' | 'recorded' | 'retried'

export interface Moment {
  at: Instant | null
  kind: MomentKind
  detail?: string
}

export interface RunView {
  id: number
  job: number
  job_key?: string
  job_name?: string
  /** Where the job follows other clocks than the centre's. */
  job_zone?: string
  app: string
  state: RunState
  /** Cancellation was requested, and the executor has not ended it. */
  cancel_requested?: boolean
  origin?: Origin
  scheduled_at: Instant | null
  ended_at: Instant | null
  took_ms: number | null
  address: string | null
  node: string | null
  handler: string
  param: string
  shard_index: number
  shard_total: number
  attempt: number | null
  dispatch_message: string
  result_message: string
  result_code: number
  timeline?: Moment[]
}

export interface LogPage {
  from: number
  text: string
  next: number
  end: boolean
  problem?: Problem
}

export type AlertKind = 'failed' | 'timed_out' | 'lost' | 'late' | 'not_run'
export type AlertState = 'waiting' | 'delivered' | 'given_up' | 'nobody'

export interface AlertDelivery {
  /** `mail`, `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`. */
  channel: string
  to: string
  at: Instant
  /** Absent if it was delivered. */
  trouble?: string
}

export interface AlertView {
  id: number
  at: Instant
  last_at: Instant
  /** How often it happened since `at`. */
  count: number
  kind: AlertKind
  app: string
  job: number
  job_key?: string
  job_name?: string
  run?: number
  message: string
  state: AlertState
  tries: number
  deliveries: AlertDelivery[]
}

export type MissReason = 'skipped' | 'coalesced' | 'blocked' | 'cancelled'

export interface Miss {
  id: number
  job: number
  first: Instant
  last: Instant
  count: number
  reason: MissReason
  into: number | null
  at: Instant
}

export interface RunCounts {
  running: number
  succeeded: number
  failed: number
}

export interface Overview {
  now: Instant
  jobs: number
  jobs_enabled: number
  today: RunCounts
  executors_alive: number
  executors_suspect: number
  alerts: { last_day: number; undelivered: number }
  running: RunView[]
  failing: RunView[]
  upcoming: JobView[]
}

export interface StatisticsBucket {
  at: Instant
  runs: RunCounts
  lateness_p50_ms: number | null
  lateness_p99_ms: number | null
}

export interface Statistics {
  step_ms: number
  buckets: StatisticsBucket[]
  complete: boolean
  /** From when on runs were counted, if there are too many before. */
  counted_from?: Instant
}

export interface CalendarBucket {
  at: Instant
  fires: number
}

export interface Calendar {
  step_ms: number
  buckets: CalendarBucket[]
  complete: boolean
  jobs: number
}

export interface NodeView {
  name: string
  epoch: number
  lease_until: Instant
  alive: boolean
  this: boolean
}

export interface SettingView {
  option: string
  value: string | null
  /** Whether something is set that nobody is shown. */
  hidden: boolean
}

export interface About {
  version: string
  node: string
  database: 'sqlite' | 'mysql' | 'postgres'
  zone: string
  started_at: Instant
  clock_offset_ms: number | null
  /** Whether jobs may be scripts here. */
  scripts: boolean
}

export interface AuditView {
  id: number
  at: Instant
  principal: string
  plane: string
  ip: string
  action: string
  object: string
  before: string | null
  after: string | null
  result: string
}

export type EventKind = 'runs' | 'jobs' | 'executors' | 'alerts'
