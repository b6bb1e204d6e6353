// The parts of Swagger UI that the reference uses; the package has no types of its own.

declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export type Component = unknown

  export interface Operation {
    security?: unknown[]
    requestBody?: { content?: Record<string, { schema?: unknown }> }
  }

  export interface System {
    React: { createElement(type: unknown, props: unknown, ...children: unknown[]): unknown }
    specSelectors: { specResolvedSubtree(path: string[]): { toJS(): Operation } | undefined }
    fn: { getSampleSchema(schema: unknown, media: string, config: object): string }
  }

  interface Request {
    method?: string
    headers: Record<string, string>
  }

  interface Options {
    [name: string]: unknown
    requestInterceptor?: (request: Request) => Promise<Request>
  }

  export default function SwaggerUI(options: Options): unknown
}
