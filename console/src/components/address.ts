/** Host and port of an executor's address, where the whole of it has no room; any other text stays as it is. */
export const hostOf = (address: string) => (URL.canParse(address) ? new URL(address).host : '') || address
