import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { write } from "../../history/zip/outside.ts"
import type { SessionError } from "../../model/sessionError.ts"
import { toError } from "./files.ts"
import { encode, type SessionRecord } from "./saved.ts"

export const save = (path: string, writing: SessionRecord): Effect.Effect<void, SessionError> =>
  Effect.flatMap(encode("save", writing), (bytes) => write(path, () => Stream.make(bytes), toError("save", path)))
