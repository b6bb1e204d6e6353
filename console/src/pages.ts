// The pages of the console: the path and component of each, and its entry in the navigation. A new page is one row here.

import type { Component } from 'svelte'

import Activity from '@lucide/svelte/icons/activity'
import Bell from '@lucide/svelte/icons/bell'
import CalendarDays from '@lucide/svelte/icons/calendar-days'
import CalendarClock from '@lucide/svelte/icons/calendar-clock'
import Info from '@lucide/svelte/icons/info'
import KeyRound from '@lucide/svelte/icons/key-round'
import LayoutDashboard from '@lucide/svelte/icons/layout-dashboard'
import Plus from '@lucide/svelte/icons/plus'
import ScrollText from '@lucide/svelte/icons/scroll-text'
import Server from '@lucide/svelte/icons/server'
import Settings from '@lucide/svelte/icons/settings'
import Users from '@lucide/svelte/icons/users'

import type { Words } from './text/en'

export interface Page {
  /** A part that begins with `:` is passed to the component. */
  path: string
  /** Loads the component when the page is first shown. */
  load: () => Promise<{ default: Component<never> }>
}

/** A page that users go to directly. */
export interface Place extends Page {
  label: (t: Words) => string
  icon: Component<{ size?: number; strokeWidth?: number }>
  /** Where the navigation lists it; absent: only a shortcut leads there. */
  group?: 'operations' | 'administration'
  /** Whether only administrators see it. */
  admin?: true
  /** Second key of its shortcut, after `g`. */
  key?: string
}

const PLACES: Place[] = [
  {
    path: '/',
    load: () => import('./routes/Overview.svelte'),
    label: (t) => t.overview.title,
    icon: LayoutDashboard,
    group: 'operations',
    key: 'o',
  },
  {
    path: '/jobs',
    load: () => import('./routes/Jobs.svelte'),
    label: (t) => t.jobs.title,
    icon: CalendarClock,
    group: 'operations',
    key: 'j',
  },
  { path: '/jobs/new', load: () => import('./routes/NewJob.svelte'), label: (t) => t.jobs.new, icon: Plus, key: 'n' },
  { path: '/runs', load: () => import('./routes/Runs.svelte'), label: (t) => t.runs.title, icon: Activity, group: 'operations', key: 'r' },
  {
    path: '/alerts',
    load: () => import('./routes/Alerts.svelte'),
    label: (t) => t.alerts.title,
    icon: Bell,
    group: 'operations',
    key: 'a',
  },
  {
    path: '/executors',
    load: () => import('./routes/Executors.svelte'),
    label: (t) => t.executors.title,
    icon: Server,
    group: 'operations',
    key: 'e',
  },
  {
    path: '/calendars',
    load: () => import('./routes/Calendars.svelte'),
    label: (t) => t.calendars.title,
    icon: CalendarDays,
    group: 'operations',
    key: 'c',
  },
  {
    path: '/users',
    load: () => import('./routes/Users.svelte'),
    label: (t) => t.users.title,
    icon: Users,
    group: 'administration',
    admin: true,
  },
  { path: '/keys', load: () => import('./routes/Keys.svelte'), label: (t) => t.keys.title, icon: KeyRound, group: 'administration' },
  {
    path: '/audit',
    load: () => import('./routes/Audit.svelte'),
    label: (t) => t.audit.title,
    icon: ScrollText,
    group: 'administration',
    admin: true,
  },
  {
    path: '/settings',
    load: () => import('./routes/Settings.svelte'),
    label: (t) => t.settings.title,
    icon: Settings,
    group: 'administration',
  },
  { path: '/about', load: () => import('./routes/About.svelte'), label: (t) => t.about.title, icon: Info, group: 'administration' },
]

/** The first page whose path matches is shown. */
export const PAGES: Page[] = [
  ...PLACES,
  { path: '/jobs/:id', load: () => import('./routes/Job.svelte') },
  { path: '/jobs/:id/edit', load: () => import('./routes/EditJob.svelte') },
  { path: '/jobs/:id/script', load: () => import('./routes/JobScript.svelte') },
  { path: '/jobs/:id/workflow', load: () => import('./routes/JobWorkflow.svelte') },
  { path: '/jobs/:id/versions', load: () => import('./routes/JobVersions.svelte') },
  { path: '/jobs/:id/history', load: () => import('./routes/JobHistory.svelte') },
  { path: '/jobs/:id/backfills', load: () => import('./routes/JobBackfills.svelte') },
  { path: '/runs/:id', load: () => import('./routes/Run.svelte') },
]

/** Places that a user may go to. */
export const places = (isAdmin: boolean) => PLACES.filter((place) => isAdmin || !place.admin)
