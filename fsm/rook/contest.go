package rook

import (
	"maps"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// withHosts adds to the key of a change a number that identifies the hosts in the CRUSH map. After these hosts have
// changed, EKCO may repeat an earlier change that no other program undid, which must not count as a contest.
func withHosts(about string, w *fsm.World) string {
	ceph := findThing(w, journal.RookCeph)
	if ceph == nil {
		return about
	}
	return about + hostsSeparator + strconv.FormatUint(of(ceph).Crush, 10)
}

// hostsSeparator separates the key of a change and the number that [withHosts] adds.
const hostsSeparator = "@"

// forgetContests deletes the contests of changes that were made with other hosts in the CRUSH map than this action.
func forgetContests(t *fsm.Thing, rec *journal.ActionRecord) {
	if rec.Request.Change == nil {
		return
	}
	_, hosts, among := strings.Cut(rec.Request.Change.Key, hostsSeparator)
	maps.DeleteFunc(t.Contests, func(key string, _ *fsm.Contest) bool {
		_, others, is := strings.Cut(key, hostsSeparator)
		return among && is && others != hosts
	})
}
