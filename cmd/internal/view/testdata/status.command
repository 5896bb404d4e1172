NEEDS YOU: clear of worker-2 is stalled at delete-pod a/b (ekco explain clear-worker-2-9)
Operator: not running; a command does the work itself: purge-node worker-2, v0.29.0 on primary-0 (pid 7), for 1h
Journal:  at #57, 50 events, 3.0 MiB (4.0 KiB free), /var/lib/ekco/journal.db
Paused:   everything, by cli:root@primary-0 at 2026-11-21T01:00:00Z, until 2026-11-21T03:00:00Z: maintenance
Paused:   node worker-2, by cli:root@primary-0 at 2026-11-21T01:00:00Z, until "ekco resume worker-2": disk swap

NODE      ROLE    STATE    SINCE    READY  NOTES
worker-2  worker  Purging  10m ago  no     unreachable since 2026-11-21T01:00:00Z, 2 terminating pods, excluded by its label
1 node is healthy: ekco status -o wide

OPEN ACTIONS
  purge-worker-2-18: purge-node of node worker-2, Held, step 2/2: delete-node, for 1m30s, requested by cli:root@primary-0
    waits before delete-node: purge-x runs (OneAtATime); it continues automatically when that is gone, or cancel it: ekco cancel purge-worker-2-18
    delete-node failed (attempt 2): timeout
  clear-worker-2-9: clear-node of node worker-2, Stalled, not planned yet, for 1m, requested by operator
    stalled at delete-pod a/b: 5 attempts failed; after repairing the cause, run: ekco retry clear-worker-2-9

BLOCKED
  purge node worker-2: StormBrake: too many (for 1h)

DEFECTS
  event 9 could not be folded

LIMITATIONS
  may not create events
