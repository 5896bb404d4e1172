package systemdtest

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// State is the state of a unit.
type State struct {
	Load, Active, Sub, Result string
	// Job is set while systemd has a pending job for the unit.
	Job bool
	// Invocation identifies a start of the unit; [NewStart] creates one. It is empty for systemd before 232.
	Invocation []byte
	// ActiveSince is the unit's start time in microseconds since boot.
	ActiveSince uint64
}

// Running returns the state of a unit that has just started.
func Running() State {
	return State{Load: "loaded", Active: "active", Sub: "running", Result: "success", Invocation: NewStart()}
}

// NewStart returns a new invocation id.
func NewStart() []byte {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return id
}

// Systemd is a fake systemd with units.
type Systemd struct {
	// Address is the address of its bus.
	Address string

	mu    sync.Mutex
	units map[string]State
	// after has the states of a unit that the next reads return, one for each read. planned has the sequences that
	// begin at its next restarts.
	after, planned map[string][]State
	restarts       []string
	refuses        string
	restarted      chan string
	// settled is called at the second read of a unit's last state; next replaces it at the next restart.
	settled, next func()
}

// Start starts a fake systemd for a test, with running units.
func Start(t *testing.T, units ...string) *Systemd {
	t.Helper()
	return StartAt(t, filepath.Join(t.TempDir(), "bus"), units...)
}

// StartAt is Start with a given path for the bus.
func StartAt(t *testing.T, path string, units ...string) *Systemd {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Systemd{Address: "unix:path=" + path, units: map[string]State{}, after: map[string][]State{}, planned: map[string][]State{}}
	for _, unit := range units {
		s.units[unit] = Running()
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(t, conn) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return s
}

// AfterRestart sets the states that reads return after the unit's next restart, one for each read. The last state
// stays. The default is a running unit.
func (s *Systemd) AfterRestart(unit string, states ...State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned[unit] = states
}

// Settled calls a function once, at the second read of the last planned state of a restarted unit.
func (s *Systemd) Settled(call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = call
}

// Refuse makes the fake systemd answer each restart with an error.
func (s *Systemd) Refuse(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = why
}

// Restarted returns a channel that receives the name of each restarted unit from now on, so that the caller can restart
// the real one.
func (s *Systemd) Restarted() <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarted = make(chan string, 100)
	return s.restarted
}

// Restarts returns the restarted units in order.
func (s *Systemd) Restarts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.restarts...)
}

// serve answers on a connection until it ends.
func (s *Systemd) serve(t *testing.T, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if err := admit(in, conn); err != nil {
		return // the client closed the connection
	}
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		reply := s.answer(call)
		reply.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(call.Serial())
		reply.Headers[dbus.FieldSender] = dbus.MakeVariant("org.freedesktop.systemd1")
		if len(reply.Body) > 0 {
			reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(reply.Body...))
		}
		if err := reply.EncodeTo(conn, binary.LittleEndian); err != nil && !errors.Is(err, net.ErrClosed) && !isBroken(err) {
			t.Errorf("systemd: answer %s: %v", call, err)
			return
		}
	}
}

func isBroken(err error) bool {
	var of *net.OpError
	return errors.As(err, &of)
}

// admit accepts any client.
func admit(in *bufio.Reader, out io.Writer) error {
	if _, err := in.ReadByte(); err != nil {
		return err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "ERROR"
		switch line = strings.TrimSpace(line); {
		case line == "AUTH":
			answer = "REJECTED EXTERNAL"
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			answer = "DATA"
		case strings.HasPrefix(line, "DATA"):
			answer = "OK 0123456789abcdef0123456789abcdef"
		case line == "BEGIN":
			return nil
		}
		if _, err := io.WriteString(out, answer+"\r\n"); err != nil {
			return err
		}
	}
}

func returns(values ...any) *dbus.Message {
	return &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{}, Body: values}
}

func fails(name, why string) *dbus.Message {
	return &dbus.Message{
		Type: dbus.TypeError, Body: []any{why},
		Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldErrorName: dbus.MakeVariant(name)},
	}
}

const unitPath = "/org/freedesktop/systemd1/unit/"

// answer executes a method call.
func (s *Systemd) answer(call *dbus.Message) *dbus.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	member, _ := call.Headers[dbus.FieldMember].Value().(string)
	path, _ := call.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	first := ""
	if len(call.Body) > 0 {
		first, _ = call.Body[0].(string)
	}
	switch member {
	case "Hello":
		return returns(":1.1")
	case "LoadUnit":
		return returns(dbus.ObjectPath(unitPath + escaped(first)))
	case "RestartUnit":
		return s.restart(first)
	case "GetAll":
		return returns(s.properties(unescaped(strings.TrimPrefix(string(path), unitPath)), first))
	}
	return fails("org.freedesktop.DBus.Error.UnknownMethod", member)
}

func escaped(unit string) string   { return strings.ReplaceAll(unit, ".", "_2e") }
func unescaped(path string) string { return strings.ReplaceAll(path, "_2e", ".") }

func (s *Systemd) restart(unit string) *dbus.Message {
	if s.refuses != "" {
		return fails("org.freedesktop.DBus.Error.AccessDenied", s.refuses)
	}
	s.restarts = append(s.restarts, unit)
	if s.restarted != nil {
		s.restarted <- unit
	}
	s.after[unit] = s.planned[unit]
	delete(s.planned, unit)
	s.settled, s.next = s.next, nil
	if len(s.after[unit]) == 0 {
		s.after[unit] = []State{Running()}
	}
	return returns(dbus.ObjectPath("/org/freedesktop/systemd1/job/7"))
}

// properties returns the properties of a unit.
func (s *Systemd) properties(unit, of string) map[string]dbus.Variant {
	if of == "org.freedesktop.systemd1.Unit" {
		if len(s.after[unit]) > 0 {
			s.units[unit], s.after[unit] = s.after[unit][0], s.after[unit][1:]
		} else if s.settled != nil {
			s.settled()
			s.settled = nil
		}
	}
	state, known := s.units[unit]
	if !known {
		state = State{Load: "not-found", Active: "inactive", Sub: "dead"}
	}
	if of == "org.freedesktop.systemd1.Service" {
		return map[string]dbus.Variant{"Result": dbus.MakeVariant(state.Result), "NRestarts": dbus.MakeVariant(uint32(0))}
	}
	job := struct {
		ID   uint32
		Path dbus.ObjectPath
	}{0, "/"}
	if state.Job {
		job.ID, job.Path = 7, "/org/freedesktop/systemd1/job/7"
	}
	properties := map[string]dbus.Variant{
		"LoadState": dbus.MakeVariant(state.Load), "ActiveState": dbus.MakeVariant(state.Active), "SubState": dbus.MakeVariant(state.Sub),
		"ActiveEnterTimestampMonotonic": dbus.MakeVariant(state.ActiveSince), "Job": dbus.MakeVariant(job),
	}
	if state.Invocation != nil {
		properties["InvocationID"] = dbus.MakeVariant(state.Invocation)
	}
	return properties
}

// State returns the present state of a unit.
func (s *Systemd) State(unit string) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units[unit]
}

// Left returns how many planned states of a unit have not been read yet.
func (s *Systemd) Left(unit string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.after[unit])
}
