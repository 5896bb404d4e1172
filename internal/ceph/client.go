package ceph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Defaults of [Options]. They keep a command that hangs, as some do without a
// mgr, shorter than what a preflight may take, so that it is ceph that says why.
const (
	DefaultTimeout        = 12 * time.Second
	DefaultConnectTimeout = 8 * time.Second
	DefaultGrace          = 4 * time.Second
)

// Options of a [Client]. The zero value is ready for use. Times that programs
// are told are rounded up to seconds.
type Options struct {
	// Timeout is how long one command may take; default 12 s.
	Timeout time.Duration
	// ConnectTimeout is how long ceph may look for a monitor; default 8 s.
	ConnectTimeout time.Duration
	// Grace is what the exec around a command gets beyond its timeout, so that
	// the command ends first; default 4 s.
	Grace time.Duration
	// Program is how ceph is called, with options that come before all others;
	// default "ceph".
	Program []string
	// ReadOnly makes every command that would change something end with
	// ErrReadOnly.
	ReadOnly bool
	// MaxAge is how long ago Ceph may have been asked what it is asked again, for that answer
	// to do; default 0, with which it is always asked anew. What it was asked before a change
	// of this client had ended never does, and an OSD's identity is always asked before it is
	// purged.
	MaxAge time.Duration
	// OnCommand, if there is one, is told of each command that was run: which, from
	// the look for the pod to the end, and how it failed. It is not told of one
	// that ended because its caller had stopped waiting. It must not block.
	OnCommand OnCommand
}

// OnCommand is told what a command took. kind is the command without names and
// ids, "osd purge" for "ceph osd purge 9".
type OnCommand func(kind string, took time.Duration, err error)

// Client is the [API] of a real Ceph cluster.
//
// Each change is a process of its own, whose exit code counts. So is a question
// where the runner is a [Runner] alone. Where it is [Conversing], what is asked at
// the same moment is put to one process, which is kept for some seconds for what is
// asked next. What then does not come as it must, whatever the reason, is asked
// again by a process for each question; and for ten minutes nothing else is tried,
// if that was so twice in a row.
type Client struct {
	runner  Runner
	options Options
	reads   shared
	talks   talks
}

var _ API = (*Client)(nil)

// New returns a client that runs ceph through the runner. It runs nothing yet.
func New(runner Runner, options Options) *Client {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.ConnectTimeout == 0 {
		options.ConnectTimeout = min(DefaultConnectTimeout, options.Timeout)
	}
	if options.Grace == 0 {
		options.Grace = DefaultGrace
	}
	if len(options.Program) == 0 {
		options.Program = []string{"ceph"}
	}
	if options.OnCommand == nil {
		options.OnCommand = func(string, time.Duration, error) {}
	}
	return &Client{runner: runner, options: options, reads: shared{maxAge: options.MaxAge}}
}

// ask runs a command and reads its answer.
func ask[T any](ctx context.Context, c *Client, command command, parse func([]byte) (T, error)) (T, error) {
	var none T
	answer, err := c.run(ctx, command)
	if err != nil {
		return none, err
	}
	parsed, err := parse(quoteBareNumbers(answer))
	if err != nil {
		return none, fmt.Errorf("%s: read the answer %q: %w", command, lastWords(answer), err)
	}
	return parsed, nil
}

// Version implements [API].
func (c *Client) Version(ctx context.Context) (Version, error) {
	return ask(ctx, c, command{args: []string{"version"}}, parseVersion)
}

// Health implements [API]. The monitors answer `ceph status` by themselves, with
// what they remember of the mgr's part; so it does not hang without a mgr.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return ask(ctx, c, command{args: []string{"status"}}, parseHealth)
}

// Tree implements [API]. Its two commands run side by side, and see maps that may
// be a moment apart.
func (c *Client) Tree(ctx context.Context) (Tree, error) {
	var tree Tree
	var uuids map[int]string
	var fsid string
	var treeErr, uuidsErr, fsidErr error
	parallel.Run(
		func() { tree, treeErr = c.tree(ctx) },
		func() { uuids, uuidsErr = c.uuids(ctx) },
		func() { fsid, fsidErr = c.fsid(ctx) },
	)
	if err := cmp.Or(treeErr, uuidsErr, fsidErr); err != nil {
		return Tree{}, err
	}
	tree.FSID = fsid
	for i := range tree.OSDs {
		tree.OSDs[i].UUID = uuids[tree.OSDs[i].ID]
	}
	return tree, nil
}

// tree is Tree without UUIDs.
func (c *Client) tree(ctx context.Context) (Tree, error) {
	return ask(ctx, c, command{args: []string{"osd", "tree"}}, parseTree)
}

func (c *Client) uuids(ctx context.Context) (map[int]string, error) {
	return ask(ctx, c, osdDump, parseUUIDs)
}

var osdDump = command{args: []string{"osd", "dump"}}

// fsid asks what uuids does, so that both share one command.
func (c *Client) fsid(ctx context.Context) (string, error) {
	return ask(ctx, c, osdDump, parseFSID)
}

// Pools implements [API]. Its two commands run side by side, and the first is the
// one that Tree gives.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	var dumped dumpedPools
	var rules map[int]placement
	var poolsErr, rulesErr error
	parallel.Run(
		func() { dumped, poolsErr = ask(ctx, c, osdDump, parsePools) },
		func() {
			rules, rulesErr = ask(ctx, c, command{args: []string{"osd", "crush", "rule", "dump"}}, parseRules)
		},
	)
	if err := cmp.Or(poolsErr, rulesErr); err != nil {
		return nil, err
	}
	return joinPools(dumped.pools, dumped.ruleOf, rules), nil
}

// PGs implements [API].
func (c *Client) PGs(ctx context.Context) ([]PG, error) {
	return ask(ctx, c, command{args: []string{"pg", "dump", "pgs_brief"}, mgr: true}, parsePGs)
}

// Exists implements [API].
func (c *Client) Exists(ctx context.Context, osd Ref) (bool, error) {
	if err := checkID(osd.ID); err != nil {
		return false, err
	}
	tree, err := c.Tree(ctx)
	if err != nil {
		return false, err
	}
	found, exists := tree.OSD(osd.ID)
	return exists && !found.IsOther(osd), nil
}

// SafeToDestroy implements [API]. With JSON asked for, ceph exits with 0 also
// when the answer is no.
func (c *Client) SafeToDestroy(ctx context.Context, ids ...int) (Safety, error) {
	texts, err := arguments(ids)
	if err != nil {
		return Safety{}, err
	}
	question := command{args: append([]string{"osd", "safe-to-destroy"}, texts...), mgr: true}
	safety, err := ask(ctx, c, question, parseSafety)
	if err != nil {
		return Safety{}, err
	}
	for _, id := range slices.Concat(safety.Safe, safety.Active, safety.StoredPGs, safety.MissingStats) {
		if !slices.Contains(ids, id) {
			return Safety{}, fmt.Errorf("%s: the answer is about %s, which was not asked about", question, name(id))
		}
	}
	safety.asked = ids
	return safety, nil
}
