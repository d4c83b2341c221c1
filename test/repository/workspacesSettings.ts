/** Settings with which a cluster notices a lost runner within a few seconds. */
export const tuned = {
  shardLockExpiration: "6 seconds",
  shardLockRefreshInterval: "2 seconds",
  runnerHealthCheckInterval: "2 seconds",
  refreshAssignmentsInterval: "1 second",
  entityMessagePollInterval: "1 second"
} as const
