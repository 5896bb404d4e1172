package rook

import (
	"maps"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// among adds to what is changed of a thing which hosts the CRUSH map has: when these are others, a
// change that was made before is wished for again though nobody undid it.
func among(about string, w *fsm.World) string {
	ceph := one(w, journal.RookCeph)
	if ceph == nil {
		return about
	}
	return about + sinceHosts + strconv.FormatUint(of(ceph).Crush, 10)
}

const sinceHosts = "@"

// forgetContests drops what became of changes that were made among other hosts than this one was.
func forgetContests(t *fsm.Thing, rec *journal.ActionRecord) {
	if rec.Request.Change == nil {
		return
	}
	_, hosts, among := strings.Cut(rec.Request.Change.Key, sinceHosts)
	maps.DeleteFunc(t.Contests, func(key string, _ *fsm.Contest) bool {
		_, others, is := strings.Cut(key, sinceHosts)
		return among && is && others != hosts
	})
}
