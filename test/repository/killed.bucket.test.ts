import { describeMoto, describeRadosgw, freshPrefix, moto, radosgw } from "../backends/bucket/servers.ts"
import { killedAtEachCall } from "./killed.ts"

describeMoto("with moto", () => killedAtEachCall("on moto", async () => ({ ...(await moto()), prefix: freshPrefix() })))
describeRadosgw("with radosgw", () =>
  killedAtEachCall("on radosgw", async () => ({ ...(await radosgw()), prefix: freshPrefix() }))
)
