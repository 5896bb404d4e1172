package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	name            = "org.freedesktop.systemd1"
	managerPath     = "/org/freedesktop/systemd1"
	managerCalls    = name + ".Manager."
	unitProperties  = name + ".Unit"
	service         = name + ".Service"
	readProperties  = "org.freedesktop.DBus.Properties.GetAll"
	stateActive     = "active"
	stateFailed     = "failed"
	loadStateLoaded = "loaded"
)

// Systemd is a connection to the host's systemd. It is not safe for concurrent use.
type Systemd struct {
	conn *dbus.Conn
	// MinActiveTime is how long a unit must be active without a break to count as active again: a program that cannot work
	// with its configuration is active for a moment, too.
	MinActiveTime time.Duration
	// PollInterval is the time between two checks.
	PollInterval time.Duration
}

// Connect connects to the host's system bus, or to the bus at an address if that is not empty. The connection ends
// with the context.
func Connect(ctx context.Context, address string) (*Systemd, error) {
	connect := dbus.ConnectSystemBus
	if address != "" {
		connect = func(options ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Connect(address, options...) }
	}
	conn, err := connect(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("reach systemd over D-Bus: %w", orEnded(ctx, err))
	}
	return &Systemd{conn: conn, MinActiveTime: 3 * time.Second, PollInterval: 200 * time.Millisecond}, nil
}

// orEnded adds the error of the context, if that has ended.
func orEnded(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return errors.Join(ended, err)
	}
	return err
}

// Close ends the connection.
func (s *Systemd) Close() error { return s.conn.Close() }

// Unit is a unit that systemd has loaded.
type Unit struct {
	systemd *Systemd
	name    string
	object  dbus.BusObject
}

// Unit returns a unit. It is an error if systemd has not loaded it.
func (s *Systemd) Unit(ctx context.Context, unit string) (*Unit, error) {
	var path dbus.ObjectPath
	if err := s.manager(ctx, "LoadUnit", unit).Store(&path); err != nil {
		return nil, fmt.Errorf("ask systemd for %s: %w", unit, err)
	}
	u := &Unit{s, unit, s.conn.Object(name, path)}
	now, err := u.look(ctx)
	if err == nil && now.load != loadStateLoaded {
		err = fmt.Errorf("systemd cannot restart %s: its load state is %s", unit, now.load)
	}
	return u, err
}

func (s *Systemd) manager(ctx context.Context, method string, args ...any) *dbus.Call {
	return s.conn.Object(name, managerPath).CallWithContext(ctx, managerCalls+method, 0, args...)
}

// Restart restarts the unit, or starts it, and waits until it has been active for [Systemd.MinActiveTime] in a new
// process. Its error has the state of the unit.
func (u *Unit) Restart(ctx context.Context) error {
	before, err := u.look(ctx)
	if err != nil {
		return err
	}
	var job dbus.ObjectPath
	if err := u.systemd.manager(ctx, "RestartUnit", u.name, "replace").Store(&job); err != nil {
		return fmt.Errorf("restart %s: %w", u.name, err)
	}
	return u.await(ctx, before)
}

// await waits until the unit has been active long enough after a start that is newer than the state before.
func (u *Unit) await(ctx context.Context, before state) error {
	tick := time.NewTicker(u.systemd.PollInterval)
	defer tick.Stop()
	seen := before
	var since time.Time
	starts := 0
	for {
		now, err := u.look(ctx)
		if err == nil && now.start != seen.start {
			starts++ // also count a start that ended before the unit was seen active
		}
		switch {
		case ctx.Err() != nil:
			return u.late(seen, starts, ctx.Err())
		case err != nil:
			return err
		case now.failed():
			return fmt.Errorf("%s was restarted and %s; see journalctl -u %s", u.name, now, u.name)
		case !now.activeAfter(before):
			since = time.Time{}
		case since.IsZero() || now.start != seen.start:
			since = time.Now()
		case time.Since(since) >= u.systemd.MinActiveTime:
			return nil
		}
		seen = now
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// late returns the error of a restart that took too long, with the last state and the number of starts.
func (u *Unit) late(seen state, starts int, cause error) error {
	is := "is not active again in time: " + seen.String()
	if starts > 1 {
		is = fmt.Sprintf("does not stay active: it started %d times, and ended within %s each time", starts, u.systemd.MinActiveTime)
	}
	return fmt.Errorf("%s was restarted and %s; see journalctl -u %s: %w", u.name, is, u.name, cause)
}

// state is the state of a unit at a moment.
type state struct {
	load, active, sub, result string
	// start identifies a start of the unit.
	start string
	// job is set while systemd has a job for the unit.
	job bool
}

func (s state) activeAfter(before state) bool {
	return s.active == stateActive && !s.job && s.start != before.start
}

func (s state) failed() bool { return s.active == stateFailed && !s.job }

// String formats the state as systemctl does.
func (s state) String() string {
	text := fmt.Sprintf("is %s (%s)", s.active, s.sub)
	if s.result != "" && s.result != "success" {
		text += ", result " + s.result
	}
	return text
}

// look returns the present state.
func (u *Unit) look(ctx context.Context) (state, error) {
	unit, err := u.properties(ctx, unitProperties)
	if err != nil {
		return state{}, err
	}
	now := state{load: text(unit["LoadState"]), active: text(unit["ActiveState"]), sub: text(unit["SubState"])}
	now.start = startOf(unit)
	if job, is := unit["Job"].Value().([]any); is && len(job) > 0 {
		number, is := job[0].(uint32)
		now.job = is && number != 0
	}
	if now.load != loadStateLoaded {
		return now, nil
	}
	ofService, err := u.properties(ctx, service)
	now.result = text(ofService["Result"])
	return now, err
}

// startOf returns an identifier of the last start: the invocation, or the time of the start if systemd does not know
// invocations (before 232; Enterprise Linux 7 has 219).
func startOf(unit map[string]dbus.Variant) string {
	if id, is := unit["InvocationID"].Value().([]byte); is {
		return hex.EncodeToString(id)
	}
	since, _ := unit["ActiveEnterTimestampMonotonic"].Value().(uint64)
	return strconv.FormatUint(since, 10)
}

func (u *Unit) properties(ctx context.Context, of string) (map[string]dbus.Variant, error) {
	var all map[string]dbus.Variant
	if err := u.object.CallWithContext(ctx, readProperties, 0, of).Store(&all); err != nil {
		return nil, fmt.Errorf("ask systemd for the state of %s: %w", u.name, err)
	}
	return all, nil
}

func text(v dbus.Variant) string {
	s, _ := v.Value().(string)
	return s
}
