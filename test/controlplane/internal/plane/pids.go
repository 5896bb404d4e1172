package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// supervisorName is the name of the supervisor itself in the pids file.
const supervisorName = "supervisor"

// running is the content of the pids file: the processes of a control plane,
// the supervisor first.
type running struct {
	Boot      string    `json:"boot"` // boot id of the machine they were started under
	Processes []started `json:"processes"`
}

// started identifies a process beyond doubt within one boot: pids are reused,
// a pid together with its start time is not.
type started struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, as in /proc/PID/stat
}

func (d Dir) writePids(r running) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the pids: %w", err)
	}
	// Renamed into place: 'down' may read at any time.
	temporary := d.pids() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the pids: %w", err)
	}
	if err := os.Rename(temporary, d.pids()); err != nil {
		return fmt.Errorf("cannot write the pids: %w", err)
	}
	return nil
}

// readPids returns what the pids file lists, and nothing if there is none or if
// it is from before the machine's last boot.
func (d Dir) readPids() (running, error) {
	data, err := os.ReadFile(d.pids())
	if errors.Is(err, fs.ErrNotExist) {
		return running{}, nil
	}
	if err != nil {
		return running{}, fmt.Errorf("cannot read the pids: %w", err)
	}
	var r running
	if err := json.Unmarshal(data, &r); err != nil {
		return running{}, fmt.Errorf("cannot read the pids in %s: %w", d.pids(), err)
	}
	if r.Boot != bootID() {
		return running{}, nil
	}
	return r, nil
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func identify(name string, pid int) (started, error) {
	start, state, err := stat(pid)
	if err != nil || state == "Z" {
		return started{}, fmt.Errorf("%s (pid %d) has already ended", name, pid)
	}
	return started{Name: name, PID: pid, Start: start}, nil
}

// alive reports whether the very process still runs. A zombie does not.
func (s started) alive() bool {
	start, state, err := stat(s.PID)
	return err == nil && start == s.Start && state != "Z"
}

// signal signals the very process and nothing else: os.FindProcess pins the
// process that has the pid now, and only then its start time is compared. A
// process that has ended is no error.
func (s started) signal(sig syscall.Signal) error {
	p, err := os.FindProcess(s.PID)
	if err != nil {
		return fmt.Errorf("cannot look up %s (pid %d): %w", s.Name, s.PID, err)
	}
	defer func() { _ = p.Release() }()
	if !s.alive() {
		return nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send %s to %s (pid %d): %w", sig, s.Name, s.PID, err)
	}
	return nil
}

// stat reads start time and state from /proc/PID/stat. The fields are counted
// after the program's name, which may hold spaces and parentheses.
func stat(pid int) (start uint64, state string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", err
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return 0, "", fmt.Errorf("/proc/%d/stat has %d fields after the name, want more than %d", pid, len(fields), startField)
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return start, fields[stateField], err
}
