// Labels of the values and job fields of the API, both languages side by side: a new value is one line here. The type
// checker compares them with the generated types.

import type {
  AlertKind,
  AlertState,
  BackfillOrder,
  BackfillState,
  Backoff,
  Block,
  ChildrenMode,
  Database,
  Delivery,
  Existing,
  InstantState,
  JobBody,
  JoinRule,
  Misfire,
  MissReason,
  OnError,
  OnDays,
  OnFailure,
  Origin,
  Overlap,
  Phase,
  PlannedAction,
  ProblemCode,
  RetryFrom,
  Right,
  Route,
  RunState,
  Schedule,
  Shift,
  StepState,
  TraceStepKind,
  TroubleCode,
} from '../api/wire'
import type { Both, Each } from './both'

/** Durations of any of the variants. */
export type DurationOf<Union> = Union extends Union ? Exclude<keyof Union, 'kind'> : never

export const VALUES = {
  /** State of a run. */
  runState: {
    waiting: { en: 'Waiting', zh: '等待中' },
    claimed: { en: 'Claimed', zh: '已认领' },
    cancelling: { en: 'Cancelling', zh: '正在终止' },
    unknown: { en: 'Unknown', zh: '状态未知' },
    running: { en: 'Running', zh: '执行中' },
    succeeded: { en: 'Succeeded', zh: '成功' },
    failed: { en: 'Failed', zh: '失败' },
    timed_out: { en: 'Timed out', zh: '超时' },
    lost: { en: 'Lost', zh: '丢失' },
    cancelled: { en: 'Cancelled', zh: '已终止' },
  } satisfies Each<RunState>,
  /** Why a run exists. */
  origin: {
    schedule: { en: 'Schedule', zh: '定时' },
    misfire: { en: 'Catch-up', zh: '补执行' },
    manual: { en: 'Manual', zh: '手动' },
    child: { en: 'Child job', zh: '父任务' },
    step: { en: 'Workflow', zh: '工作流' },
    resume: { en: 'Resumed', zh: '恢复执行' },
    backfill: { en: 'Backfill', zh: '补数' },
    retry: { en: 'Retry', zh: '失败重试' },
  } satisfies Each<Origin['kind']>,
  backfillState: {
    running: { en: 'Running', zh: '执行中' },
    paused: { en: 'Paused', zh: '已暂停' },
    cancelled: { en: 'Cancelled', zh: '已取消' },
    finished: { en: 'Finished', zh: '已完成' },
  } satisfies Each<BackfillState>,
  /** State of a scheduled time of a backfill. */
  instantState: {
    pending: { en: 'pending', zh: '待执行' },
    open: { en: 'open', zh: '执行中' },
    succeeded: { en: 'succeeded', zh: '成功' },
    failed: { en: 'failed', zh: '失败' },
    skipped: { en: 'left out', zh: '已跳过' },
    cancelled: { en: 'cancelled', zh: '已取消' },
  } satisfies Each<InstantState>,
  backfillOrder: {
    oldest: { en: 'Oldest first', zh: '从旧到新' },
    newest: { en: 'Newest first', zh: '从新到旧' },
  } satisfies Each<BackfillOrder>,
  /** What a backfill does with scheduled times that have runs. */
  existing: {
    skip: { en: 'Skip those that succeeded', zh: '跳过已成功的' },
    failed: { en: 'Only if the newest run failed', zh: '仅最近一次失败的' },
    again: { en: 'Run all again', zh: '全部重新执行' },
  } satisfies Each<Existing>,
  onFailure: {
    continue: { en: 'Continue with the others', zh: '继续执行其余' },
    stop: { en: 'Pause', zh: '暂停' },
  } satisfies Each<OnFailure>,
  plannedAction: {
    run: { en: 'would run', zh: '将执行' },
    skip: { en: 'left out:', zh: '跳过：' },
    wait: { en: 'would wait for', zh: '等待：' },
  } satisfies Each<PlannedAction>,
  /** State of a step of a workflow run. */
  stepState: {
    blocked: { en: 'Not yet', zh: '未开始' },
    held: { en: 'Paused', zh: '已暂停' },
    open: { en: 'Running', zh: '执行中' },
    waiting: { en: 'Waiting', zh: '等待中' },
    succeeded: { en: 'Succeeded', zh: '成功' },
    failed: { en: 'Failed', zh: '失败' },
    skipped: { en: 'Skipped', zh: '已跳过' },
    unreached: { en: 'Not reached', zh: '未到达' },
    cancelled: { en: 'Cancelled', zh: '已终止' },
  } satisfies Each<StepState>,
  stepPhase: {
    main: { en: 'main', zh: '主阶段' },
    on_failure: { en: 'after a failure', zh: '失败后' },
    finally: { en: 'at the end', zh: '结束时' },
  } satisfies Each<Phase>,
  onError: {
    stop: { en: 'no further steps start', zh: '不再开始其他步骤' },
    continue: { en: 'steps that do not need it go on', zh: '不依赖它的步骤继续' },
    cancel: { en: 'running steps are cancelled', zh: '终止执行中的步骤' },
  } satisfies Each<OnError>,
  retryFrom: {
    failed: { en: 'at the failed steps', zh: '从失败的步骤开始' },
    start: { en: 'at the first steps', zh: '从头开始' },
  } satisfies Each<RetryFrom>,
  /** Which ends of its needs open a step, as a sentence. */
  joinRule: {
    joined: {
      en: 'It starts when all of them have ended, none has failed and at least one connection is taken.',
      zh: '全部结束、没有失败且至少有一条连线经过时开始。',
    },
    all_succeeded: {
      en: 'It starts when all of them have succeeded and all connections are taken.',
      zh: '全部成功且所有连线都经过时开始。',
    },
    all_ended: { en: 'It starts when all of them have ended.', zh: '全部结束时开始。' },
    any_succeeded: { en: 'It starts with the first connection that is taken.', zh: '第一条连线经过时开始。' },
    any_failed: { en: 'It starts when one of them has failed.', zh: '其中一个失败时开始。' },
  } satisfies Each<JoinRule>,
  traceStep: {
    scheduled: { en: 'Scheduled', zh: '计划时间' },
    claimed: { en: 'Claimed by a node', zh: '节点已认领' },
    routed: { en: 'Executor selected', zh: '已选择执行器' },
    sent: { en: 'Dispatched', zh: '已发送' },
    accepted: { en: 'Accepted by the executor', zh: '执行器已接收' },
    refused: { en: 'Rejected', zh: '被拒绝' },
    in_doubt: { en: 'No response: state unknown', zh: '没有响应，状态未知' },
    taken_over: { en: 'Taken over by another node', zh: '由其他节点接管' },
    ended: { en: 'Finished', zh: '已结束' },
    recorded: { en: 'Result stored', zh: '结果已保存' },
    retried: { en: 'Retry created', zh: '已创建重试' },
  } satisfies Each<TraceStepKind>,
  /** Why a fire was not sent. */
  missReason: {
    skipped: { en: 'Missed; skipped by the misfire policy', zh: '已过期，按调度过期策略忽略' },
    coalesced: { en: 'Missed; merged into one catch-up run', zh: '已过期，合并补执行一次' },
    blocked: { en: 'Another run was still open', zh: '前一次执行尚未结束' },
    cancelled: { en: 'The job was stopped or changed', zh: '任务被停用或修改' },
  } satisfies Each<MissReason>,
  schedule: {
    cron: { en: 'Cron', zh: 'Cron' },
    timetable: { en: 'Timetable', zh: '时间表' },
    fixed_rate: { en: 'Fixed interval', zh: '固定间隔' },
    fixed_delay: { en: 'Fixed delay', zh: '固定延迟' },
    once: { en: 'Once', zh: '仅一次' },
    none: { en: 'Manual only', zh: '仅手动' },
  } satisfies Each<Schedule['kind']>,
  onDays: {
    work: { en: 'Workdays', zh: '工作日' },
    off: { en: 'Days off', zh: '休息日' },
    any: { en: 'All days with data', zh: '有数据的所有日期' },
  } satisfies Each<OnDays>,
  shift: {
    skip: { en: 'Skip', zh: '跳过' },
    next: { en: 'Next such day', zh: '顺延到下一个' },
    previous: { en: 'Previous such day', zh: '提前到上一个' },
    nearest: { en: 'Nearest such day', zh: '移到最近的一个' },
  } satisfies Each<Shift>,
  scheduleField: {
    every_ms: { en: 'Interval', zh: '间隔' },
    rules: { en: 'Rules, one per line', zh: '规则，每行一条' },
    delay_ms: { en: 'Delay after the end of the last run', zh: '上次执行结束后的延迟' },
    at: { en: 'Scheduled time', zh: '计划时间' },
  },
  /** Daylight saving rules; the first is for none. */
  dst: {
    '': { en: 'Default', zh: '默认' },
    natural: { en: 'Natural: fire exactly once', zh: '自然：恰好触发一次' },
    quartz: { en: 'Quartz: skip missing times, fire second repeat', zh: 'Quartz：不存在的跳过，重复的取第二次' },
    'skip-first': { en: 'Skip missing times, fire first repeat', zh: '不存在的跳过，重复的取第一次' },
    'next-first': { en: 'Defer missing times, fire first repeat', zh: '不存在的顺延，重复的取第一次' },
    'next-both': { en: 'Defer missing times, fire both repeats', zh: '不存在的顺延，重复的都触发' },
  },
  route: {
    first: { en: 'First', zh: '第一个' },
    last: { en: 'Last', zh: '最后一个' },
    round_robin: { en: 'Round robin', zh: '轮询' },
    random: { en: 'Random', zh: '随机' },
    consistent_hash: { en: 'Consistent hash', zh: '一致性哈希' },
    least_frequently_used: { en: 'Least frequently used', zh: '最不经常使用' },
    least_recently_used: { en: 'Least recently used', zh: '最近最久未使用' },
    failover: { en: 'Failover', zh: '故障转移' },
    first_idle: { en: 'First idle', zh: '忙碌转移' },
    broadcast: { en: 'Broadcast', zh: '分片广播' },
  } satisfies Each<Route>,
  block: {
    serial: { en: 'Queue', zh: '单机串行' },
    discard_later: { en: 'Reject the new run', zh: '丢弃后续调度' },
    cover_early: { en: 'Cancel the old run', zh: '覆盖之前调度' },
  } satisfies Each<Block>,
  overlap: {
    allow: { en: 'Allow', zh: '照常执行' },
    skip: { en: 'Skip the new run', zh: '跳过本次' },
    wait: { en: 'Wait', zh: '等待前一次结束' },
    replace: { en: 'Replace: cancel the old run', zh: '终止前一次' },
  } satisfies Each<Overlap>,
  misfire: {
    skip: { en: 'Skip', zh: '忽略' },
    fire_once: { en: 'One catch-up run for all', zh: '合并补执行一次' },
    fire_all: { en: 'Run every missed fire', zh: '逐个补执行' },
  } satisfies Each<Misfire['kind']>,
  backoff: {
    fixed: { en: 'Fixed', zh: '固定' },
    exponential: { en: 'Exponential', zh: '逐次加倍' },
  } satisfies Each<Backoff['kind']>,
  backoffField: {
    delay_ms: { en: 'Delay before each retry', zh: '每次重试的间隔' },
    first_ms: { en: 'Delay before the first retry', zh: '首次重试的间隔' },
    max_ms: { en: 'Maximum delay', zh: '最长间隔' },
  } satisfies Each<DurationOf<Backoff>>,
  delivery: {
    at_most_once: { en: 'At most once', zh: '至多一次' },
    probe: { en: 'Probe: ask the executor', zh: '询问执行器' },
    at_least_once: { en: 'At least once', zh: '至少一次' },
  } satisfies Each<Delivery>,
  childrenMode: {
    once: { en: 'Once, after all shards succeeded', zh: '全部分片成功后触发一次' },
    each: { en: 'After each shard', zh: '每个分片成功后各触发一次' },
  } satisfies Each<ChildrenMode>,
  alertKind: {
    failed: { en: 'Failed', zh: '失败' },
    timed_out: { en: 'Timed out', zh: '超时' },
    lost: { en: 'Lost', zh: '丢失' },
    late: { en: 'Late', zh: '延迟' },
    not_run: { en: 'Not run', zh: '未执行' },
    history_lost: { en: 'Commits lost', zh: '数据丢失' },
  } satisfies Each<AlertKind>,
  alertState: {
    waiting: { en: 'Sending', zh: '发送中' },
    delivered: { en: 'Notified', zh: '已通知' },
    given_up: { en: 'Not delivered', zh: '未送达' },
    nobody: { en: 'No channel configured', zh: '未配置渠道' },
  } satisfies Each<AlertState>,
  alertStateHint: {
    waiting: { en: 'The notification is retried until every channel has accepted it.', zh: '通知会重试，直到所有渠道都已接收。' },
    delivered: { en: 'Every channel has accepted the notification.', zh: '所有渠道都已接收通知。' },
    given_up: {
      en: 'At least one channel did not accept the notification. It is not retried any more.',
      zh: '有渠道没有接收通知，不再重试。',
    },
    nobody: {
      en: 'The alert is visible only here and in the log of the server. To receive notifications, set alert-mail or alert-webhook.',
      zh: '报警只显示在这里和调度中心的日志中。如需接收通知，请设置选项 alert-mail 或 alert-webhook。',
    },
  } satisfies Each<AlertState>,
  channel: {
    mail: { en: 'Mail', zh: '邮件' },
    webhook: { en: 'Webhook', zh: 'Webhook' },
    dingtalk: { en: 'DingTalk', zh: '钉钉' },
    wecom: { en: 'WeCom', zh: '企业微信' },
    feishu: { en: 'Feishu', zh: '飞书' },
    slack: { en: 'Slack', zh: 'Slack' },
  },
  right: {
    view: { en: 'View', zh: '查看' },
    operate: { en: 'Operate', zh: '操作' },
    edit: { en: 'Edit', zh: '编辑' },
    script: { en: 'Scripts', zh: '脚本' },
  } satisfies Each<Right>,
  rightHint: {
    view: { en: 'View jobs, runs and logs', zh: '查看任务、执行和日志' },
    operate: { en: 'Start, stop and trigger jobs, cancel runs', zh: '启用、停用和手动执行任务，终止执行' },
    edit: { en: 'Create, edit and delete jobs', zh: '创建、修改和删除任务' },
    script: { en: 'Edit scripts, which run on executors', zh: '编写脚本（脚本在执行器上执行）' },
  } satisfies Each<Right>,
  database: {
    sqlite: { en: 'SQLite', zh: 'SQLite' },
    mysql: { en: 'MySQL / MariaDB', zh: 'MySQL / MariaDB' },
    postgres: { en: 'PostgreSQL', zh: 'PostgreSQL' },
  } satisfies Each<Database>,
  plane: {
    web: { en: 'XXL-JOB web API', zh: 'XXL-JOB 网页接口' },
    executor: { en: 'Executor', zh: '执行器' },
    api: { en: 'API', zh: 'API' },
  },
  action: {
    'job.create': { en: 'Job created', zh: '创建任务' },
    'job.put': { en: 'Job saved', zh: '保存任务' },
    'job.delete': { en: 'Job deleted', zh: '删除任务' },
    'job.start': { en: 'Job started', zh: '启用任务' },
    'job.stop': { en: 'Job stopped', zh: '停用任务' },
    'job.move': { en: 'Job moved', zh: '移动任务' },
    'job.trigger': { en: 'Job triggered', zh: '手动执行任务' },
    'workflow.restore': { en: 'Version of the workflow restored', zh: '恢复工作流版本' },
    'backfill.start': { en: 'Backfill started', zh: '发起补数' },
    'backfill.pause': { en: 'Backfill paused', zh: '暂停补数' },
    'backfill.continue': { en: 'Backfill continued', zh: '继续补数' },
    'backfill.cancel': { en: 'Backfill cancelled', zh: '取消补数' },
    'backfill.retry': { en: 'Backfill retried', zh: '重试补数' },
    'job.batch': { en: 'Jobs imported', zh: '批量导入任务' },
    'job.bulk': { en: 'Jobs changed in bulk', zh: '批量修改任务' },
    'job.declare': { en: 'Job declared by an executor', zh: '执行器声明任务' },
    'script.put': { en: 'Script saved', zh: '保存脚本' },
    'run.kill': { en: 'Run cancelled', zh: '终止执行' },
    'run.again': { en: 'Run repeated', zh: '再次执行' },
    'run.clear': { en: 'Runs cleared', zh: '清理调度日志' },
    'run.pause': { en: 'Run paused', zh: '暂停执行' },
    'run.continue': { en: 'Run continued', zh: '继续执行' },
    'run.resume': { en: 'Run resumed', zh: '恢复执行' },
    'step.decide': { en: 'Step decided', zh: '审批步骤' },
    'calendar.put': { en: 'Work calendar saved', zh: '保存工作日历' },
    'calendar.import': { en: 'Work calendar imported', zh: '导入工作日历' },
    'calendar.delete': { en: 'Work calendar deleted', zh: '删除工作日历' },
    'app.put': { en: 'App saved', zh: '保存应用' },
    'app.delete': { en: 'App deleted', zh: '删除应用' },
    'secret.put': { en: 'Secret set', zh: '设置密钥' },
    'secret.delete': { en: 'Secret deleted', zh: '删除密钥' },
    'token.create': { en: 'Token created', zh: '生成令牌' },
    'token.end': { en: 'Token revoked', zh: '吊销令牌' },
    'executor.check': { en: 'Executor checked', zh: '检查执行器' },
    'user.put': { en: 'User saved', zh: '保存用户' },
    'user.delete': { en: 'User deleted', zh: '删除用户' },
    'key.create': { en: 'API key created', zh: '创建 API 密钥' },
    'key.delete': { en: 'API key revoked', zh: '吊销 API 密钥' },
    'session.open': { en: 'Signed in', zh: '登录' },
    'session.close': { en: 'Signed out', zh: '退出登录' },
    'session.end': { en: 'Session ended', zh: '结束会话' },
    'password.change': { en: 'Password changed', zh: '修改密码' },
  },
  problem: {
    unreachable: {
      en: ['The server does not respond', 'Check that it is running and that you are online. This page retries automatically.'],
      zh: ['调度中心没有响应', '请检查调度中心是否已启动、网络是否连通。本页会自动重试。'],
    },
    malformed_request: {
      en: ['Malformed request', 'The console and the server may have different versions. Reload the page.'],
      zh: ['请求格式错误', '控制台与调度中心的版本可能不一致，请刷新页面。'],
    },
    invalid_fields: { en: ['Some fields are invalid', 'They are marked below.'], zh: ['部分字段无效', '已在下方标出。'] },
    not_signed_in: { en: ['You are signed out', 'Sign in again to continue.'], zh: ['您已退出登录', '请重新登录后继续。'] },
    wrong_password: { en: ['Wrong user name or password', 'Check both and try again.'], zh: ['用户名或密码错误', '请检查后重试。'] },
    not_allowed: { en: ['Permission denied', 'Ask an administrator for the missing right.'], zh: ['没有权限', '请向管理员申请所需权限。'] },
    foreign_origin: {
      en: ['Cross-origin request rejected', 'Reload the page from the configured address of the server.'],
      zh: ['已拒绝跨站请求', '请通过调度中心配置的地址重新打开页面。'],
    },
    no_such_path: {
      en: ['The server does not support this request', 'The console and the server may have different versions. Reload the page.'],
      zh: ['调度中心不支持该请求', '控制台与调度中心的版本可能不一致，请刷新页面。'],
    },
    not_found: { en: ['Not found', 'It was deleted, or you have no right to view it.'], zh: ['未找到', '内容已被删除，或您无权查看。'] },
    wrong_method: {
      en: ['The server does not support this request', 'The console and the server may have different versions. Reload the page.'],
      zh: ['调度中心不支持该请求', '控制台与调度中心的版本可能不一致，请刷新页面。'],
    },
    conflict: {
      en: ['Already exists or still in use', 'Choose another name or key, or remove the objects that use it first.'],
      zh: ['已存在或正在使用', '请换一个名称或标识，或先移除引用它的内容。'],
    },
    outdated: {
      en: ['Changed by another user in the meantime', 'Reload the page, then repeat your change.'],
      zh: ['内容已被其他用户修改', '请刷新页面，再重新修改。'],
    },
    too_large: { en: ['The request is too large', 'Shorten the text.'], zh: ['请求内容过大', '请缩短后重试。'] },
    too_many_requests: { en: ['Too many attempts', 'Wait a moment, then try again.'], zh: ['尝试次数过多', '请稍候再试。'] },
    app_offline: {
      en: ['No executor of this app is online', 'Start an executor, and check that it registers with this server.'],
      zh: ['该应用没有在线的执行器', '请启动执行器，并确认它已注册到本调度中心。'],
    },
    executor_unreachable: {
      en: ['The executor is unreachable', 'The Executors page shows the reason.'],
      zh: ['执行器无法连接', '原因见执行器页面。'],
    },
    executor_refused: {
      en: ['The executor rejected the request', 'The run stays open until it finishes or is lost.'],
      zh: ['执行器拒绝了请求', '该次执行保持未结束，直到执行器上报结果或判定为丢失。'],
    },
    database_unavailable: { en: ['The database does not respond', 'Try again in a moment.'], zh: ['数据库没有响应', '请稍候重试。'] },
    database_broken: {
      en: ['The database contains unexpected data', 'See the log of the server for details.'],
      zh: ['数据库中有异常数据', '详情见调度中心的日志。'],
    },
  } satisfies Each<ProblemCode | 'unreachable', [string, string]>,
  trouble: {
    connect_refused: {
      en: ['Connection refused', 'Start the executor, and check its address and port.'],
      zh: ['连接被拒绝', '请启动执行器，并检查地址和端口。'],
    },
    connect_timeout: {
      en: ['Connection timed out', 'Check the address, and the firewall between the server and the executor.'],
      zh: ['连接超时', '请检查地址，以及调度中心与执行器之间的防火墙。'],
    },
    no_route: {
      en: ['No route to host', 'Register an address that the server can reach.'],
      zh: ['网络不可达', '请让执行器注册调度中心可以访问的地址。'],
    },
    name_unknown: {
      en: ['Unknown host name', 'Register an IP address, or a name that the DNS of the server can resolve.'],
      zh: ['无法解析主机名', '请注册 IP 地址，或调度中心的 DNS 能解析的名称。'],
    },
    address_forbidden: {
      en: ['Address not allowed', 'Add the network of the executor to the option executor-networks.'],
      zh: ['地址不在允许范围内', '请把执行器的网段加入选项 executor-networks。'],
    },
    tls_failed: {
      en: ['TLS handshake failed', 'Check the certificate of the executor and the option executor-ca.'],
      zh: ['TLS 握手失败', '请检查执行器的证书和选项 executor-ca。'],
    },
    connection_lost: {
      en: ['Connection closed before the response', 'The executor restarted, or a proxy closed the connection.'],
      zh: ['收到响应前连接已断开', '执行器可能刚刚重启，或中间的代理断开了连接。'],
    },
    no_answer: {
      en: ['Response timed out', 'The executor hangs or is overloaded. See its log and the option call-timeout.'],
      zh: ['响应超时', '执行器卡住或负载过高；请查看它的日志和选项 call-timeout。'],
    },
    gateway_failed: {
      en: ['Proxy error', 'A proxy cannot reach the executor. See the log of the proxy.'],
      zh: ['代理返回错误', '代理无法访问执行器，请查看代理的日志。'],
    },
    bad_token: {
      en: ['Token rejected by the executor', 'Configure a token of this app in the executor and restart it.'],
      zh: ['执行器拒绝了令牌', '请在执行器中配置该应用的令牌并重启。'],
    },
    not_an_executor: {
      en: ['Not an executor', 'Another program listens on this port. Check the address and port.'],
      zh: ['该地址不是执行器', '端口被其他程序占用，请检查地址和端口。'],
    },
    refused: {
      en: ['Rejected by the executor', 'The reason is shown below. See also the log of the executor.'],
      zh: ['执行器拒绝了请求', '原因见下，另请查看执行器的日志。'],
    },
    suspended: {
      en: ['Suspended after repeated failures', 'The server retries automatically. Select “Check now” to retry immediately.'],
      zh: ['多次失败后已暂停调用', '调度中心会自动重试；点击「立即检查」可马上重试。'],
    },
    too_many_calls: {
      en: ['Too many open calls', 'The server continues when other calls finish. Slow executors are the usual cause.'],
      zh: ['调度中心的并发调用已达上限', '其他调用结束后会继续；通常由响应慢的执行器引起。'],
    },
    other: {
      en: ['The last call failed', 'See the logs of the executor and of the server.'],
      zh: ['最近一次调用失败', '请查看执行器和调度中心的日志。'],
    },
  } satisfies Each<TroubleCode, [string, string]>,
}

/** Fields of a job, with their hints in its form. */
export const FIELDS = {
  app: { label: { en: 'App', zh: '应用' }, hint: { en: 'The executors of this app run the job.', zh: '由该应用的执行器执行。' } },
  name: { label: { en: 'Name', zh: '名称' } },
  schedule: { label: { en: 'Schedule', zh: '调度规则' } },
  handler: {
    label: { en: 'Handler', zh: '处理器' },
    hint: { en: 'Name of the handler in the executor (JobHandler in XXL-JOB)', zh: '执行器中的处理器名称，即 XXL-JOB 的 JobHandler' },
  },
  param: {
    label: { en: 'Parameter', zh: '任务参数' },
    hint: { en: 'Passed to the handler or script as text', zh: '以文本形式传给处理器或脚本' },
  },
  script: { label: { en: 'Script', zh: '脚本' } },
  workflow: { label: { en: 'Workflow', zh: '工作流' } },
  enabled: { label: { en: 'State', zh: '状态' } },
  workdays: { label: { en: 'Work calendar', zh: '工作日历' } },
  valid_from: { label: { en: 'Valid from', zh: '生效时间' } },
  max_fires: { label: { en: 'Maximum number of fires', zh: '最大触发次数' } },
  valid_until: { label: { en: 'Valid until', zh: '失效时间' } },
  jitter_ms: { label: { en: 'Jitter (random delay)', zh: '随机延迟上限' } },
  misfire: {
    label: { en: 'Misfire policy', zh: '调度过期策略' },
    hint: { en: 'Applies to fires that are more than 5 s late.', zh: '触发延迟超过 5 秒时生效。' },
  },
  overlap: {
    label: { en: 'Overlap policy', zh: '重叠策略' },
    hint: { en: 'Applies if another run of this job is open in the cluster.', zh: '集群中仍有本任务的执行未结束时生效。' },
  },
  retry: { label: { en: 'Retries', zh: '失败重试次数' } },
  delivery: {
    label: { en: 'Delivery policy', zh: '投递策略' },
    hint: { en: 'Applies if an executor does not respond to a dispatched run.', zh: '已发送但执行器没有响应时生效。' },
  },
  timeout_ms: { label: { en: 'Timeout', zh: '任务超时时间' } },
  route: {
    label: { en: 'Routing strategy', zh: '路由策略' },
    hint: { en: 'Selects the executor if several are online.', zh: '有多个在线执行器时，决定选择哪一个。' },
  },
  block: {
    label: { en: 'Block strategy', zh: '阻塞处理策略' },
    hint: { en: 'Applies if the selected executor is still busy with this job.', zh: '所选执行器仍在执行本任务时生效。' },
  },
  children: {
    label: { en: 'Child jobs', zh: '子任务' },
    hint: {
      en: 'Keys or ids of jobs, separated with commas, for example orders/report, id:42',
      zh: '任务标识或 ID，用逗号分隔，例如：orders/report, id:42',
    },
  },
  children_mode: { label: { en: 'Child jobs of a broadcast', zh: '分片广播的子任务' } },
  alert: { label: { en: 'Alert on failure', zh: '失败报警' } },
  alert_to: {
    label: { en: 'Mail recipients', zh: '报警邮件' },
    hint: {
      en: 'Addresses, separated with commas. Webhooks are configured for the whole server.',
      zh: '邮箱地址，用逗号分隔。Webhook 由整个调度中心统一配置。',
    },
  },
  author: { label: { en: 'Owner', zh: '负责人' } },
  tags: {
    label: { en: 'Tags', zh: '标签' },
    hint: { en: 'Separate tags with commas, for example finance, nightly', zh: '用逗号分隔，例如：财务, 夜间' },
  },
} satisfies Record<keyof JobBody, { label: Both; hint?: Both }>
