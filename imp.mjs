const m=process.argv[2]; const t=process.cpuUsage(); await import(m); const u=process.cpuUsage(t); console.log(m, ((u.user+u.system)/1000).toFixed(0)+" ms cpu", process.memoryUsage().rss>>20)
