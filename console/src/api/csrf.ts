/** Request header with the CSRF token of a session; every change from a browser needs it. */
export const CSRF_HEADER = 'Tickwright-Csrf'
