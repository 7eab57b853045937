// Calls functions by types that openapi-typescript has made; prints what they give, as JSON by name.
import createClient from "openapi-fetch";
import type { components, paths } from "./made.js";

declare const process: { argv: string[] };

const client = createClient<paths, "application/json">({ baseUrl: process.argv[2] });
const told: Record<string, unknown> = {};

told["value"] = (await client.POST("/square", { body: 7 })).data;
told["object"] = (await client.POST("/square", { body: { x: -3 } })).data;
told["get"] = (await client.GET("/square", { params: { query: { x: 5 } } })).data;
const headers = { Accept: "application/json" };
told["refused"] = (await client.POST("/square", { body: { x: 100_000 }, headers })).error;

const point: components["schemas"]["Point"] = { x: 1, y: 2.5 };
told["dataclass"] = (await client.POST("/move", { body: point, params: { query: { by: 2 } } })).data;
const moved = (await client.POST("/move", { body: { point: { x: 1 } } })).data;
told["member"] = moved?.x;

told["recursive"] = (await client.POST("/prune", { body: { name: "a", children: [{ name: "b", children: [] }] } })).data?.name;
told["enum"] = (await client.POST("/echo", { body: { words: "a", prefix: "<", color: "blue" }, parseAs: "text" })).data;
told["rows"] = (await client.POST("/norm", { body: [[1, 2], [3, 4]] })).data;
told["tuples"] = (await client.POST("/swap", { body: [[1, "a"], [2, "b"]] })).data;

const lines = await client.POST("/split", {
    body: '1\n2\n3\n',
    bodySerializer: (body: string) => body,
    headers: { "Content-Type": "application/x-ndjson", Accept: "application/x-ndjson" },
    parseAs: "text",
} as never) as { data?: string };
told["stream"] = lines.data?.trim().split("\n").map((line) => JSON.parse(line));

// The types refuse what the functions would refuse.
// @ts-expect-error a number is wanted
void (() => client.POST("/square", { body: { x: "7" } }));
// @ts-expect-error a member is missing
void (() => client.POST("/move", { body: { by: 1 } }));
// @ts-expect-error it is not safe
void (() => client.GET("/move"));
// @ts-expect-error there is no such color
void (() => client.POST("/echo", { body: { words: "a", color: "green" } }));

console.log(JSON.stringify(told));
