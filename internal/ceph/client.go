package ceph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Defaults of [Options]. Without a mgr some commands hang. They must end before the preflight that runs them times
// out, so that the preflight reports ceph's own error.
const (
	DefaultTimeout        = 12 * time.Second
	DefaultConnectTimeout = 8 * time.Second
	DefaultGrace          = 4 * time.Second
)

// Options of a [Client]. The zero value is ready for use. Timeouts that programs get are rounded up to seconds.
type Options struct {
	// Timeout is how long one command may take; default 12 s.
	Timeout time.Duration
	// ConnectTimeout is how long ceph may take to connect to a monitor; default 8 s.
	ConnectTimeout time.Duration
	// Grace is how much longer the exec around a command may take, so that the command's own timeout ends it
	// first; default 4 s.
	Grace time.Duration
	// Program is the ceph program, with options that come before all others; default "ceph".
	Program []string
	// ReadOnly refuses every command that would change something, with ErrReadOnly.
	ReadOnly bool
	// MaxAge is the maximum age of an answer that the client reuses for the same query. With the default 0, the
	// client reuses no answer. A change by this client makes all earlier answers invalid. Before a purge, the
	// client always reads the OSD's identity from Ceph.
	MaxAge time.Duration
	// OnCommand, if set, is called for each command that ran, with its duration and its error. The duration includes
	// the search for the pod. OnCommand is not called for an error after the caller has stopped waiting. It must not
	// block.
	OnCommand OnCommand
}

// OnCommand receives the duration of a command. kind is the command without names and ids, such as "osd purge"
// for "ceph osd purge 9".
type OnCommand func(kind string, took time.Duration, err error)

// Client is the [API] of a real Ceph cluster.
//
// The client runs each change in a separate process, and checks its exit code. With a plain [Runner], it does the
// same for each query. With an [InteractiveRunner], one process answers all queries of the same moment, and waits
// some seconds for the next ones. If that process does not answer exactly as expected, the client repeats each
// query in a separate process. After two failures in a row, it uses separate processes for ten minutes.
type Client struct {
	runner   Runner
	options  Options
	reads    sharedQueries
	sessions sessions
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
	return &Client{runner: runner, options: options, reads: sharedQueries{maxAge: options.MaxAge}}
}

// query runs a command and parses its answer.
func query[T any](ctx context.Context, c *Client, command command, parse func([]byte) (T, error)) (T, error) {
	var none T
	answer, err := c.run(ctx, command)
	if err != nil {
		return none, err
	}
	parsed, err := parse(quoteBareNumbers(answer))
	if err != nil {
		return none, fmt.Errorf("%s: read the answer %q: %w", command, outputTail(answer), err)
	}
	return parsed, nil
}

// Version implements [API].
func (c *Client) Version(ctx context.Context) (Version, error) {
	return query(ctx, c, command{args: []string{"version"}}, parseVersion)
}

// Health implements [API]. The monitors answer `ceph status` with the mgr's last report, so Health does not hang
// without a mgr.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return query(ctx, c, command{args: []string{"status"}}, parseHealth)
}

// Tree implements [API]. Its commands run in parallel, so their maps may be a moment apart.
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
	return query(ctx, c, command{args: []string{"osd", "tree"}}, parseTree)
}

func (c *Client) uuids(ctx context.Context) (map[int]string, error) {
	return query(ctx, c, osdDump, parseUUIDs)
}

var osdDump = command{args: []string{"osd", "dump"}}

// fsid returns the cluster's id. It uses the same command as uuids, so that both share one answer.
func (c *Client) fsid(ctx context.Context) (string, error) {
	return query(ctx, c, osdDump, parseFSID)
}

// Pools implements [API]. Its commands run in parallel. Pools and Tree share the answer of `ceph osd dump`.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	var dumped dumpedPools
	var rules map[int]placement
	var poolsErr, rulesErr error
	parallel.Run(
		func() { dumped, poolsErr = query(ctx, c, osdDump, parsePools) },
		func() {
			rules, rulesErr = query(ctx, c, command{args: []string{"osd", "crush", "rule", "dump"}}, parseRules)
		},
	)
	if err := cmp.Or(poolsErr, rulesErr); err != nil {
		return nil, err
	}
	return joinPools(dumped.pools, dumped.ruleOf, rules), nil
}

// PGs implements [API].
func (c *Client) PGs(ctx context.Context) ([]PG, error) {
	return query(ctx, c, command{args: []string{"pg", "dump", "pgs_brief"}, mgr: true}, parsePGs)
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

// SafeToDestroy implements [API]. With JSON output, ceph exits with 0 even if an OSD is not safe to destroy.
func (c *Client) SafeToDestroy(ctx context.Context, ids ...int) (Safety, error) {
	texts, err := arguments(ids)
	if err != nil {
		return Safety{}, err
	}
	asked := command{args: append([]string{"osd", "safe-to-destroy"}, texts...), mgr: true}
	safety, err := query(ctx, c, asked, parseSafety)
	if err != nil {
		return Safety{}, err
	}
	for _, id := range slices.Concat(safety.Safe, safety.Active, safety.StoredPGs, safety.MissingStats) {
		if !slices.Contains(ids, id) {
			return Safety{}, fmt.Errorf("%s: the answer is about %s, about which EKCO did not ask", asked, name(id))
		}
	}
	safety.asked = ids
	return safety, nil
}
