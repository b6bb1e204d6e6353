// Types of `/v1`, generated from the OpenAPI description by `make wire`. Do not edit.

/** RFC 3339 in UTC, for example `2026-06-21T08:00:00.000Z`. */
export type Instant = string

/** Version and environment of the node that answers. */
export interface About {
  /** Difference between the clocks of this node and the database in milliseconds; absent if unknown. */
  clock_offset_ms: number | null
  /** Kind of database. */
  database: Database
  /** Name of the node that answers. */
  node: string
  /** Whether jobs may be scripts. */
  scripts: boolean
  /** Start time of this node. */
  started_at: Instant
  /** Version of Tickwright. */
  version: string
  /** Time zone of the scheduling centre, as an IANA name. */
  zone: string
}

/** Source of the addresses of an app's executors. */
export type Addressing = { kind: 'registered' } | { addresses: string[]; kind: 'manual' }

/** Numbers of alerts. */
export interface AlertCounts {
  /** Alerts of the last 24 hours. */
  last_day: number
  /** Alerts of the last 24 hours that are not delivered to all recipients. */
  undelivered: number
}

/**
 * Kind of problem that raised an alert.
 *
 * - `failed`: A run failed and has no retries left.
 * - `timed_out`: A run exceeded its timeout.
 * - `lost`: The result of a run is unknown.
 * - `late`: A run started long after its scheduled time.
 * - `not_run`: A scheduled time passed without a run.
 * - `history_lost`: The database has lost committed changes.
 */
export const AlertKind = ['failed', 'timed_out', 'lost', 'late', 'not_run', 'history_lost'] as const
export type AlertKind = (typeof AlertKind)[number]

/** One page of a list. */
export interface AlertPage {
  /** Items of this page, in the order of the list. */
  items: AlertView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/**
 * State of an alert's notifications.
 *
 * - `waiting`: At least one notification is not delivered yet and will be retried.
 * - `delivered`: All notifications were delivered.
 * - `given_up`: At least one notification was not delivered, and there are no more retries.
 * - `nobody`: No notification channel is configured for this alert.
 */
export const AlertState = ['waiting', 'delivered', 'given_up', 'nobody'] as const
export type AlertState = (typeof AlertState)[number]

/**
 * An alert: a problem with a job that has alerting enabled.
 *
 * A repeat of the same problem of the same job within the grouping interval is counted in this alert and not
 * notified separately.
 */
export interface AlertView {
  /** Name of the app that the job belonged to at that time; empty if the app is deleted. */
  app: string
  /** Time of the first occurrence. */
  at: Instant
  /** Number of occurrences. */
  count: number
  /** Recipients, each with the result of the last attempt. */
  deliveries: DeliveryView[]
  /** Id of the alert; later alerts have greater ids. */
  id: number
  /** Id of the job. */
  job: number
  /** Key of the job, if it has one. */
  job_key?: string
  /** Name of the job; absent once the job is deleted. */
  job_name?: string
  /** Kind of problem. */
  kind: AlertKind
  /** Time of the last occurrence. */
  last_at: Instant
  /** Description of the problem. */
  message: string
  /** Id of the run of the first occurrence, if there was one. */
  run?: number
  /** State of the notifications. */
  state: AlertState
  /** Number of attempts to send the notifications. */
  tries: number
}

/** Definition of a new API key. */
export interface ApiKeyBody {
  /** Names of the apps it gives access to. Default: all apps of its owner. */
  apps?: string[]
  /** Time when it expires. */
  expires_at?: Instant
  /** Display name. */
  name: string
  /** Rights of the key; limited to the rights of its owner. */
  rights: Right[]
}

/** An API key, without its secret. */
export interface ApiKeyView {
  /** Names of the apps it gives access to. Default: all apps of its owner. */
  apps?: string[]
  /** Creation time. */
  created_at: Instant
  /** Time when it expires. */
  expires_at?: Instant
  /** Id of the key. */
  id: number
  /** Display name. */
  name: string
  /** Rights of the key; limited to the rights of its owner. */
  rights: Right[]
  /** Time of its last use, to the minute. */
  used_at: Instant | null
  /** Owner of the key; it acts on behalf of this user. */
  user: string
}

/** Definition of an app, as sent to `PUT /v1/apps/{app}`. */
export interface AppBody {
  /** Source of the executors' addresses. */
  addressing: Addressing
  /** Display name. */
  title: string
}

/** An app. */
export interface AppView {
  /** Source of the executors' addresses. */
  addressing: Addressing
  /** Executors of the app. */
  executors: ExecutorView[]
  /** Executors that were registered within the last day and no longer are, as far as the responding node knows. */
  gone?: GoneExecutor[]
  /** Id of the app. */
  id: number
  /** Number of jobs of the app. */
  jobs: number
  /** Name of the app; its executors register under this name. */
  name: string
  /** Rights of the caller for this app. */
  rights: Right[]
  /** Display name. */
  title: string
}

/** Question to people. */
export interface ApprovalBody {
  /** Names of the users who may decide. Default: all with the right to operate the workflow. */
  approvers?: string[]
  /** The question: a text, in which `${{ … }}` are expressions. */
  ask: string
  /** Whether the user who started or resumed the run may decide. Default: true. */
  by_starter?: boolean
  /** Time in milliseconds after which it is refused. Default: none. */
  timeout_ms?: number
}

/** One page of a list. */
export interface AuditPage {
  /** Items of this page, in the order of the list. */
  items: AuditView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** An action that was performed or rejected. */
export interface AuditView {
  /** Name of the action, for example `job.put`. */
  action: string
  /** State of the object afterwards, without secrets. */
  after: string | null
  /** Time of the action. */
  at: Instant
  /** State of the object before, without secrets. */
  before: string | null
  /** Id of the entry; ids have no gaps. */
  id: number
  /** IP address of the client. */
  ip: string
  /** Object of the action. */
  object: string
  /** API that was used: `api` (`/v1` and XXL-JOB's job calls), `executor` or `web` (XXL-JOB's web API). */
  plane: string
  /** User, API key or app that performed it. */
  principal: string
  /** `done`, or the reason why it was rejected. */
  result: string
}

/** Request for a backfill: runs of a job for scheduled times of the past. Either `from` and `to`, or `dates`. */
export interface BackfillBody {
  /**
   * Dates in the job's time zone, instead of a range. Each stands for the scheduled times of its day; for a job without a
   * schedule, for the beginning of the day.
   */
  dates?: string[]
  /** Start nothing; return the scheduled times and what would happen to each. */
  dry_run?: boolean
  /** Rule for scheduled times that already have runs. */
  existing?: Existing
  /**
   * Start of the range, inclusive: a time, for example `2026-06-21T08:00:00Z`, or a date in the job's time zone, for
   * example `2026-06-21`.
   */
  from?: string
  /** What happens after a run failed for good. */
  on_failure?: OnFailure
  /** Order in which runs are opened. */
  order?: BackfillOrder
  /** Maximum number of scheduled times with open runs, from 1 to 100. Default: 1. */
  parallel?: number
  /** Parameter of the runs instead of the job's. For a workflow, its inputs as a JSON object. */
  param?: string
  /**
   * End of the range, inclusive: a time, or a date, which stands for the whole day up to now. Not in the future.
   * Default: now.
   */
  to?: string
}

/**
 * Order in which a backfill opens the runs of its scheduled times.
 *
 * - `oldest`: The oldest scheduled time first.
 * - `newest`: The newest scheduled time first.
 */
export const BackfillOrder = ['oldest', 'newest'] as const
export type BackfillOrder = (typeof BackfillOrder)[number]

/** One page of a list. */
export interface BackfillPage {
  /** Items of this page, in the order of the list. */
  items: BackfillView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** Plan of a backfill. */
export interface BackfillPlan {
  /** Number of those that would run now. */
  run: number
  /** Number of those that would be left out. */
  skip: number
  /** Scheduled times in the order of the backfill: the first 100 and the last 100. */
  times: PlannedTime[]
  /** Number of scheduled times in the range. */
  total: number
  /** Number of those with an open run, which would decide. */
  wait: number
}

/** Result of a request for a backfill. */
export interface BackfillStarted {
  /** The backfill; absent for a dry run. */
  backfill?: BackfillView
  /** The plan; only for a dry run. */
  plan?: BackfillPlan
}

/**
 * State of a backfill.
 *
 * - `running`: It opens runs.
 * - `paused`: It opens no runs until it is continued; open ones may end.
 * - `cancelled`: It was cancelled: it opens no more runs; open ones may end.
 * - `finished`: All its scheduled times have ended or were left out.
 */
export const BackfillState = ['running', 'paused', 'cancelled', 'finished'] as const
export type BackfillState = (typeof BackfillState)[number]

/** A scheduled time of a backfill. */
export interface BackfillTime {
  /** Time when it ended. */
  ended_at?: Instant
  /** Reason of a failure, or why it was left out. */
  message?: string
  /** Its run: the open one, the one that ended it, or the one that is the reason why it was left out. */
  run?: number
  /** The scheduled time. */
  scheduled_at: Instant
  /** Its state. */
  state: InstantState
}

/** One page of a list. */
export interface BackfillTimePage {
  /** Items of this page, in the order of the list. */
  items: BackfillTime[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** A backfill with its progress. */
export interface BackfillView {
  /** User who started it. */
  by: string
  /** Number of scheduled times that were cancelled. */
  cancelled: number
  /** Time when its last run ended; absent while it is not finished. */
  ended_at?: Instant
  /** Rule for scheduled times that already had runs. */
  existing: Existing
  /** Number of scheduled times that failed. */
  failed: number
  /** Start of the range, inclusive. */
  from: Instant
  /** Id of the backfill. */
  id: number
  /** Id of the job. */
  job: number
  /** Key of the job, if it has one. */
  job_key?: string
  /** Name of the job. */
  job_name: string
  /** What happens after a run failed for good. */
  on_failure: OnFailure
  /** Number of scheduled times with open runs. */
  open: number
  /** Order in which runs are opened. */
  order: BackfillOrder
  /** Maximum number of scheduled times with open runs. */
  parallel: number
  /** Parameter of the runs instead of the job's. */
  param?: string
  /** Number of scheduled times whose runs are not opened yet. */
  pending: number
  /** Number of scheduled times that were left out. */
  skipped: number
  /** Time when it was started. */
  started_at: Instant
  /** State of the backfill. */
  state: BackfillState
  /** Number of scheduled times that succeeded. */
  succeeded: number
  /** Number of scheduled times; the sum of the following counts. */
  total: number
  /** End of the range, exclusive. */
  until: Instant
}

/** Backoff between retries. */
export type Backoff = { delay_ms: number; kind: 'fixed' } | { first_ms: number; kind: 'exponential'; max_ms: number }

/**
 * Whether a job fires on days after the data of its work calendar.
 *
 * - `weekdays`: The weekdays decide; previews mark such fires as assumed.
 * - `stop`: Nothing fires until the calendar has more data.
 */
export const Beyond = ['weekdays', 'stop'] as const
export type Beyond = (typeof Beyond)[number]

/**
 * Block strategy: how an executor handles a run while another run of the job is active on it.
 *
 * - `serial`: Queue the new run.
 * - `discard_later`: Reject the new run.
 * - `cover_early`: Stop the active run, drop the queued ones and start the new run.
 */
export const Block = ['serial', 'discard_later', 'cover_early'] as const
export type Block = (typeof Block)[number]

/** Request for one action on many jobs: a list of them, or all that match a filter. */
export interface Bulk {
  /** Action for each of them. */
  action: BulkAction
  /** Name of the target app of a `move`. */
  app?: string
  filter?: JobFilter
  /** Ids of the jobs. Omit it if there is a `filter`. */
  jobs?: number[]
}

/** Action on many jobs. */
export const BulkAction = ['start', 'stop', 'delete', 'move'] as const
export type BulkAction = (typeof BulkAction)[number]

/** Result of the action for one job. */
export interface BulkResult {
  /** Id of the job. */
  job: number
  /** Why the action failed; absent if it succeeded. */
  problem?: Problem
}

/** Upcoming fires of all jobs together: `GET /v1/calendar?from=&until=&step_ms=`. */
export interface Calendar {
  /** Buckets in order of time, including those without fires. */
  buckets: CalendarBucket[]
  /**
   * Whether the fires of all jobs are counted. If false, there are too many jobs for one response, and only the
   * newest jobs are counted.
   */
  complete: boolean
  /** Number of jobs counted. */
  jobs: number
  /** Length of a bucket in milliseconds. */
  step_ms: number
}

/** Upcoming fires of one bucket of time. */
export interface CalendarBucket {
  /** Start of the bucket. */
  at: Instant
  /** Number of fires. */
  fires: number
}

/** Request to cancel a backfill. */
export interface CancelBackfill {
  /** Also cancel its open runs. Without it they may end. */
  kill?: boolean
}

/** A checked definition. */
export interface CheckedWorkflow {
  /** Problems, at most 100. Without any, the definition can be saved. */
  problems: WorkflowProblem[]
  /** The definition as YAML: that of the request, if it has one. */
  text: string
  /** The definition; absent if the text cannot be read. */
  workflow?: WorkflowBody
}

/**
 * How often the child jobs of a job with shards run.
 *
 * - `once`: Once, when all shards of the fire have succeeded.
 * - `each`: Once for each shard that succeeds, as in XXL-JOB.
 */
export const ChildrenMode = ['once', 'each'] as const
export type ChildrenMode = (typeof ChildrenMode)[number]

/** Request to delete finished runs of an app. */
export interface Clear {
  /** Name of the app. */
  app: string
  /** Only runs with a scheduled time before this are deleted. */
  before: Instant
  /** Restricts it to one job: its key, or its id as `id:42`. */
  job?: string
}

/** Result of a deletion. */
export interface Cleared {
  /** Number of deleted runs. */
  deleted: number
  /** Whether there are more runs to delete: repeat the request. */
  more: boolean
}

/**
 * Syntax of a cron expression.
 *
 * - `quartz`: Six or seven fields, the first is seconds.
 * - `unix`: Five fields, the first is minutes.
 */
export const CronDialect = ['quartz', 'unix'] as const
export type CronDialect = (typeof CronDialect)[number]

/** Kind of database. */
export const Database = ['sqlite', 'mysql', 'postgres'] as const
export type Database = (typeof Database)[number]

/** Decision to make. */
export interface Decision {
  /** Whether the step may go on. */
  approved: boolean
  /** Remark, at most 1 000 characters. */
  remark?: string
}

/** Decision about a step that asks people. */
export interface DecisionView {
  /** Whether the step may go on. */
  approved: boolean
  /** Name of the user who decided. */
  by: string
  /** Remark of the user. */
  remark: string
}

/**
 * Delivery policy: how to continue when a request was, or may have been, sent but no response arrived.
 *
 * - `at_most_once`: Never send again: the run fails as ambiguous, and a retry is a new attempt.
 * - `probe`: Ask the executor, and send again if it does not know the run.
 * - `at_least_once`: Send again until an executor accepts the run. For executors that remember accepted runs, or idempotent handlers.
 */
export const Delivery = ['at_most_once', 'probe', 'at_least_once'] as const
export type Delivery = (typeof Delivery)[number]

/** A recipient of an alert, with the result of the last attempt. */
export interface DeliveryView {
  /** Time of the last attempt. */
  at: Instant
  /** Channel: `mail`, `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`. */
  channel: string
  /** Mail address, or host of the webhook; the URL of a webhook usually contains a secret. */
  to: string
  /** Error of the last attempt as reported by the channel; absent if it succeeded. */
  trouble?: string
}

/**
 * Runs of another job or workflow that a step waits for. The newest run of each scheduled time decides, whatever started
 * it.
 */
export interface DependsBody {
  /**
   * Its scheduled times: `same` for those of the date of the run, `previous` for the last one before the run, or days
   * before the date of the run, for example `-1d` or `-7d..-1d`. For a job without scheduled times of its own, each day
   * needs a run. Default: `same`.
   */
  date?: string
  /** What happens while a scheduled time has no run. */
  if_missing?: IfMissing
  /** How many of the scheduled times must have succeeded. */
  need?: DependsNeed
  /** Key of the job or workflow; `id:` and the number of a job without a key. */
  on: string
  /** What happens when the newest run has failed. */
  on_failed?: IfFailed
  /** Time in milliseconds after which the step fails. Default: none. */
  timeout_ms?: number
}

/**
 * How many of the scheduled times that a step depends on must have succeeded.
 *
 * - `all`: Each of them.
 * - `any`: At least one of them.
 */
export const DependsNeed = ['all', 'any'] as const
export type DependsNeed = (typeof DependsNeed)[number]

/**
 * A hint that data has changed; the client reads that data again. Under load the stream may drop hints, but never
 * the last one.
 */
export type Event = { kind: 'runs' } | { kind: 'jobs' } | { kind: 'executors' } | { kind: 'alerts' }

/** A scheduled time that a work calendar skips or moves. */
export interface ExcludedTime {
  /** Name of the holiday on that day, if it has one. */
  holiday?: string
  /** The time in the schedule's zone, without an offset, for example `2026-10-01T09:00:00`. */
  local: string
  /** Time of the fire instead, if the scheduled time is moved and not skipped. */
  moved_to?: Instant
}

/** Request to check whether an executor is reachable. */
export interface ExecutorCheck {
  /** Address of the executor; must be one of the app's. */
  address: string
}

/** State of an executor. */
export const ExecutorState = ['alive', 'suspect'] as const
export type ExecutorState = (typeof ExecutorState)[number]

/** Error of a call to an executor. */
export interface ExecutorTrouble {
  /** Kind of error. */
  code: TroubleCode
  /** Details for troubleshooting: addresses, times, messages of the operating system or the executor. */
  detail: string
}

/** An executor. */
export interface ExecutorView {
  /** Address of the executor. */
  address: string
  /** Handlers that it declared, and handlers called by recent runs sent to it, as far as they are stored. */
  handlers: string[]
  /** Time of its last registration; absent if a user entered the address. */
  seen_at: Instant | null
  /** State of the executor. */
  state: ExecutorState
  /** Time since when it is unreachable; absent if it is reachable. */
  suspect_since: Instant | null
  /** Error of the last call to it; absent if that call succeeded. */
  trouble?: ExecutorTrouble
}

/**
 * What a backfill does with a scheduled time that already has runs. Under `skip` and `failed` it waits for one
 *  that is still open.
 *
 * - `skip`: Scheduled times with a run that succeeded are left out.
 * - `again`: Every scheduled time runs again.
 * - `failed`: Only scheduled times run whose newest run did not succeed, or that have none.
 */
export const Existing = ['skip', 'again', 'failed'] as const
export type Existing = (typeof Existing)[number]

/** An invalid field. */
export interface FieldProblem {
  /** Why it is invalid, and how to write it. */
  detail: string
  /** Path of the field, for example `schedule.expression`. */
  field: string
}

/** An executor that is no longer registered. */
export interface GoneExecutor {
  /** Address of the executor. */
  address: string
  /** Time of its last registration or deregistration. */
  seen_at: Instant
}

/** Rights for one app. */
export interface Grant {
  /** Name of the app. */
  app: string
  /** Rights for it. */
  rights: Right[]
}

/** A workflow run in a grid. */
export interface GridRun {
  /**
   * State of each of `steps`, one character each: `B` blocked, `H` held, `O` open, `W` waiting, `S` succeeded, `F`
   * failed, `K` skipped, `U` unreached, `C` cancelled, `-` no such step in this run.
   */
  cells: string
  /** Id of the run. */
  id: number
  /** Scheduled time. */
  scheduled_at: Instant
  /** State of the run. */
  state: RunState
  /** Duration in milliseconds, if it has ended. */
  took_ms: number | null
}

/** Request of a step. In all texts, `${{ … }}` are expressions. */
export interface HttpBody {
  /** Body: a text, or any other JSON value, which is sent as JSON. */
  body?: unknown
  /** Headers by name. */
  headers?: Record<string, unknown>
  /** Method. Default: `POST`. */
  method?: string
  /** Time for the response in milliseconds. Default: 3 000. */
  timeout_ms?: number
  /** URL, for example `https://hooks.example.com/board`. */
  url: string
}

/**
 * What happens when the newest run of a scheduled time that a step depends on has failed.
 *
 * - `wait`: The step waits for a newer run, for example a resumed one.
 * - `fail`: The step fails.
 */
export const IfFailed = ['wait', 'fail'] as const
export type IfFailed = (typeof IfFailed)[number]

/**
 * What happens while a scheduled time that a step depends on has no run.
 *
 * - `wait`: The step waits for one.
 * - `fail`: The step fails.
 * - `start`: The step starts one, if the scheduled time has passed, and waits for it.
 */
export const IfMissing = ['wait', 'fail', 'start'] as const
export type IfMissing = (typeof IfMissing)[number]

/**
 * Type of an input of a workflow run.
 *
 * - `text`: A text.
 * - `int`: A whole number.
 * - `number`: A number.
 * - `bool`: True or false.
 * - `date`: A day, for example `2026-11-17`.
 * - `json`: Any JSON value.
 */
export const InputType = ['text', 'int', 'number', 'bool', 'date', 'json'] as const
export type InputType = (typeof InputType)[number]

/**
 * State of one scheduled time of a backfill. The last four are final, unless it is retried.
 *
 * - `pending`: Its run is not opened yet.
 * - `open`: It has an open run.
 * - `succeeded`: Its run succeeded.
 * - `failed`: Its run failed, was rejected or was lost, after all retries of the job.
 * - `skipped`: It was left out, because of a run that exists.
 * - `cancelled`: Its run was cancelled, or the backfill was cancelled first.
 */
export const InstantState = ['pending', 'open', 'succeeded', 'failed', 'skipped', 'cancelled'] as const
export type InstantState = (typeof InstantState)[number]

/** Definition of a job, as sent to `PUT /v1/jobs/{job}`. An omitted field has its default. */
export interface JobBody {
  /** Whether a failed run raises an alert. */
  alert: boolean
  /** Mail addresses that are notified of alerts. */
  alert_to?: string[]
  /** Name of the app whose executors run the job. */
  app: string
  /** Person responsible for the job. */
  author?: string
  /**
   * Block strategy, for a new run while another run of the job is active on the same executor. A job that another
   * program stored may have a strategy of its own, which is returned as stored.
   */
  block: Block
  /** Keys of the jobs to run when this one succeeds; ids for jobs without a key. */
  children?: string[]
  /** How often child jobs run if this job runs in shards. */
  children_mode: ChildrenMode
  /** Delivery policy: how to continue when it is unknown whether an executor received a request. */
  delivery: Delivery
  /** Whether the schedule is active. If omitted: false for a new job, unchanged for an existing one. */
  enabled?: boolean
  /** Handler to call. Omit it for a script job and for a workflow. */
  handler?: string
  /** Maximum random delay of each fire after its scheduled time, in milliseconds. Default: 0. */
  jitter_ms?: number
  /**
   * Maximum number of fires of the schedule, from 1; then the job is stopped. Manual triggers, retries and skipped
   * fires do not count. A start after the last one counts anew. Default: no limit.
   */
  max_fires?: number
  /** Misfire policy: how to handle fires that could not be dispatched in time. */
  misfire: Misfire
  /** Display name. */
  name: string
  /** Overlap policy: whether runs of the job may overlap, across all executors. */
  overlap: Overlap
  /** Parameter for the handler or script, at most 16 000 characters. */
  param?: string
  /** Retry policy of failed runs. */
  retry: Retry
  /**
   * Routing strategy, which selects the executor. A job that another program stored may have a strategy of its
   * own, which is returned as stored and has to be replaced before the job can run.
   */
  route: Route
  /** Schedule of the job. */
  schedule: Schedule
  script?: ScriptBody
  /** Tags to search by. */
  tags?: string[]
  /**
   * Timeout of a run in milliseconds; a run that takes longer is stopped and ends as `timed_out`. Default: no
   * timeout.
   */
  timeout_ms?: number
  /** The schedule fires only from this time on. */
  valid_from?: Instant
  /** The schedule fires only up to this time. */
  valid_until?: Instant
  workdays?: JobWorkdays
  workflow?: WorkflowBody
}

/** A change of a job, from the audit log. */
export interface JobChange {
  /** Name of the action, for example `job.create`, `job.put` or `job.start`. */
  action: string
  /** Definition of the job afterwards. */
  after: Record<string, unknown> | null
  /** Time of the change. */
  at: Instant
  /** Definition of the job before. */
  before: Record<string, unknown> | null
  /** User or API key that made it. */
  by: string
}

/** One page of a list. */
export interface JobChangePage {
  /** Items of this page, in the order of the list. */
  items: JobChange[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** Filter for jobs: those that match all given fields. An empty filter matches all jobs that the caller may view. */
export interface JobFilter {
  /** Name of an app. */
  app?: string
  /** Text that the author contains. */
  author?: string
  /** `true`: started jobs only; `false`: stopped jobs only. */
  enabled?: boolean
  /** Text that the handler contains. */
  handler?: string
  /** Tag of the job. */
  tag?: string
  /** Text that the name, handler, author or key contains. */
  text?: string
  /** `true`: workflows only; `false`: other jobs only. */
  workflow?: boolean
}

/** One page of a list. */
export interface JobPage {
  /** Items of this page, in the order of the list. */
  items: JobView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** A job. Its `ETag` is its revision. */
export interface JobView {
  /** Whether a failed run raises an alert. */
  alert: boolean
  /** Mail addresses that are notified of alerts. */
  alert_to?: string[]
  /** Name of the app whose executors run the job. */
  app: string
  /** Person responsible for the job. */
  author?: string
  /**
   * Block strategy, for a new run while another run of the job is active on the same executor. A job that another
   * program stored may have a strategy of its own, which is returned as stored.
   */
  block: Block
  /** Keys of the jobs to run when this one succeeds; ids for jobs without a key. */
  children?: string[]
  /** How often child jobs run if this job runs in shards. */
  children_mode: ChildrenMode
  /** Creation time. */
  created_at: Instant | null
  /** Delivery policy: how to continue when it is unknown whether an executor received a request. */
  delivery: Delivery
  /** Whether the schedule is active. If omitted: false for a new job, unchanged for an existing one. */
  enabled?: boolean
  /** Number of fires that count for `max_fires`; absent without a maximum. A job that has reached it is stopped. */
  fires?: number
  /** Handler to call. Omit it for a script job and for a workflow. */
  handler?: string
  /** Id of the job; never changes. */
  id: number
  /** Maximum random delay of each fire after its scheduled time, in milliseconds. Default: 0. */
  jitter_ms?: number
  /**
   * Key that identifies the job for programs. Jobs created elsewhere may have none and are identified by their
   * id.
   */
  key?: string
  /** Last scheduled time for which the job fired. */
  last_fire_at: Instant | null
  /**
   * Maximum number of fires of the schedule, from 1; then the job is stopped. Manual triggers, retries and skipped
   * fires do not count. A start after the last one counts anew. Default: no limit.
   */
  max_fires?: number
  /** Misfire policy: how to handle fires that could not be dispatched in time. */
  misfire: Misfire
  /** Display name. */
  name: string
  /** Next scheduled time, if there is one. */
  next_fire_at: Instant | null
  /** Overlap policy: whether runs of the job may overlap, across all executors. */
  overlap: Overlap
  /**
   * Fields that a user has changed since a program declared this job at its start; they differ from the
   * declaration.
   */
  overridden?: string[]
  /** Parameter for the handler or script, at most 16 000 characters. */
  param?: string
  /** Why the schedule is invalid; absent if it is valid. A job with an invalid schedule never fires. */
  problem?: string
  /** Retry policy of failed runs. */
  retry: Retry
  /** Revision of the definition; incremented by each edit. */
  revision: number
  /** Rights of the caller for this job. */
  rights: Right[]
  /**
   * Routing strategy, which selects the executor. A job that another program stored may have a strategy of its
   * own, which is returned as stored and has to be replaced before the job can run.
   */
  route: Route
  /** Schedule of the job. */
  schedule: Schedule
  /** Description of the schedule, in the language of the header `Accept-Language`: English (default) or Chinese. */
  schedule_text: string
  /**
   * Script that the executor runs instead of a handler. Requires the right `script`. If omitted when editing,
   * the current script is kept.
   */
  script?: ScriptBody
  /** Tags to search by. */
  tags?: string[]
  /**
   * Timeout of a run in milliseconds; a run that takes longer is stopped and ends as `timed_out`. Default: no
   * timeout.
   */
  timeout_ms?: number
  /** Time of the last change. */
  updated_at: Instant | null
  /** The schedule fires only from this time on. */
  valid_from?: Instant
  /** The schedule fires only up to this time. */
  valid_until?: Instant
  /** Work calendar that keeps, skips or moves the times of a cron expression or timetable. Default: none. */
  workdays?: JobWorkdays
  /**
   * Steps that a run of the job consists of, instead of a handler or script. If omitted when editing, and no handler
   * or script is given, the current workflow is kept.
   */
  workflow?: WorkflowBody
}

/** Work calendar of a job: it keeps, skips or moves the times of a cron expression or timetable. */
export interface JobWorkdays {
  /** Name of the work calendar. */
  calendar: string
  /** Days on which the job fires. */
  on?: OnDays
  /** How to handle scheduled times on other days. */
  shift?: Shift
}

/** Which ends of its needs open a step. */
export const JoinRule = ['joined', 'all_succeeded', 'all_ended', 'any_succeeded', 'any_failed'] as const
export type JoinRule = (typeof JoinRule)[number]

/** A job to create or replace. */
export interface KeyedJob {
  /** Whether the job is rejected if it already exists, as `If-None-Match: *`. Default: false. */
  create_only?: boolean
  /** Definition of the job. */
  job: JobBody
  /** Key of the job, at most 190 characters. */
  key: string
  /** Required revision, as `If-Match`: the job is rejected if it has another one, or does not exist. */
  revision?: number
}

/** Request to cancel a run. */
export interface Kill {
  /**
   * Close the run even if its executor refuses or cannot be reached. A result that it reports later is
   * discarded.
   */
  force: boolean
}

/** Lines of a run's log. */
export interface LogPage {
  /** Whether the log is complete. */
  end: boolean
  /** Number of the first line, from 1. */
  from: number
  /** Line number to request next. */
  next: number
  /** Why there is no text: the executor cannot be asked and the log was not stored. */
  problem?: Problem
  /** Text of the lines. */
  text: string
}

/** The signed-in user. */
export interface Me {
  /** Whether the user is an administrator, with all rights for all apps. */
  admin: boolean
  /** CSRF token of the session, to send with every change from a browser. Absent for API keys. */
  csrf?: string
  /** Rights by app, if the user is not an administrator. */
  grants: Grant[]
  /** User name. */
  user: string
  /** Time zone of the scheduling centre, as an IANA name. */
  zone: string
}

/** Misfire policy: how to handle fires that could not be dispatched in time. */
export type Misfire = { kind: 'skip' } | { kind: 'fire_once' } | { kind: 'fire_all'; max: number; window_ms: number }

/** Scheduled times of a job that were not dispatched. */
export interface Miss {
  /** Time of this decision. */
  at: Instant
  /** Number of scheduled times. */
  count: number
  /** First of the scheduled times. */
  first: Instant
  /** Id of the history entry. */
  id: number
  /** Id of the catch-up run for them, if there is one. */
  into: number | null
  /** Id of the job. */
  job: number
  /** Last of the scheduled times. */
  last: Instant
  /** Why they were not dispatched. */
  reason: MissReason
}

/** One page of a list. */
export interface MissPage {
  /** Items of this page, in the order of the list. */
  items: Miss[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** Why a scheduled time was not dispatched. */
export const MissReason = ['skipped', 'coalesced', 'blocked', 'cancelled'] as const
export type MissReason = (typeof MissReason)[number]

/** Fires of a job that a change of its work calendar removes and adds. */
export interface MovedFires {
  /** First fires that take place now, at most 20. */
  added: string[]
  /** Id of the job. */
  job: number
  /** Key of the job, if it has one. */
  key?: string
  /** Display name of the job. */
  name: string
  /** First fires that no longer take place, at most 20. */
  removed: string[]
}

/** Connection to a step that has to end first: its name, or an object with a condition. */
export type Need = string | NeedBranch

/** Connection with a condition: exactly one of `if` and `else`. */
export interface NeedBranch {
  /** The connection is taken if none of the conditions at the step's other connections is true. */
  else?: boolean
  /** The connection is taken if this expression is true. */
  if?: string
  /** Name of the step. */
  step: string
}

/** A newly created API key. This is the only response with its secret. */
export interface NewApiKey {
  /** Id of the key. */
  id: number
  /** Secret to send as `Authorization: Bearer …`. */
  key: string
}

/** A newly created token. This is the only response with its value. */
export interface NewToken {
  /** Id of the token. */
  id: number
  /** Value to put into the settings of the executors. */
  token: string
}

/** A node of the cluster. */
export interface NodeView {
  /** Whether its lease is valid. */
  alive: boolean
  /** Incarnation of the node: greater after each restart. */
  epoch: number
  /** Time when its lease expires unless renewed. */
  lease_until: Instant
  /** Name of the node. */
  name: string
  /** Whether this node answered the request. */
  this: boolean
}

/**
 * Days of a work calendar on which a job fires.
 *
 * - `work`: Workdays.
 * - `off`: Days off.
 * - `any`: All days, up to the end of the calendar's data if the calendar stops there.
 */
export const OnDays = ['work', 'off', 'any'] as const
export type OnDays = (typeof OnDays)[number]

/**
 * What happens to the other steps of a workflow run when a step fails.
 *
 * - `stop`: No more steps open; open ones may end.
 * - `continue`: Steps that do not need the failed one go on.
 * - `cancel`: No more steps open, and open ones are cancelled.
 */
export const OnError = ['stop', 'continue', 'cancel'] as const
export type OnError = (typeof OnError)[number]

/**
 * What a backfill does when a run fails for good.
 *
 * - `continue`: The other scheduled times run all the same.
 * - `stop`: The backfill is paused: no more runs are opened until it is continued.
 */
export const OnFailure = ['continue', 'stop'] as const
export type OnFailure = (typeof OnFailure)[number]

/** Why a run exists, tagged by `kind`. */
export type Origin = { kind: 'schedule' } | { kind: 'misfire' } | { kind: 'manual' } | { kind: 'child'; of: number } | { kind: 'step'; of: number } | { kind: 'resume'; of: number } | { kind: 'backfill'; of: number } | { kind: 'retry'; of: number }

/**
 * Overlap policy: how to handle a fire while another run of the job is active on any executor.
 *
 * - `allow`: Dispatch it anyway.
 * - `skip`: Skip it; it is recorded as blocked.
 * - `wait`: Wait until the other run has finished. At most 100 runs wait; further ones are blocked.
 * - `replace`: Cancel the other run, then dispatch it.
 */
export const Overlap = ['allow', 'skip', 'wait', 'replace'] as const
export type Overlap = (typeof Overlap)[number]

/** Current state of the apps that the caller may view. */
export interface Overview {
  /** Alerts of the last 24 hours. */
  alerts: AlertCounts
  /** Number of reachable executors. */
  executors_alive: number
  /** Number of unreachable executors. */
  executors_suspect: number
  /** Last failed run of each recently failing job, newest first, at most 8. */
  failing: RunView[]
  /** Number of jobs. */
  jobs: number
  /** Number of jobs whose schedule is enabled. */
  jobs_enabled: number
  /** Current time of the scheduling centre. */
  now: Instant
  /** Unfinished runs, newest first, at most 8. */
  running: RunView[]
  /** Runs of today, in the scheduling centre's time zone. */
  today: RunCounts
  /** Jobs that fire next, at most 8. */
  upcoming: JobView[]
}

/** Request of a signed-in user to change their own password. */
export interface PasswordChange {
  /** New password. */
  new: string
  /** Current password. */
  old: string
}

/**
 * Phase of a workflow run. Steps need only steps of their own phase.
 *
 * - `main`: The work.
 * - `on_failure`: Begins after the main phase if that failed.
 * - `finally`: Begins last, always.
 */
export const Phase = ['main', 'on_failure', 'finally'] as const
export type Phase = (typeof Phase)[number]

/** What would happen to a scheduled time of a backfill. */
export const PlannedAction = ['run', 'skip', 'wait'] as const
export type PlannedAction = (typeof PlannedAction)[number]

/** A scheduled time in the plan of a backfill. */
export interface PlannedTime {
  /** What would happen to it now. */
  action: PlannedAction
  /** Run that is the reason, if it would be left out or would wait. */
  because_of?: number
  /** The scheduled time. */
  scheduled_at: Instant
}

/** Description and next fires of a schedule. */
export interface Preview {
  /** Scheduled times between them that the work calendar skips or moves, at most 200. */
  excluded?: ExcludedTime[]
  /** Next fires. */
  fires: PreviewFire[]
  /** Description of the schedule, in the language of the header `Accept-Language`: English (default) or Chinese. */
  schedule_text: string
  /** Time zone of the schedule, as an IANA name. */
  zone: string
}

/** An upcoming fire. */
export interface PreviewFire {
  /** Time of the fire. */
  at: Instant
  /** Whether the UTC offset changed since the previous fire. */
  clock_changed: boolean
  /** Name of the holiday or make-up workday in the work calendar, if the day of the fire has one. */
  holiday?: string
  /** Whether the day is after the data of the work calendar, so that it may still become a holiday. */
  is_assumed?: boolean
  /** The same time in the schedule's zone, for example `2026-06-21T10:00:00+02:00`. */
  local: string
}

/** Request to preview a schedule. */
export interface PreviewRequest {
  /** Preview fires after this time. Default: now. */
  after?: Instant
  /** Number of fires, at most 1000. Default: 10. */
  count?: number
  /** Schedule to preview. */
  schedule: Schedule
  workdays?: JobWorkdays
}

/** An error. `code` is for programs, `detail` for people. */
export interface Problem {
  /** Stable code of the error. */
  code: ProblemCode
  /** Description of this occurrence, and how to fix it. */
  detail: string
  /** Invalid fields, if any. */
  fields?: FieldProblem[]
  /** HTTP status. */
  status: number
  /** Summary of this kind of error. */
  title: string
  /** Path of the page that explains the code, for example `/errors/job_not_found`. */
  type: string
}

/** Error codes, each with its HTTP status and a page in `docs/errors`. */
export const ProblemCode = ['malformed_request', 'invalid_fields', 'not_signed_in', 'wrong_password', 'not_allowed', 'foreign_origin', 'no_such_path', 'not_found', 'wrong_method', 'conflict', 'outdated', 'too_large', 'too_many_requests', 'app_offline', 'executor_unreachable', 'executor_refused', 'database_unavailable', 'database_broken'] as const
export type ProblemCode = (typeof ProblemCode)[number]

/** Request to create or replace many jobs, by key. */
export interface PutJobs {
  /** Whether no job is changed if one of them is rejected. Default: false. */
  atomic?: boolean
  /** Whether the request is only checked: the response is the same, but no job is changed. Default: false. */
  dry_run?: boolean
  /** Jobs to create or replace, at most 1000. A job may be a child of another one of the same request. */
  jobs: KeyedJob[]
}

/** Result for one job of `PUT /v1/jobs`. */
export const PutOutcome = ['created', 'replaced', 'unchanged', 'rejected'] as const
export type PutOutcome = (typeof PutOutcome)[number]

/** Result for one job of `PUT /v1/jobs`. */
export interface PutResult {
  /** Names of the fields that changed in an existing job. */
  fields?: string[]
  /** Id of the job; absent if it does not exist. */
  id?: number
  /** Key of the job. */
  key: string
  /** Result of the request for this job. */
  outcome: PutOutcome
  /** Why the job was rejected. */
  problem?: Problem
  /** Revision of the job afterwards; absent if it does not exist. */
  revision?: number
}

/** Request to restore a version of a workflow. */
export interface RestoreVersion {
  /** Description of the change. */
  remark?: string
}

/** Request to resume a workflow run that has ended. */
export interface Resume {
  /** Names of steps that run again although they succeeded. */
  again?: string[]
  /** Whether to return only what would happen. */
  dry_run?: boolean
  /** Outputs of failed steps, by name: these steps count as succeeded and do not run again. */
  set?: Record<string, unknown>
  /** Definition that the new run uses. */
  version?: ResumeVersion
}

/** Definition that a resumed run uses. */
export const ResumeVersion = ['same', 'latest'] as const
export type ResumeVersion = (typeof ResumeVersion)[number]

/** Steps of a resumed run. */
export interface Resumed {
  /** Names of the steps that are kept: they have succeeded, and do not run again. */
  kept: string[]
  /** Id of the new run; absent with `dry_run`. */
  run?: number
  /** Names of all other steps: they run, unless their conditions skip them. */
  to_run: string[]
}

/** Retry policy of failed runs. Each attempt is a run of its own. */
export interface Retry {
  /** Delay between the end of an attempt and the next. */
  backoff: Backoff
  /** Maximum number of retries, not counting the first attempt. */
  count: number
}

/**
 * Where a retry of a failed workflow run begins.
 *
 * - `failed`: At the failed steps: steps that succeeded are kept.
 * - `start`: At the first steps: all steps run again.
 */
export const RetryFrom = ['failed', 'start'] as const
export type RetryFrom = (typeof RetryFrom)[number]

/** A right that can be granted for an app. */
export const Right = ['view', 'operate', 'edit', 'script'] as const
export type Right = (typeof Right)[number]

/**
 * Routing strategy: how the executor of a run is selected.
 *
 * - `first`: First executor of the list.
 * - `last`: Last executor of the list.
 * - `round_robin`: Each executor in turn.
 * - `random`: A random executor.
 * - `consistent_hash`: Consistent hash of the job: the same executor each time, as long as it is registered.
 * - `least_frequently_used`: Executor that was selected least often for the job.
 * - `least_recently_used`: Executor that was not selected for the job for the longest time.
 * - `failover`: First executor that responds.
 * - `first_idle`: First executor that has no active run of the job.
 * - `broadcast`: All executors, one shard each.
 */
export const Route = ['first', 'last', 'round_robin', 'random', 'consistent_hash', 'least_frequently_used', 'least_recently_used', 'failover', 'first_idle', 'broadcast'] as const
export type Route = (typeof Route)[number]

/** Number of runs by result. */
export interface RunCounts {
  /** Runs that finished without success. */
  failed: number
  /** Runs that are not finished. */
  running: number
  /** Runs that succeeded. */
  succeeded: number
}

/** One page of a list. */
export interface RunPage {
  /** Items of this page, in the order of the list. */
  items: RunView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** State of a run. */
export const RunState = ['waiting', 'claimed', 'cancelling', 'unknown', 'running', 'succeeded', 'failed', 'timed_out', 'lost', 'cancelled'] as const
export type RunState = (typeof RunState)[number]

/** A run: one execution of a job. */
export interface RunView {
  /** Address of the executor that the run was sent to. */
  address: string | null
  /** Name of the app that the job belonged to when the run was created. */
  app: string
  /** Attempt number, 1 for the first; absent if unknown. */
  attempt: number | null
  /**
   * Whether cancellation was requested and the executor has not ended the run yet. Absent once the run is
   * finished.
   */
  cancel_requested?: boolean
  /** Message about the dispatch. */
  dispatch_message: string
  /** Time when the end of the run was recorded. */
  ended_at: Instant | null
  /** Handler that was called. */
  handler: string
  /** Id of the run; never changes. */
  id: number
  /** Id of the job. */
  job: number
  /** Key of the job, if it has one. */
  job_key?: string
  /** Name of the job; absent once the job is deleted. */
  job_name?: string
  /** Time zone of the job, as an IANA name, if it has its own. */
  job_zone?: string
  /** Node that claimed or dispatched the run; absent if unknown. */
  node: string | null
  /** Why the run exists; absent if unknown. */
  origin?: Origin
  /** Parameter passed to the handler. */
  param: string
  /** XXL-JOB's result code: 0 none yet, 200 success, 502 timeout, any other value failure. */
  result_code: number
  /** Message about the result. */
  result_message: string
  /** The time the schedule asked for. For a manual trigger it is the time of the request. */
  scheduled_at: Instant | null
  /** Index of the shard, from 0. */
  shard_index: number
  /** Number of shards. */
  shard_total: number
  /** State of the run. */
  state: RunState
  /** Trace of the run, in order. Only in the response for a single run. */
  timeline?: TraceStep[]
  /**
   * Duration in milliseconds: from when the run was sent to its executor to its end. Without a trace of the dispatch
   * it counts from the scheduled time; `null` if the run was never sent.
   */
  took_ms: number | null
}

/** Schedule of a job, tagged by `kind`. */
export type Schedule = { dialect: CronDialect; dst?: string; expression: string; kind: 'cron'; zone?: string } | { dst?: string; kind: 'timetable'; rules: string[]; zone?: string } | { anchor?: Instant; every_ms: number; kind: 'fixed_rate' } | { delay_ms: number; kind: 'fixed_delay' } | { at: Instant; kind: 'once' } | { kind: 'none' }

/** A script to save. */
export interface ScriptBody {
  /** Language of the script. */
  language: ScriptLanguage
  /** Description of the change. */
  remark?: string
  /** Source code. */
  source: string
}

/**
 * Language of a script.
 *
 * - `shell`: Bash.
 * - `python`: Python 3.
 * - `python2`: Python 2.
 * - `php`: PHP.
 * - `node`: JavaScript in Node.
 * - `powershell`: PowerShell.
 * - `groovy`: Groovy, which only Java executors can run.
 */
export const ScriptLanguage = ['shell', 'python', 'python2', 'php', 'node', 'powershell', 'groovy'] as const
export type ScriptLanguage = (typeof ScriptLanguage)[number]

/** A saved version of a script. */
export interface ScriptVersion {
  /** Id of the version. */
  id: number
  language: ScriptLanguage | null
  /** Description of the change. */
  remark: string
  /** Time when it was saved. */
  saved_at: Instant | null
  /** Source code. */
  source: string
}

/** A secret to set. */
export interface SecretBody {
  /** The value, at most 8 KiB. No answer contains it. */
  value: string
}

/** A secret of an app, without its value. */
export interface SecretView {
  /** Name, unique in the app. */
  name: string
  /** Time when it was set last. */
  set_at: Instant
  /** User who set it last. */
  set_by: string
}

/** A session of a user. */
export interface SessionView {
  /** User agent that opened the session. */
  agent: string
  /** Whether it is the session of this request. */
  current: boolean
  /** Id of the session; it cannot be used to sign in. */
  id: string
  /** IP address that opened the session. */
  ip: string
  /** Time when the session was opened. */
  opened_at: Instant
  /** Time of its last request. */
  seen_at: Instant
}

/** A configuration option of the node that answers. */
export interface SettingView {
  /** Whether a value is set but hidden because it is a secret. */
  hidden: boolean
  /** Name of the option. */
  option: string
  /** Value, in the syntax of the option; absent if it is not set or is a secret. */
  value: string | null
}

/**
 * How to handle a scheduled time on a day on which the job does not fire. A moved time keeps its time of day; times
 *  that meet on one day fire once.
 *
 * - `skip`: It does not fire.
 * - `next`: It moves to the next day on which the job fires.
 * - `previous`: It moves to the previous day on which the job fires.
 * - `nearest`: It moves to the nearest day on which the job fires; of two at the same distance, to the later one.
 */
export const Shift = ['skip', 'next', 'previous', 'nearest'] as const
export type Shift = (typeof Shift)[number]

/** Credentials to sign in. */
export interface SignIn {
  /** Password. */
  password: string
  /** User name. */
  user: string
}

/** Runs over time: `GET /v1/statistics?from=&until=&step_ms=`. */
export interface Statistics {
  /** Buckets in order of time; buckets without runs are omitted. */
  buckets: StatisticsBucket[]
  /** Whether all runs of the requested period are counted. */
  complete: boolean
  /**
   * If `complete` is false: start of the counted part of the period, because there are too many runs for one
   * response. Buckets from here on are exact; earlier ones are omitted.
   */
  counted_from?: Instant
  /** Length of a bucket in milliseconds. */
  step_ms: number
}

/** Runs of one bucket of time. */
export interface StatisticsBucket {
  /** Start of the bucket. */
  at: Instant
  /** Median dispatch latency after the scheduled time in milliseconds; absent if this node does not know it. */
  lateness_p50_ms: number | null
  /** 99th percentile of the dispatch latency in milliseconds; absent if this node does not know it. */
  lateness_p99_ms: number | null
  /** Number of runs by result. */
  runs: RunCounts
}

/**
 * A step of a workflow. It has exactly one of `job`, `handler`, `script`, `http`, `command`, `workflow`,
 * `depends`, `approval` and `wait_ms`.
 */
export interface StepBody {
  /** Whether a failure counts as a success for the steps that need it, and for the run. */
  allow_failure?: boolean
  /** App whose executors run its handler, script, request or program. Default: the app of the workflow. */
  app?: string
  approval?: ApprovalBody
  /** Number of connections that open it, instead of `when`. */
  at_least?: number
  /**
   * Program that an agent of its app starts, and its arguments; `${{ … }}` are expressions. Requires an agent that may
   * start the program.
   */
  command?: string[]
  delivery?: Delivery
  depends?: DependsBody
  /** Handler that it calls, without a job of its own. */
  handler?: string
  http?: HttpBody
  /** Condition, an expression: a step whose condition is false is skipped. */
  if?: string
  /** Key of the job that it runs; `id:` and the number of a job without a key. */
  job?: string
  /** Name, unique in the workflow: lower-case letters, digits and `_`. */
  name: string
  /** Steps that have to end before it opens. Without any, it opens when its phase begins. */
  needs?: Need[]
  /** Parameter of the run instead of the job's: a text, in which `${{ … }}` are expressions. */
  param?: string
  /** Phase that it belongs to. */
  phase?: Phase
  retry?: Retry
  route?: Route
  script?: ScriptBody
  /** Timeout in milliseconds, retries included. Default: none. */
  timeout_ms?: number
  /** Waits for this many milliseconds. */
  wait_ms?: number
  /** Which ends of its needs open it. */
  when?: JoinRule
  /** Parameter of the run as a JSON object, or the inputs of the workflow. `${{ … }}` are expressions. */
  with?: unknown
  /** Key of the workflow that it runs. It ends with that run. */
  workflow?: string
}

/**
 * State of a step in a workflow run. The last five are final.
 *
 * - `blocked`: Not all steps that it needs have ended, or its phase has not begun.
 * - `held`: It could open, but its run is paused.
 * - `open`: It runs a job or another workflow.
 * - `waiting`: It waits for a person or a time.
 * - `succeeded`: Ended: it did its work.
 * - `failed`: Ended: its last attempt failed, or it was refused, or waited too long.
 * - `skipped`: Ended: a condition was false, or none of its connections was taken.
 * - `unreached`: Ended: a step that it needs failed, so that it can never open.
 * - `cancelled`: Ended: its run was stopped or cancelled first.
 */
export const StepState = ['blocked', 'held', 'open', 'waiting', 'succeeded', 'failed', 'skipped', 'unreached', 'cancelled'] as const
export type StepState = (typeof StepState)[number]

/** A step of a workflow run. */
export interface StepView {
  /** Decision about an approval. */
  decision?: DecisionView
  /** Time when it ends by itself: the end of a wait, or a timeout. */
  due_at?: Instant
  /** Time when it ended. */
  ended_at: Instant | null
  /** Whether it succeeded in a run that this one resumes, and was kept. */
  kept?: boolean
  /** Question of an approval, or reason of a failure. */
  message: string | null
  /** Name of the step. */
  name: string
  /** Names of the steps that it needs. */
  needs: string[]
  /** Time when it opened. */
  opened_at: Instant | null
  /** Output, if the step has succeeded. Only in the response for a single step. */
  output?: unknown
  /** Phase that it belongs to. */
  phase: Phase
  /** First run of the step, if it runs a job or a workflow. */
  run: number | null
  /**
   * Runs of the step: its attempts and shards, the first one first, at most 100. Only in the response for a single
   * step.
   */
  runs?: RunView[]
  /** State of the step. */
  state: StepState
  /** Whether the connection to each of `needs` was taken, in the same order. `null`: not yet known. */
  taken: (boolean | null)[]
}

/** A token of an app, without its value. */
export interface TokenView {
  /** Creation time. */
  created_at: Instant | null
  /** Time when it expires. */
  expires_at: Instant | null
  /** Id of the token. */
  id: number
}

/** A step in the trace of a run. */
export interface TraceStep {
  /** Time of the step; absent if it was not stored. */
  at: Instant | null
  /** Details: a node, an address, a routing strategy or a message. */
  detail?: string
  /** Kind of step. */
  kind: TraceStepKind
}

/** Kind of step in the trace of a run. */
export const TraceStepKind = ['scheduled', 'claimed', 'routed', 'sent', 'accepted', 'refused', 'in_doubt', 'taken_over', 'ended', 'recorded', 'retried'] as const
export type TraceStepKind = (typeof TraceStepKind)[number]

/** Request for a run now. */
export interface Trigger {
  /** Executor to run on; must be one of the app's. */
  address?: string
  /** Parameter for this run instead of the job's, at most 16 000 characters. */
  param?: string
}

/** The run that was created. */
export interface Triggered {
  /** Id of the run; the first one if the job runs in shards. */
  run: number
}

/** Kind of error of a call to an executor. */
export const TroubleCode = ['connect_refused', 'connect_timeout', 'no_route', 'name_unknown', 'address_forbidden', 'tls_failed', 'connection_lost', 'no_answer', 'gateway_failed', 'bad_token', 'not_an_executor', 'refused', 'suspended', 'too_many_calls', 'other'] as const
export type TroubleCode = (typeof TroubleCode)[number]

/** Definition of a user, as sent to `PUT /v1/users/{name}` by an administrator. */
export interface UserBody {
  /** Whether the user is an administrator, with all rights for all apps. */
  admin: boolean
  /** Whether the user is disabled; a disabled user has no rights. */
  disabled: boolean
  /** Rights by app, if the user is not an administrator. */
  grants: Grant[]
  /** New password. Required for a new user; omit it to keep the current one. */
  password?: string
}

/** One page of a list. */
export interface UserPage {
  /** Items of this page, in the order of the list. */
  items: UserView[]
  /**
   * Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
   * still have a next one, because each request scans a limited number of rows.
   */
  next?: string
  /** Total number of items; absent where counting would be slow. */
  total?: number
}

/** A user. */
export interface UserView {
  /** Whether the user is an administrator, with all rights for all apps. */
  admin: boolean
  /** Time when the password or the rights were last changed. */
  changed_at: Instant | null
  /** Whether the user is disabled; a disabled user has no rights. */
  disabled: boolean
  /** Rights by app, if the user is not an administrator. */
  grants: Grant[]
  /** Id of the user. */
  id: number
  /** User name. */
  name: string
}

/** Definition of a work calendar, as sent to `PUT /v1/work-calendars/{calendar}`. It replaces all days. */
export interface WorkCalendarBody {
  /** Whether jobs fire on days after `known_until`. */
  beyond?: Beyond
  /** Holidays and make-up workdays, at most 20 000. */
  days?: WorkCalendarDay[]
  /** Last day of the published data, for example `2026-12-31`. Default: the data has no end. */
  known_until?: string
  /** Weekdays that are workdays unless `days` has an entry, for example `Mon-Fri` or `Sun-Thu`; `none` for none. */
  week?: string
}

/** A holiday or make-up workday. */
export interface WorkCalendarDay {
  /** The day, for example `2026-10-01`. */
  date: string
  /** Whether it is a workday, such as a make-up Saturday, or a day off. */
  is_work: boolean
  /** Name of the holiday, at most 100 characters. */
  name?: string
}

/** Days of a file to import. */
export interface WorkCalendarImport {
  /** Only return what would change. */
  dry_run?: boolean
  /**
   * Format of the file: `ical`, `csv` (lines of `date,work|off,name`) or `json` (`days` with `date`, `name` and
   * `isOffDay`, as in feeds of Chinese holidays). Default: detected from its first characters.
   */
  format?: string
  /** Last day of the published data. Default: the end of the last year that the file lists. */
  known_until?: string
  /** Whether to delete other entries of the years in the file first. Otherwise entries are only added and replaced. */
  replace?: boolean
  /** Text of the file. */
  text: string
}

/** What an import changes, or would change. */
export interface WorkCalendarImported {
  /** Number of new entries. */
  added: number
  /** The calendar after the import, without its days. */
  calendar: WorkCalendarView
  /** Number of events in the file that are neither holidays nor workdays. */
  ignored: number
  /** Jobs whose future fires change, at most 100. */
  jobs: MovedFires[]
  /** Number of deleted entries. */
  removed: number
  /** Number of entries with another kind or name than before. */
  replaced: number
}

/** A work calendar. Its `ETag` is its revision. */
export interface WorkCalendarView {
  /** Whether jobs fire on days after `known_until`. */
  beyond?: Beyond
  /** Number of entries in `days`. */
  day_count: number
  /** Holidays and make-up workdays, at most 20 000. */
  days?: WorkCalendarDay[]
  /** Whether the data ends within 30 days, or has ended: import the next year. */
  ends_soon: boolean
  /** Number of jobs that use it. */
  jobs: number
  /** Last day of the published data, for example `2026-12-31`. Default: the data has no end. */
  known_until?: string
  /** Unique name. */
  name: string
  /** Incremented by each change. */
  revision: number
  /** Weekdays that are workdays unless `days` has an entry, for example `Mon-Fri` or `Sun-Thu`; `none` for none. */
  week?: string
}

/**
 * Steps that each run of a job consists of, instead of a handler or script. A run gets its inputs as its parameter: a
 * JSON object.
 */
export interface WorkflowBody {
  /** Days from the date of a run to its business date, for example -1. Default: 0. */
  business_days?: number
  /** Timeout of the phase `finally` in milliseconds. Default: 600 000. */
  finally_timeout_ms?: number
  /** Inputs of a run, by name. */
  inputs?: Record<string, unknown>
  /** What happens to the other steps when a step fails. */
  on_error?: OnError
  /** Output of a run: any JSON value, in which `${{ … }}` are expressions. Default: none. */
  output?: unknown
  /** Description of the change, for the list of versions. Responses have it there only. */
  remark?: string
  /** Where a retry of a failed run begins. The number of retries is that of the job. */
  retry_from?: RetryFrom
  /** Steps, at most 10 000. Empty in lists of jobs. */
  steps: StepBody[]
  /** Timeout of a run in milliseconds. Default: none. */
  timeout_ms?: number
}

/** Definition to check: exactly one of `text` and `workflow`. */
export interface WorkflowCheck {
  /** The definition as YAML or JSON. */
  text?: string
  workflow?: WorkflowBody
}

/** States of the steps of a workflow's last runs. */
export interface WorkflowGrid {
  /** Value of `before` for the runs before these, if there are any. */
  next: number | null
  /** The runs, newest first. */
  runs: GridRun[]
  /** Names of the steps: those of the newest run in the order of its definition, then those that only older runs have. */
  steps: string[]
}

/** An input of a workflow run. */
export interface WorkflowInput {
  /** Value of a run that sets none. Without it, each run must set a value. */
  default?: unknown
  /** The only allowed values. Default: all values of the type. */
  one_of?: unknown[]
  /** Type of its values. */
  type: InputType
}

/** A problem of a definition. */
export interface WorkflowProblem {
  /** Column in that line, from 1. */
  column?: number
  /** What is wrong, and what to do. */
  detail: string
  /** Line in the text, from 1, if it is known. */
  line?: number
  /** Path of the field, for example `steps.check.needs[0].if`; empty if the text cannot be read. */
  path: string
}

/** A workflow run with its steps. */
export interface WorkflowRunView {
  /** Attempt number, from 1. Retries and resumptions count. */
  attempt: number
  /** Time when it began. */
  begun_at: Instant
  /** Date of the run: the day of its scheduled time in the zone of the job. */
  date: string
  /** Time when it ended. */
  ended_at: Instant | null
  /** Inputs of the run. */
  inputs: unknown
  /** Whether no steps open until the run is continued. */
  paused: boolean
  /** Current phase. */
  phase: Phase
  /** Id of the run that resumes it. */
  resumed_by?: number
  /** Id of the run that it resumes. */
  resumed_of?: number
  /** Id of the run. */
  run: number
  /** Steps in the order of the definition. */
  steps: StepView[]
}

/** A version of the workflow of a job. */
export interface WorkflowVersion {
  /** User who saved it. */
  by: string
  /** Description of the change. */
  remark: string
  /** The newest earlier version with the same definition, for example the one that was restored. */
  same_as?: number
  /** Time when it was saved. */
  saved_at: Instant
  /** The definition as YAML. Absent in lists. */
  text?: string
  /** Number of the version, from 1. The greatest one is the current version. */
  version: number
  /** The definition. Absent in lists. */
  workflow?: WorkflowBody
}
