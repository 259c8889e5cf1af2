"""What Python needs for the same work: reads a timeline and reports busy, idle, gaps and their causes.

peer.py load FILE     json.load (a .gz through gzip.open)
peer.py scan FILE     every row of the big tables, through sqlite3
peer.py report FILE   the report of an Nsight export
Prints one JSON object: seconds of the work alone, without starting Python, and what it found.
"""
import bisect, gzip, json, sqlite3, sys, time

TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, streamId, correlationId, globalPid, demangledName",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind",
    "NVTX_EVENTS": "start, end, eventType, text, globalTid, textId",
}


def load(name):
    opened = gzip.open(name) if name.endswith(".gz") else open(name)
    return {"events": len(json.load(opened)["traceEvents"])}


def scan(name):
    db = sqlite3.connect(name)
    rows = 0
    for table, columns in TABLES.items():
        for row in db.execute(f"SELECT {columns} FROM {table}"):
            rows += 1
    return {"rows": rows}


def report(name):
    db = sqlite3.connect(name)
    names = dict(db.execute("SELECT id, value FROM StringIds"))
    calls, threads = {}, {}
    for start, end, tid, corr, name_id in db.execute(f"SELECT {TABLES['CUPTI_ACTIVITY_KIND_RUNTIME']} FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start"):
        call = (start, end, tid, names[name_id])
        calls[tid >> 24, corr] = call
        threads.setdefault(tid, []).append(call)
    starts = {tid: [c[0] for c in all] for tid, all in threads.items()}
    ranges = {}
    for start, end, kind, text, tid, _ in db.execute(f"SELECT {TABLES['NVTX_EVENTS']} FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start"):
        ranges.setdefault(tid, []).append((start, end, text))
    range_starts = {tid: [r[0] for r in all] for tid, all in ranges.items()}
    copies = sorted(db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY"))
    copy_starts = [c[0] for c in copies]
    kernels = db.execute(f"SELECT {TABLES['CUPTI_ACTIVITY_KIND_KERNEL']} FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start, end").fetchall()
    first, last, before = kernels[0][0], kernels[0][1], kernels[0]
    idle, gaps, causes, pairs = 0, [], {}, {}
    for k in kernels[1:]:
        start, end, _, stream, corr, pid, name_id = k
        if start > last:
            idle += start - last
            call = calls.get((pid >> 24, corr))
            copied = 0
            i = bisect.bisect_left(copy_starts, last)
            while i < len(copies) and copies[i][0] < start:
                copied += min(copies[i][1], start) - copies[i][0]
                i += 1
            cause, evidence = "unknown", ""
            if call is None:
                pass
            elif call[0] > last:
                tid = call[2]
                i = bisect.bisect_left(starts[tid], last - 50000)
                sync = None
                for c in threads[tid][i:i + 50]:
                    if c[0] >= call[0]:
                        break
                    if "Synchronize" in c[3] and c[1] >= last:
                        sync = c
                if sync and copied * 2 < start - last:
                    cause, evidence = "sync", f"{call[3]} (correlation {corr}) began {(call[0] - last) / 1e3:.1f} us after the last kernel ended; {sync[3]}"
                elif copied * 2 >= start - last:
                    cause, evidence = "copy", f"copies took {copied / 1e3:.1f} us"
                elif (call[0] - last) * 2 < start - last:
                    cause, evidence = "launch", f"{call[3]} (correlation {corr}) began {(call[0] - last) / 1e3:.1f} us after the last kernel ended"
                else:
                    cause = "host"
                    all = ranges.get(tid, [])
                    j = bisect.bisect_right(range_starts.get(tid, []), (last + call[0]) // 2) - 1
                    while j >= 0 and all[j][1] < call[0] and j > 0:
                        j -= 1
                    evidence = f"{call[3]} (correlation {corr}) began late, in {all[j][2] if all else ''}"
            elif call[1] > last:
                cause, evidence = "launch", f"{call[3]} (correlation {corr}) was under way"
            elif start - last <= 3000:
                cause, evidence = "launch-gap", f"queued {(last - call[1]) / 1e3:.1f} us before (correlation {corr})"
            gaps.append((start - last, last - first, cause, names[before[6]], names[name_id], evidence))
            total = causes.setdefault(cause, [0, 0])
            total[0] += 1
            total[1] += start - last
            pair = pairs.setdefault((before[6], name_id), [0, 0])
            pair[0] += 1
            pair[1] += start - last
        if end >= last:
            last, before = end, k
    gaps.sort(key=lambda g: -g[0])
    return {"kernels": len(kernels), "idle_ns": idle, "busy_ns": last - first - idle, "gaps": len(gaps), "causes": causes}


work = {"load": load, "scan": scan, "report": report}[sys.argv[1]]
began = time.perf_counter()
found = work(sys.argv[2])
print(json.dumps({"seconds": time.perf_counter() - began, **found}))
